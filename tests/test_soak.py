"""Many fits, loads and transforms in one process: memory, threads and open files do not grow."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import ITML, LMNN, LNML, MCML, MMC, NCA, AutoMetric
from lnml.cli import main
from lnml.datasets import load_dataset
from lnml.models import load_model, save_model

STATUS = Path("/proc/self/status")
ESTIMATORS = [LMNN(), NCA(max_iter=20), ITML(), MMC(), MCML(), LNML(LMNN(), max_rounds=2)]
AUTO_EVERY, COMMANDS_EVERY = 50, 5
# Of 160 rounds. A model here takes less than 100 kB, so that keeping one a round would show.
MOST_GROWTH = 16e6

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs the /proc of Linux")


def used() -> dict[str, int]:
    """Memory in bytes, threads of Python and of the process, and open files."""
    gc.collect()
    status = dict(line.split(":", 1) for line in STATUS.read_text().splitlines() if ":" in line)
    return {
        "memory": int(status["VmRSS"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "threads of Python": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
    }


def one_round(number: int, X: np.ndarray, y: np.ndarray) -> None:
    """Fit, store, load and transform; now and then run commands, and choose a metric."""
    estimator = ESTIMATORS[number % len(ESTIMATORS)]
    seen: list[int] = []
    estimator.set_params(callback=lambda state: seen.append(state.components.size))
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, y)
    assert seen
    save_model("a.model", pipeline)
    assert np.array_equal(load_model("a.model").transform(X), pipeline.transform(X))
    if number % COMMANDS_EVERY == 0:
        for command in (
            "fit table.csv -l kind -m lmnn -o b.model -f -q",
            "transform b.model table.csv -o z.parquet -f -q",
            "neighbors b.model table.csv -o n.json -f -q",
            "info b.model --verify table.csv --json",
        ):
            assert main(command.split()) == 0
        assert main("fit missing.csv -l kind -o b.model -f".split()) == 2
    if number % AUTO_EVERY == 0:
        AutoMetric(n_jobs=1, random_state=0).fit(X, y)


def soak(rounds: int) -> None:
    """Go through some rounds in this folder, and compare what is used after them and before."""
    iris = load_dataset("iris")
    X, y = iris.data[::3], iris.target[::3]
    pd.DataFrame(X, columns=list("abcd")).assign(kind=y).to_csv("table.csv", index=False)
    warm = max(rounds // 5, 2 * len(ESTIMATORS))
    for number in range(warm):
        one_round(number, X, y)
    before = used()
    for number in range(warm, rounds):
        one_round(number, X, y)
    after = used()
    print(rounds, before, after)
    for name in ("threads", "threads of Python", "files"):
        assert after[name] <= before[name], (before, after)
    assert after["memory"] - before["memory"] < MOST_GROWTH, (before, after)


@pytest.mark.parametrize("rounds", [24, pytest.param(200, marks=pytest.mark.extras)])
def test_nothing_grows(rounds, tmp_path):
    """In a process of its own: other tests open files and threads in theirs."""
    command = [sys.executable, "-W", "ignore", __file__, str(rounds)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


if __name__ == "__main__":
    soak(int(sys.argv[1]))
