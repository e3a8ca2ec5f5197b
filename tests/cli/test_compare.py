"""``lnml compare`` and ``lnml study`` as a user runs them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lnml.cli import main
from lnml.datasets import load_dataset


@pytest.fixture
def iris(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = load_dataset("iris")
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    frame["species"] = data.target
    frame.to_csv("iris.csv", index=False)
    return tmp_path


QUICK = ["--methods", "euclidean,lmnn", "--folds", "3"]


def test_compare_writes_report_and_results(iris, capsys):
    assert main(["compare", "iris.csv", "--label", "species", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "Euclidean" in shown and "report: iris.html" in shown
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["folds"] == 3
    results = stored["comparison"]["results"]
    assert len(results) == 6
    page = (iris / "iris.html").read_text()
    assert "Which distance is best" in page and "<svg" in page
    assert sorted(path.name for path in iris.iterdir()) == ["iris.csv", "iris.html", "iris.json"]


def test_compare_resumes(iris, capsys):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--resume", "work", "-q"]
    assert main(arguments) == 0
    folds = {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert len(folds) == 6
    assert main([*arguments, "--force"]) == 0
    assert folds == {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert main([*arguments, "--force", "--seed", "5"]) == 2
    assert "seed = 0, but you asked for 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--methods", "lmn"], "lmnn"),
        (["--folds", "60"], "smallest class has 50"),
        (["--k", "140"], "--k 140 is more"),
        (["--label", "kind"], "kind"),
        (["--scale", "log"], "log"),
        (["-o", "nowhere/x.html"], "nowhere"),
        (["--device", "qpu"], "no device"),
    ],
)
def test_mistakes_get_one_line(iris, capsys, more, said):
    assert main(["compare", "iris.csv", "--label", "species", *QUICK, *more]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("lnml: ") and said in lines[0]
    assert sorted(path.name for path in iris.iterdir()) == ["iris.csv"]


def test_compare_on_a_device(iris, capsys):
    results = []
    for device in ("cpu", "torch:cpu"):
        arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "-q", "--device", device, "-f"]
        assert main(arguments) == 0
        stored = json.loads((iris / "iris.json").read_text())
        assert stored["provenance"]["settings"]["device"] == (None if device == "cpu" else device)
        results.append([(r["method"], r["correct"]) for r in stored["comparison"]["results"]])
    assert results[0] == results[1]


def test_two_rows_are_too_few(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]}).to_csv("two.csv", index=False)
    assert main(["compare", "two.csv", "--label", "kind"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_categories_and_missing_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind = np.repeat(["x", "y"], 30)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(60) + 4 * (kind == "y"),
            "colour": rng.choice(["red", "blue"], 60),
            "kind": kind,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "colour"] = None
    frame.to_parquet("mixed.parquet")
    assert main(["compare", "mixed.parquet", "--label", "kind", *QUICK, "--scale", "standard"]) == 0
    assert "report: mixed.html" in capsys.readouterr().out


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


def test_unknown_data_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "--data", "irris", "-o", "out"]) == 2
    assert "iris" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_the_command(iris):
    """Kill -9 leaves no worker behind."""
    command = [sys.executable, "-m", "lnml", "compare", "iris.csv", "-l", "species", "-j", "2"]
    command += ["--methods", "ln-lmnn-cv", "--folds", "10", "--resume", "work"]
    running = subprocess.Popen(command, start_new_session=True)
    while len(_workers(running.pid)) < 2 or not any((iris / "work").glob("fold*.json")):
        assert running.poll() is None
        time.sleep(0.05)
    running.kill()
    running.wait()
    deadline = time.monotonic() + 30
    while _workers(running.pid):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _workers(session):
    """Numbers of the processes of a session that work for joblib."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            same = os.getsid(int(path.name)) == session
        except (OSError, ProcessLookupError):
            continue
        if same and b"popen_loky" in command:
            found.append(int(path.name))
    return found


@pytest.mark.slow
def test_killed_work_is_kept(iris):
    """Kill -9 in the middle; the second run does not repeat a finished fold."""
    command = [sys.executable, "-m", "lnml", "compare", "iris.csv", "-l", "species", "-j", "1"]
    command += ["--methods", "euclidean,lmnn,ln-lmnn-cv", "--folds", "10", "--resume", "work"]
    running = subprocess.Popen(command)
    while len(list((iris / "work").glob("fold*.json"))) < 4:
        assert running.poll() is None
    running.kill()
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert subprocess.run([*command, "-q"], check=False).returncode == 0
    now = {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert len(now) == 30
    assert kept.items() <= now.items()
