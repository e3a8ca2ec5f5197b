"""Labels, names of columns and names of files are shown as they are: none of them is a command."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lnml.cli import main
from lnml.core.text import visible

# Markup of the terminal's library and of HTML, a formula, escapes, and a turn of the direction.
LABELS = ["[low]", "[/red]", "<b>&", "$\\frac$", "\x1b[31mx", "\u202eabc", "a\x00b\x07"]
COLUMN = "[/b]\x1b[2J\x9b1m"
FILE = "[red]\x1b[8m.csv"
N = 42


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A hostile table and its model; both streams say that they are terminals."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    kinds = np.arange(N) % len(LABELS)
    values = np.random.default_rng(0).normal(size=N) + 9.0 * kinds
    frame = pd.DataFrame({COLUMN: values, "kind": np.array(LABELS)[kinds]})
    # CSV holds no zero bytes.
    frame.to_parquet("hostile.parquet")
    frame.replace({"kind": {LABELS[-1]: "ab"}}).to_csv(FILE, index=False)
    assert main("fit hostile.parquet -l kind -m euclidean -o a.model -q".split()) == 0
    # The class, because pytest takes another stream for the test itself.
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    return tmp_path


def harmless(text):
    """Whether nothing of the table reached the terminal but as escapes."""
    return not any(
        hidden in text for hidden in ("\x1b[31m", "\x1b[2J", "\x1b[8m", *"\x9b\u202e\x00\x07")
    )


def test_neighbors_on_a_terminal(folder, capsys):
    assert main(["neighbors", "a.model", "hostile.parquet", "-k", "1"]) == 0
    out, err = capsys.readouterr()
    assert harmless(out) and harmless(err)
    for label in LABELS:
        assert f" {visible(label)} " in out


def test_info_on_a_terminal(folder, capsys):
    assert main(["info", "a.model"]) == 0
    out = capsys.readouterr().out
    assert harmless(out)
    assert f"{visible(COLUMN)}: numbers" in out
    assert f"{visible(LABELS[4])}: 6" in out


def test_compare_on_a_terminal(folder, capsys):
    options = ["-l", "kind", "-m", "euclidean", "--folds", "2", "-o", "a.html", "-j", "1"]
    assert main(["compare", FILE, *options]) == 0
    out, err = capsys.readouterr()
    assert harmless(out) and harmless(err)
    assert visible(FILE) in out
    page = Path("a.html").read_text(encoding="utf-8")
    assert harmless(page) and "\x1b" not in page
    assert "&lt;b&gt;&amp;" in page and "<b>&" not in page


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "hostile.parquet"],
        ["fit", "hostile.parquet", "-l", COLUMN, "-o", "b.model"],
        ["fit", "hostile.parquet", "-l", "kind", "--drop", "\x1b[2J", "-o", "b.model"],
        ["transform", "a.model", f"x{FILE}", "-o", "z.csv"],
    ],
    ids=["no label", "numbers as labels", "no such column", "no such file"],
)
def test_messages(folder, capsys, arguments):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert harmless(err) and "\\x1b" in err and err.count("\n") == 1


def test_long_names_make_no_long_message(folder, capsys):
    Path("long.csv").write_text(f"{'x' * 100_000},kind\n1,a\n2,b\n3,a\n", encoding="utf-8")
    assert main(["fit", "long.csv", "-l", "type", "-o", "b.model"]) == 2
    err = capsys.readouterr().err
    assert len(err) < 2100 and err.startswith("lnml: long.csv: there is no column 'type'")
    assert "xxx [...] xxx" in err and err.endswith("x, kind\n")


def test_every_character_can_be_printed():
    everything = "".join(map(chr, range(0x110000)))
    shown = visible(everything, lines=True)
    shown.encode()
    assert {c for c in shown if ord(c) < 32} == {"\n", "\t"}
    assert visible("Zürich 漢字 می\u200cخواهم") == "Zürich 漢字 می\u200cخواهم"
