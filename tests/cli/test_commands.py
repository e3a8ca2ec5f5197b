"""The command line as a user meets it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lnml
import lnml.files
from lnml.cli import main
from lnml.cli.methods import NAMES
from lnml.learning.votes import CANDIDATES
from lnml.models import load_model
from lnml.registry import built_in
from lnml.tables import read_table

RNG = np.random.default_rng(3)
N = 60
FLOWERS = pd.DataFrame(
    {
        "length": RNG.normal(size=N) + 3.0 * (np.arange(N) % 3),
        "width": np.where(np.arange(N) % 9 == 0, np.nan, RNG.normal(size=N)),
        "color": np.where(RNG.random(N) < 0.5, "red", "blue"),
        "species": np.array(["iris", "lily", "rose"])[np.arange(N) % 3],
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a table, a model and rows to look up."""
    monkeypatch.chdir(tmp_path)
    FLOWERS.to_csv("flowers.csv", index=False)
    FLOWERS.head(7).to_csv("query.csv", index=False)
    arguments = "fit flowers.csv --label species --method euclidean -o flowers.model --quiet"
    assert main(arguments.split()) == 0
    return tmp_path


def fails(capsys: pytest.CaptureFixture, arguments: str) -> str:
    """Run a command that must fail; return its one line."""
    capsys.readouterr()
    before = sorted(Path().iterdir())
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lnml: ")
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    return err


def test_fit_transform_neighbors_info(folder: Path, capsys: pytest.CaptureFixture) -> None:
    command = (
        "fit flowers.csv --label species --k-min 1 --k-max 5 --scale standard -o learned.model"
    )
    assert main(command.split()) == 0
    assert "learned.model: ln-lmnn, 60 rows, 3 classes, objective" in capsys.readouterr().out
    model = load_model("learned.model")
    assert model.estimator["parameters"]["k_max"] == 5
    assert model.data["fingerprint"] == read_table("flowers.csv", "species").fingerprint
    assert main("transform learned.model query.csv -o z.parquet".split()) == 0
    Z = pd.read_parquet("z.parquet")
    assert Z["species"].tolist() == FLOWERS["species"].head(7).tolist()
    expected = model.transform(FLOWERS.head(7))
    assert Z.drop(columns="species").to_numpy().tobytes() == expected.tobytes()
    assert main("info learned.model --json".split()) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["classes"] == {"iris": 20, "lily": 20, "rose": 20}
    assert facts["columns"]["color"] == ["blue", "red"]
    assert main("info learned.model".split()) == 0
    assert "LMNN(" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["z.csv", "z.tsv.gz", "z.parquet", "z.npz"])
def test_transformed_tables_can_be_read(folder: Path, name: str) -> None:
    assert main(["transform", "flowers.model", "query.csv", "-o", name, "--quiet"]) == 0
    table = read_table(name, None if name.endswith("npz") else "species")
    assert table.labels.tolist() == FLOWERS["species"].head(7).tolist()
    expected = load_model("flowers.model").transform(FLOWERS.head(7))
    np.testing.assert_array_equal(table.features.to_numpy(), expected)


def test_streams(folder: Path) -> None:
    """A table from standard input, and results to standard output, as in a pipe."""
    content = FLOWERS.head(7).to_csv(index=False, sep=";", decimal=",").encode("utf-16")
    assert main("transform flowers.model query.csv -o z.csv -q".split()) == 0
    assert main("neighbors flowers.model query.csv -o n.csv -q".split()) == 0
    for command, name in (("transform", "z.csv"), ("neighbors", "n.csv")):
        arguments = f"-m lnml {command} flowers.model - -o - --decimal , --quiet".split()
        done = subprocess.run([sys.executable, *arguments], input=content, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == Path(name).read_text()
    arguments = "-m lnml fit - --label species --decimal , -m euclidean -o a.model".split()
    done = subprocess.run([sys.executable, *arguments], input=content, capture_output=True)
    assert done.returncode == 0
    assert load_model("a.model").data["name"] == "standard input"


def test_transform_without_labels(folder: Path) -> None:
    FLOWERS.drop(columns="species").to_csv("bare.csv", index=False)
    for name in ("z.csv", "z.npz"):
        assert main(["transform", "flowers.model", "bare.csv", "-o", name]) == 0
    assert list(pd.read_csv("z.csv")) == ["z0", "z1", "z2", "z3"]
    with np.load("z.npz") as arrays:
        assert sorted(arrays) == ["X", "feature_names"]


def test_neighbors_in_a_pipe_and_in_files(folder: Path, capsys: pytest.CaptureFixture) -> None:
    capsys.readouterr()
    assert main("neighbors flowers.model query.csv -k 3".split()) == 0
    out, err = capsys.readouterr()
    assert "of the 7 rows with a label are predicted right" in err
    assert main("neighbors flowers.model query.csv -k 3 -o n.csv".split()) == 0
    assert main("neighbors flowers.model query.csv -k 3 -o n.json".split()) == 0
    assert Path("n.csv").read_text() == out
    lines = pd.read_csv("n.csv")
    assert lines["query"].tolist() == np.repeat(np.arange(7), 3).tolist()
    # The query rows are the first training rows.
    assert lines.loc[lines["rank"] == 1, "row"].tolist() == list(range(7))
    assert (lines.loc[lines["rank"] == 1, "distance"] == 0.0).all()
    assert lines["label"].tolist() == FLOWERS["species"][lines["row"]].tolist()
    queries = json.loads(Path("n.json").read_text())
    assert [len(query["neighbors"]) for query in queries] == [3] * 7
    assert queries[2]["neighbors"][0] == {"row": 2, "distance": 0.0, "label": "rose"}


def test_training_rows_that_find_themselves(folder: Path, capsys: pytest.CaptureFixture) -> None:
    capsys.readouterr()
    assert main("neighbors flowers.model query.csv -k 2 -o with.csv".split()) == 0
    assert "7 of 7 rows have a training row at distance 0" in capsys.readouterr().err
    assert main("neighbors flowers.model query.csv -k 1 --without-self -o without.csv".split()) == 0
    assert "distance 0" not in capsys.readouterr().err
    found, others = pd.read_csv("with.csv"), pd.read_csv("without.csv")
    second = found[found["rank"] == 2]
    assert others["row"].tolist() == second["row"].tolist()
    assert others["distance"].tolist() == second["distance"].tolist()
    FLOWERS.head(3).assign(length=[50.0, 60.0, 70.0]).to_csv("far.csv", index=False)
    assert main("neighbors flowers.model far.csv -k 1 -o far-n.csv".split()) == 0
    assert "distance 0" not in capsys.readouterr().err
    assert main("neighbors flowers.model far.csv -k 1 --without-self -o far-n2.csv".split()) == 0
    assert Path("far-n.csv").read_text() == Path("far-n2.csv").read_text()
    line = fails(capsys, "neighbors flowers.model query.csv -k 60 --without-self")
    assert "k must be from 1 to 59, the number of other training rows; got 60" in line


def test_a_stored_k_votes_unless_another_is_given(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    command = "fit flowers.csv --label species --method euclidean --k 3 -o three.model".split()
    assert main(command) == 0
    assert ", k 3, " in capsys.readouterr().out
    for model, option, k in (("three", "", 3), ("three", "-k 2", 2), ("flowers", "", 5)):
        assert main(f"neighbors {model}.model query.csv {option}".split()) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 1 + 7 * k
    for model, k in (("three", 3), ("flowers", None)):
        assert main(f"info {model}.model --json".split()) == 0
        assert json.loads(capsys.readouterr().out)["k"] == k


def test_fit_chooses_k(folder: Path, capsys: pytest.CaptureFixture) -> None:
    capsys.readouterr()
    command = "fit flowers.csv --label species --method lmnn --k auto -o a.model --quiet".split()
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert load_model("a.model").k in CANDIDATES


@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ("--method euclidean-scaled", "standard"),
        ("--method euclidean-scaled --scale minmax", "minmax"),
        ("--method euclidean", "none"),
    ],
)
def test_scale_is_that_of_the_method_unless_given(folder: Path, options: str, scale: str) -> None:
    assert main(f"fit flowers.csv --label species -o a.model -q {options}".split()) == 0
    assert load_model("a.model").preparation.scale == scale


def test_notes(folder: Path, capsys: pytest.CaptureFixture) -> None:
    numbered = FLOWERS.assign(number=range(N))
    numbered.to_csv("numbered.csv", index=False)
    command = "fit numbered.csv --label species --method euclidean -o a.model --force".split()
    assert main(command) == 0
    assert "lnml: note: column 'number' counts the rows: left out" in capsys.readouterr().err
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    FLOWERS.head(3).assign(color="green").to_csv("green.csv", index=False)
    assert main("transform flowers.model green.csv -o z.csv".split()) == 0
    assert "column 'color': 3 of 3 values" in capsys.readouterr().err


def test_an_error_after_notes_is_one_line(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """A new category is worth a note, but not beside an error."""
    new = FLOWERS.head(7).assign(color="green")
    new.to_csv("new.csv", index=False)
    assert "k must be" in fails(capsys, "neighbors flowers.model new.csv -k 999")
    FLOWERS.rename(columns={"species": "z0"}).to_csv("named.csv", index=False)
    assert main("fit named.csv -l z0 -m euclidean -o named.model -q".split()) == 0
    new.rename(columns={"species": "z0"}).to_csv("new.csv", index=False)
    assert "has the name of a result" in fails(capsys, "transform named.model new.csv -o z.csv")


def test_a_stray_word_among_numbers(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """Refused, unless all are categories; then the proof of the model can still be checked."""
    rows = np.arange(N)
    words = np.where(rows == 4, "many", (rows % 5).astype(str))
    FLOWERS.assign(count=words).to_csv("stray.csv", index=False)
    command = "fit stray.csv --label species --method lmnn -o a.model"
    line = fails(capsys, command)
    assert (
        "column 'count' holds numbers, but text in 1 of 60 rows (the first is 'many' in row 4"
        in line
    )
    assert main([*command.split(), "--categories", "count", "--quiet"]) == 0
    counts = load_model("a.model").preparation.columns_[-1]
    assert counts.categories == ("0", "1", "2", "3", "4", "many")
    assert main("info a.model --verify stray.csv".split()) == 0


def test_a_class_can_be_left_out(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """The proof of the model can be checked with the whole table."""
    command = "fit flowers.csv --label species --method lmnn --drop-class lily -o a.model"
    assert main(command.split()) == 0
    assert "note: class 'lily': 20 rows left out" in capsys.readouterr().err
    assert load_model("a.model").class_sizes == {"iris": 20, "rose": 20}
    assert main("info a.model --verify flowers.csv".split()) == 0
    FLOWERS.drop(columns="species").to_csv("bare.csv", index=False)
    FLOWERS.replace("rose", "oak").to_csv("oak.csv", index=False)
    assert "no column 'species'" in fails(capsys, "info a.model --verify bare.csv")
    assert "is not the table" in fails(capsys, "info a.model --verify oak.csv")


def test_values_that_stand_for_missing_ones(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """A note points them out, an option reads them as missing, and the model remembers."""
    coded = FLOWERS.assign(width=FLOWERS["width"].fillna(-999))
    coded.to_csv("coded.csv", index=False)
    command = "fit coded.csv --label species --method lmnn -o a.model --force".split()
    assert main(command) == 0
    assert "column 'width': 7 of 60 values are -999" in capsys.readouterr().err
    assert main([*command, "--missing", "-999"]) == 0
    assert capsys.readouterr().err == ""
    model, plain = load_model("a.model"), load_model("flowers.model")
    assert model.missing == ("-999",)
    assert model.data["fingerprint"] == plain.data["fingerprint"]
    assert main("transform a.model coded.csv -o coded-z.csv".split()) == 0
    assert main("transform a.model flowers.csv -o plain-z.csv".split()) == 0
    assert Path("coded-z.csv").read_text() == Path("plain-z.csv").read_text()
    assert main("neighbors a.model coded.csv -o coded-n.csv".split()) == 0
    assert main("neighbors a.model flowers.csv -o plain-n.csv".split()) == 0
    assert Path("coded-n.csv").read_text() == Path("plain-n.csv").read_text()
    assert main("info a.model --verify coded.csv".split()) == 0
    capsys.readouterr()
    assert main("info a.model --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["read_as_missing"] == ["-999"]


def test_warnings_are_shown_once(folder: Path, capsys: pytest.CaptureFixture) -> None:
    rare = pd.concat([FLOWERS, FLOWERS.head(2).assign(species="tulip")])
    rare.to_csv("rare.csv", index=False)
    assert main("fit rare.csv --label species --method lmnn -o a.model".split()) == 0
    err = capsys.readouterr().err
    assert err.startswith("lnml: warning: ")
    assert "tulip" in err
    assert err.count("\n") == 1


def test_fit_on_a_device(folder: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("torch")
    command = "fit flowers.csv --label species --method lmnn --device"
    for device in ("cpu", "torch:cpu"):
        assert main([*command.split(), device, "-o", f"{device[:5]}.model", "--quiet"]) == 0
    here, there = load_model("cpu.model"), load_model("torch.model")
    np.testing.assert_allclose(there.rows, here.rows, rtol=1e-4, atol=1e-4)
    assert there.estimator["parameters"]["device"] == "torch:cpu"
    assert here.estimator["parameters"]["device"] is None


BAD_FILES = {
    "empty.csv": (b"", "empty (0 bytes)"),
    "ragged.csv": (b"length,species\n1,a\n2,b,c\n", "line 3: 3 fields"),
    "short.csv": (b"length,width,species\n1,2,a\n2,b\n", "line 3: 2 fields"),
    "other.csv": (b"length,kind\n1,a\n2,b\n", "no column 'species'"),
    "one.csv": (b"length,species\n1,a\n2,a\n", "one class only ('a')"),
    "two.csv": (b"length,species\n1,a\n2,b\n", "two rows are too few"),
    "four.csv": (b"length,species\n1,a\n2,b\n3,c\n4,d\n", "one row only"),
    "endless.csv": (b"length,species\n1,a\ninf,b\n3,a\n", "infinite value in row 1"),
    "thousands.csv": (
        b'length,species\n"1,000",a\n"2,500",b\n30,a\n',
        "comma ('1,000'), which may separate thousands or decimals",
    ),
    "decimals.csv": (b'length,species\n"1,000",a\n"2,5",b\n30,a\n', "decimal comma ('2,5')"),
    "fractions.csv": (b"length,species\n1,2\n2,0.5\n3,2\n", "such as 0.5 in row 1"),
    "unlabelled.csv": (b"length,species\n1,a\n2,\n3,b\n", "1 of 3 rows have no label"),
    "hollow.csv": (b"length,width,species\n1,,a\n2,,a\n3,,b\n", "'width' has no value"),
    "names.csv": (b"name,species\nx,a\ny,b\nz,b\n", "no feature column"),
    "twins.csv": (b"length,length,species\n1,2,a\n", "more than one column named 'length'"),
    "mixed.csv": ("length,species\n1,ä\n".encode() + b"2,\xe4\n", "not UTF-8"),
    "dates.csv": (b"day,species\n2020-01-01,a\n2020-01-02,b\n2020-01-03,b\n", "dates or times"),
    "cut.parquet": (b"PAR1\x15\x04\x15", "cut off"),
    "text.npz": (b"length,species\n", "not an NPZ file"),
    "bad.arff": (b"@relation r\n@attribute x {a}\n@data\nb\n", "cannot be read as ARFF"),
    "sheet.xls": (b"PK", "extension"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content, message = BAD_FILES[name]
    Path(name).write_bytes(content)
    assert message in fails(capsys, f"fit {name} --label species -o a.model")


BAD_COMMANDS = {
    "fit none.csv --label species -o a.model": "does not exist",
    "fit flowers.csv -o a.model": "say which one holds the labels",
    "fit flowers.csv --label specis -o a.model": "did you mean 'species'?",
    "fit flowers.csv --label species -o flowers.model": "exists already",
    "fit flowers.csv --label species -o flowers.csv -f": "flowers.csv is read",
    "fit flowers.csv --label species -o link.csv -f": "link.csv is read",
    "fit flowers.csv --label species -o none/a.model": "folder none does not exist",
    "fit flowers.csv --label species -o .": "is a folder",
    "fit flowers.csv --label species": "Missing option",
    "fit flowers.csv --label species -o -": "standard output (-): name a file",
    "fit flowers.csv --label species -o a.model --delimiter ab": "one character",
    "fit flowers.csv --label species -o a.model --decimal x": "a point or a comma",
    "fit flowers.csv --label species -o a.model --encoding utf-99": "no encoding",
    "info flowers.model --verify flowers.csv --encoding utf-99": "no encoding",
    "transform flowers.model query.csv -o z.csv.zip": "read, not written",
    "transform flowers.model query.csv -o z.npy": "read, not written",
    "fit flowers.csv --label species -o a.model --method lnlmnn": "did you mean 'ln-lmnn'?",
    "fit flowers.csv --label species -o a.model --method=": "there is no method ''",
    "fit flowers.csv --label species -o a.model --method nca --k-min 2": "nca takes no such sizes",
    "fit flowers.csv --label species -o a.model --method svm": "svm is a classifier",
    "fit flowers.csv --label species -o a.model --method euclidean --k 61": "from 1 to 60",
    "fit flowers.csv --label species -o a.model --k none": "(1, 2, ...) or auto; got 'none'",
    "fit flowers.csv --label species -o a.model --k 0": "(1, 2, ...) or auto; got '0'",
    "fit flowers.csv --label species -o a.model --k-min 5": "k_min <= k_av <= k_max",
    "fit flowers.csv --label species -o a.model --k-min two": "--k-min",
    "fit flowers.csv --label species -o a.model --pca 9": "use at most 4",
    "fit flowers.csv --label species -o a.model --pca 0": "pca must be",
    "fit flowers.csv --label species -o a.model --scale log": "scale must be one of",
    "fit flowers.csv --label species -o a.model --drop size": "there are: length",
    "fit flowers.csv --label species -o a.model --device qpu": "no device"
    if find_spec("torch")
    else "needs torch",
    "transform flowers.model none.csv -o z.csv": "does not exist",
    "transform none.model query.csv -o z.csv": "does not exist",
    "transform flowers.csv query.csv -o z.csv": "not an lnml model",
    "transform cut.model query.csv -o z.csv": "cut off",
    "transform flowers.model query.csv -o z.xlsx": "read, not written",
    "transform flowers.model query.csv -o z.arff": "read, not written",
    "transform flowers.model query.csv -o flowers.csv": "exists already",
    "transform flowers.model query.csv -o ./query.csv -f": "query.csv is read",
    "transform model.csv query.csv -o model.csv -f": "model.csv is read",
    "neighbors flowers.model query.csv -o query.csv -f": "query.csv is read",
    "transform flowers.model narrow.csv -o z.csv": "2 of the 3 feature columns are missing",
    "transform flowers.model words.csv -o z.csv": "but holds text in 60 of 60 rows",
    "transform flowers.model word.csv -o z.csv": "but holds text in 1 of 60 rows (the first is "
    "'long' in row 3",
    "transform flowers.model far.csv -o z.csv": "1e+200 (row 2, counted from 0)",
    "neighbors flowers.model far.csv": "1e+200 (row 2, counted from 0)",
    "neighbors flowers.model query.csv -k 0": "from 1 to 60",
    "neighbors flowers.model query.csv -o n.txt": ".csv or .json",
    "info tampered.model": "checksum is wrong",
    "plot flowers.csv": "No such command",
    "--loud": "No such option",
}


@pytest.mark.parametrize("arguments", BAD_COMMANDS)
def test_bad_commands(folder: Path, capsys: pytest.CaptureFixture, arguments: str) -> None:
    content = Path("flowers.model").read_bytes()
    Path("cut.model").write_bytes(content[:-100])
    Path("tampered.model").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    Path("model.csv").write_bytes(content)
    Path("link.csv").symlink_to("flowers.csv")
    FLOWERS[["color"]].to_csv("narrow.csv", index=False)
    FLOWERS.assign(length="long").to_csv("words.csv", index=False)
    word = FLOWERS["length"].astype(object)
    word[3] = "long"
    FLOWERS.assign(length=word).to_csv("word.csv", index=False)
    FLOWERS.assign(length=np.where(np.arange(N) == 2, 1e200, 0)).to_csv("far.csv", index=False)
    assert BAD_COMMANDS[arguments] in fails(capsys, arguments)


def test_force_replaces(folder: Path) -> None:
    command = "fit flowers.csv --label species --method euclidean --scale minmax -o flowers.model"
    assert main([*command.split(), "--force"]) == 0
    assert load_model("flowers.model").preparation.scale == "minmax"


@pytest.mark.parametrize(
    "command",
    [
        "fit flowers.csv --label species -m euclidean -o new.model",
        "transform flowers.model query.csv -o new.csv",
        "neighbors flowers.model query.csv -o new.csv",
    ],
)
def test_an_output_that_appears_meanwhile_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, command: str
) -> None:
    """Two runs at the same time: the second to finish is refused."""
    monkeypatch.setattr("lnml.files._claim", appears(lnml.files._claim))
    assert main(command.split()) == 2
    assert "appeared while this command ran" in capsys.readouterr().err
    assert next(folder.glob("new.*")).read_text() == "of another run"


def appears(claim: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
    def second(temporary: Path, path: Path) -> None:
        path.write_text("of another run")
        claim(temporary, path)

    return second


def test_methods_are_those_that_give_a_distance() -> None:
    assert NAMES == tuple(key for key, method in built_in().items() if not method.classifier)


def test_version_and_help(capsys: pytest.CaptureFixture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lnml {lnml.__version__}\n"
    assert main([]) == 0
    assert "neighbors" in capsys.readouterr().out
    for command in ("fit", "transform", "neighbors", "info"):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Examples" in shown
        assert "bool" not in shown


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("lnml neigh", ["neighbors"]),
        ("lnml fit --meth", ["--method"]),
        ("lnml fit --method ln-l", ["ln-lmnn", "ln-lmnn-cv", "ln-lmnn-cv-rounds"]),
        ("lnml compare --methods nca,eucl", ["nca,euclidean", "nca,euclidean-scaled"]),
        ("lnml fit --scale m", ["minmax"]),
        ("lnml transform --enc", ["--encoding"]),
    ],
)
def test_completion(typed: str, expected: list[str]) -> None:
    """What bash would offer."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "lnml"],
        capture_output=True,
        text=True,
        env={**os.environ, "_LNML_COMPLETE": "complete_bash", **words},
    )
    assert done.stdout.split() == expected
    assert done.stderr == ""


def test_help_fills_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a paragraph ends early: the next word would not have fitted."""
    for command in ("compare", "fit", "transform", "neighbors", "info", "study"):
        done = subprocess.run(
            [sys.executable, "-m", "lnml", command, "--help"],
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "80", "TERMINAL_WIDTH": "80"},
        )
        lines = [line.strip() for line in done.stdout.split("╭")[0].splitlines()]
        for line, following in pairwise(lines):
            if line and following:
                assert len(line) + 1 + len(following.split()[0]) > 78, line


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("lnml.cli.find_spec", lambda name: None)
    assert main(["--help"]) == 2
    assert capsys.readouterr().err.count('pip install "lnml[cli]"\n') == 1


def test_without_a_part_of_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("a.parquet").write_bytes(b"PAR1")
    line = fails(capsys, "fit a.parquet --label species -o a.model")
    assert "pyarrow" in line
    assert 'pip install "lnml[cli]"' in line


def test_a_process_of_its_own(folder: Path) -> None:
    """Exit code and stderr as a shell sees them."""
    Path("empty.csv").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-m", "lnml", "fit", "empty.csv", "--label", "a", "-o", "a.model"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lnml: empty.csv is empty (0 bytes): write it again\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["info flowers.model", "--version"])
def test_a_full_device(folder: Path, arguments: str) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "lnml", *arguments.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "lnml: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "streams", "code"),
    [
        ("neighbors flowers.model query.csv --quiet", ">&-", 0),
        ("info flowers.model", ">&-", 0),
        ("info none.model", "2>&-", 2),
        ("info none.model", "2>/dev/full", 2),
    ],
)
def test_streams_that_nobody_reads(folder: Path, arguments: str, streams: str, code: int) -> None:
    command = f'"{sys.executable}" -m lnml {arguments} {streams}'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_name_that_is_no_text(folder: Path) -> None:
    """A byte that is no UTF-8, in the name of a file and of its model."""
    name = os.fsdecode(b"fl\xffwers")
    Path("flowers.csv").rename(f"{name}.csv")
    command = f"-m lnml fit {name}.csv --label species -m euclidean -o {name}.model"
    done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_model(f"{name}.model").data["name"] == r"fl\udcffwers.csv"


def test_tiny_columns_get_one_line(folder: Path, capsys: pytest.CaptureFixture) -> None:
    FLOWERS.assign(length=FLOWERS["length"] * 1e-300).to_csv("tiny.csv", index=False)
    line = fails(capsys, "fit tiny.csv --label species -m lmnn -o a.model")
    assert "underflow" in line


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from lnml.cli import main; main(['fit', '--help'])\n"
        "assert not {'numpy', 'pandas', 'sklearn', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("said", ["the fit needs 9 GiB, 2 are free", ""])
def test_out_of_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, said: str
) -> None:
    def fit(*arguments: object) -> None:
        raise MemoryError(said)

    monkeypatch.setattr("lnml.LMNN.fit", fit)
    line = fails(capsys, "fit flowers.csv --label species --method lmnn -o a.model")
    assert (said or "out of memory") in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, number: int
) -> None:
    """Ctrl-C in the middle of a fit, or a termination: exit code 130, one line, no file."""

    @contextmanager
    def interrupted_line(text: str, quiet: bool):
        yield lambda state: signal.raise_signal(number)

    monkeypatch.setattr("lnml.cli.fit.live_line", interrupted_line)
    # Python ignores the signal where its parent did, as a shell does for background jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = sorted(folder.iterdir())
    capsys.readouterr()
    assert main("fit flowers.csv --label species -o a.model".split()) == 130
    assert capsys.readouterr() == ("", "lnml: interrupted, no result was written\n")
    assert sorted(folder.iterdir()) == before
