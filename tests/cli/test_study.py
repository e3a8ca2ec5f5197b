"""``lnml study`` as a user runs it."""

import json

import pytest
from interruptions import interrupt_after

from lnml.cli import main


@pytest.fixture
def small_study(tmp_path, monkeypatch):
    """A study of one quick method."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lnml.study.problems.PAPER_METHODS", ("euclidean",))
    return tmp_path / "out"


def studied(folder):
    stored = json.loads((folder / "study.json").read_text())
    return [found["data"]["name"] for found in stored["comparisons"]]


def test_study_runs_on_one_data_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lnml.study.problems.PAPER_METHODS", ("lmnn", "euclidean"))
    assert main(["study", "--data", "iris", "-o", "out", "-j", "1"]) == 0
    assert "paper" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"folds", "report.html", "study.json", "study.md"}
    assert main(["study", "--data", "iris", "-o", "out"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["study", "--data", "iris", "-o", "out", "--resume", "-q"]) == 0


def test_a_resumed_study_reports_all_that_is_in_the_folder(small_study, capsys):
    assert main("study --data iris --data wine -o out -j 1 -q".split()) == 0
    assert studied(small_study) == ["Wine", "Iris"]
    assert main("study --data iris -o out -j 1 --resume".split()) == 0
    assert studied(small_study) == ["Wine", "Iris"]
    next((small_study / "folds" / "wine").glob("fold03*")).unlink()
    capsys.readouterr()
    assert main("study --data iris -o out -j 1 --resume".split()) == 0
    assert studied(small_study) == ["Iris"]
    assert "lnml study --data wine --resume completes them" in capsys.readouterr().out
    assert main("study --data iris -o out -j 1 --resume --seed 5".split()) == 2
    assert "seed = 0, but you asked for 5" in capsys.readouterr().err
    assert studied(small_study) == ["Iris"]


def test_a_forced_study_removes_its_own_files_only(small_study, capsys):
    assert main("study --data iris -o out -j 1 -q".split()) == 0
    mine = [small_study / "folds" / "notes.txt", small_study / "folds" / "iris" / "notes.txt"]
    for path in mine:
        path.write_text("mine")
    assert main("study --data iris -o out --force --resume".split()) == 2
    assert main("study --data irris -o out --force".split()) == 2
    assert len(list((small_study / "folds" / "iris").glob("fold*.json"))) == 10
    assert main("study --data wine -o out -j 1 --force -q".split()) == 0
    assert studied(small_study) == ["Wine"]
    assert all(path.read_text() == "mine" for path in mine)
    assert list((small_study / "folds" / "iris").iterdir()) == [mine[1]]


def test_an_interrupted_study_says_what_is_kept(small_study, monkeypatch, capsys):
    interrupt_after(monkeypatch, 3)
    assert main("study --data iris -o out -j 1 -q".split()) == 130
    err = capsys.readouterr().err
    assert "3 finished fits are kept in out/folds: run the same command with --resume" in err


def test_unknown_data_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "--data", "irris", "-o", "out"]) == 2
    assert "iris" in capsys.readouterr().err
