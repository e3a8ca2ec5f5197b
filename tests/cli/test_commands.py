"""The command line as a user meets it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import FLOWERS, N, fails

import lnml
import lnml.files
from lnml.cli import main
from lnml.cli.methods import NAMES
from lnml.learning.votes import CANDIDATES
from lnml.models import load_model
from lnml.registry import built_in
from lnml.tables import read_table


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


def test_notes_about_a_single_row(folder: Path, capsys: pytest.CaptureFixture) -> None:
    FLOWERS.iloc[:1].to_csv("single.csv", index=False)
    capsys.readouterr()
    assert main("neighbors flowers.model single.csv -k 3".split()) == 0
    said = capsys.readouterr().err
    assert "1 of the 1 row with a label is predicted right" in said
    assert "the row has a training row at distance 0" in said


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


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from lnml.cli import main; main(['fit', '--help'])\n"
        "assert not {'numpy', 'pandas', 'sklearn', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
