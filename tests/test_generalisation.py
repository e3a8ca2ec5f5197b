"""benchmarks/generalisation.py: what it computes, resumes and reports."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def summary(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from generalisation_suite import summary

    return summary


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from generalisation_suite import bars

    return bars


def cell(summary, correct, seeds=(0,)):
    """A cell of two folds of four rows for each seed; the rows of a fold are not in order."""
    from generalisation_suite.tasks import Result

    def result(rows):
        right = [bool(correct[row]) for row in rows]
        return Result(list(rows), right, 1.0, "LMNN()", True, None, {"k": 3})

    folds = [(7, 1, 5, 3), (0, 2, 4, 6)]
    return summary.Cell(
        {(seed, fold): result(rows) for seed in seeds for fold, rows in enumerate(folds)}
    )


@pytest.fixture
def folder(tmp_path):
    """Two tiny data sets."""
    rng = np.random.default_rng(0)
    (tmp_path / "other").mkdir()
    y = np.repeat(["a", "b"], 15)
    for name, gap in (("near", 1.0), ("far", 20.0)):
        X = rng.standard_normal((30, 3)) + gap * (y == "b")[:, None]
        np.savez(tmp_path / "other" / f"{name}.npz", X=X, y=y)
    return tmp_path


def run(folder, *options):
    """Run the script on the two data sets, one seed; return what it prints."""
    command = [sys.executable, str(BENCHMARKS / "generalisation.py"), str(folder / "out")]
    command += ["--groups", "other", "--other", str(folder / "other"), "--seeds", "0", *options]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.extras
def test_a_run_is_resumed_and_a_failing_method_is_reported(folder):
    report = folder / "report.md"
    options = ["--methods", "euclidean,lmnn", "--recommended", "lmnn", "--report", str(report)]
    assert "20 of 20 results are left" in run(folder, *options, "--time-limit", "0")

    assert "0 of 20 results are there" in run(folder, *options)
    files = sorted((folder / "out").rglob("*.json"))
    assert len(files) == 20
    rows = []
    for fold in range(5):
        path = folder / "out" / "other" / "far" / f"seed0-fold{fold}-lmnn.json"
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert stored["correct"] == [True] * 6
        assert stored["seconds"] > 0 and stored["converged"] and stored["gap"] <= 1e-3
        rows += stored["rows"]
    assert sorted(rows) == list(range(30))

    files[0].unlink()
    kept = {path: path.stat().st_mtime_ns for path in files[1:]}
    broken = ["--variant", "broken=LMNN(n_neighbors=-1)"]
    said = run(folder, *options, *broken)
    assert "19 of 30 results are there" in said
    assert files[0].exists()
    assert kept == {path: path.stat().st_mtime_ns for path in files[1:]}
    page = report.read_text(encoding="utf-8")
    assert "## Errors" in page and "n_neighbors" in page
    assert "| far " in page and "100.00" in page and "### Bars" in page
    # The failed fits are tried again, the others are not.
    assert "20 of 30 results are there" in run(folder, *options, *broken, "--time-limit", "0")


def test_accuracies_and_order_of_rows(summary):
    correct = [1, 1, 0, 1, 0, 0, 0, 0]
    found = cell(summary, correct, seeds=(0, 1))
    # Folds: rows 7, 1, 5, 3 have two right, rows 0, 2, 4, 6 one.
    np.testing.assert_allclose(found.accuracies(), [37.5, 37.5])
    np.testing.assert_array_equal(found.correct(0), np.array(correct, dtype=bool))
    assert found.complete and found.choices() == {"k=3": 4}
    found.results[1, 1] = None
    assert not found.complete


def test_duel(summary):
    found = summary.Duel({"a": 5.0, "b": 0.05, "c": -0.06, "d": 2.0, "e": -1.0, "f": 0.0})
    assert (found.wins, found.losses) == (2, 2)
    assert found.mean == pytest.approx(5.99 / 6)
    assert found.without_largest == pytest.approx((0.05 - 0.06 - 1.0 + 0.0) / 4)
    assert found.worst == ("e", -1.0)
    assert np.isnan(summary.Duel({"a": 1.0, "b": 2.0}).without_largest)


def test_ranks(summary):
    # Ranks 1 2 3, 1 2 3, 2 1 3 and 1.5 1.5 3: sums 5.5, 6.5, 12.
    values = np.array([[9, 8, 7], [9, 8, 7], [8, 9, 7], [8, 8, 7]], dtype=float)
    ranks, pvalue = summary.mean_ranks(values)
    np.testing.assert_allclose(ranks, [1.375, 1.625, 3.0])
    # Friedman: 12 / (n k (k + 1)) sum R² - 3 n (k + 1), over 1 - ties / (n k (k² - 1)); with two
    # degrees of freedom the p-value is exp(-statistic / 2).
    statistic = (12 / 48 * (5.5**2 + 6.5**2 + 144) - 48) / (1 - 6 / 96)
    assert pvalue == pytest.approx(np.exp(-statistic / 2))
    assert summary.mean_ranks(np.ones((3, 3)))[1] == 1.0


def test_significance_and_bars(summary, bars):
    table = {
        name: {
            "auto": cell(summary, auto),
            "euclidean": cell(summary, euclidean),
            "lmnn": cell(summary, euclidean),
        }
        for name, auto, euclidean in (
            ("one", [0] * 8, [1] * 8),
            ("two", [1] * 8, [0, 0, 1, 1, 1, 1, 1, 1]),
        )
    }
    one, two = summary.significance(table, "auto", "euclidean", 0)
    n_rows = {"one": 499, "two": 500}
    # 8 to 0: 2 / 2^8; 2 to 0: 2 / 2^2.
    assert (one.only_first, one.only_second) == (0, 8)
    assert one.pvalue == pytest.approx(2 / 256) and one.adjusted == pytest.approx(4 / 256)
    assert two.pvalue == two.adjusted == pytest.approx(0.5)
    assert one.significantly_below() and not two.significantly_below()

    found = {
        bar.text: bar for bar in bars.bars(table, n_rows, "auto", ["auto", "euclidean", "lmnn"], 0)
    }
    above = found["mean at least 1.0 above LMNN"]
    assert above.cells(2) == [above.text, "-37.50", "FAIL"]
    assert above.cells(3)[-1] == "FAIL so far (2 of 3 sets)"
    assert found["mean at least 1.0 above NCA"].passed is None
    assert found["more wins than losses against LMNN"].measured == "1 to 1"
    # The data set that is significantly below is too small for the last bar.
    *_, last = bars.bars(table, n_rows, "auto", ["auto", "euclidean"], 0)
    assert last.passed
    n_rows["one"] = 500
    *_, last = bars.bars(table, n_rows, "auto", ["auto", "euclidean"], 0)
    assert not last.passed and last.measured == "one"
