"""What the command line says of bad files, bad commands and faults of the machine."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from command_line import FLOWERS, N, fails

from lnml.cli import main
from lnml.models import load_model

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


@pytest.mark.parametrize(
    "command", ["fit tiny.csv -o a.model", "compare tiny.csv -o a.html --folds 2 -j 1"]
)
def test_messages_call_a_column_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((40, 2)) * [1.0, 1e-90]
    lines = [f"{x},{z},{'ab'[i % 2]}" for i, (x, z) in enumerate(rows)]
    Path("tiny.csv").write_text("\n".join(["width,height,kind", *lines]))
    said = fails(capsys, f"{command} -l kind -m support-vector")
    assert "column 'height' differ by" in said
