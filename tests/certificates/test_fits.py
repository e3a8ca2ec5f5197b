"""What fits claim holds: every learner that proves something, on ordinary and on nasty data."""

import warnings
from pathlib import Path

import adversary
import learners
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lnml import LMNN
from lnml.certificates import verify
from lnml.cli import main
from lnml.datasets import load_dataset

# NCA's problem is not convex.
PROVERS = [
    learner
    for learner in [*learners.METHODS, learners.coupled(LMNN())]
    if type(learner).__name__ != "NCA"
]
names = pytest.mark.parametrize("learner", PROVERS, ids=learners.short_name)
# One problem of each of these patterns.
NASTY = (1, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 18)


def check(learner, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(learner).fit(X, y)
    found = verify(model.certificate(X, y), X, y)
    assert found.holds, found.reason
    assert found.objective == pytest.approx(model.objective_, rel=1e-9, abs=1e-300)
    return found


@names
@pytest.mark.parametrize("name", ["iris", "wine", "sonar"])
def test_bundled_data(name, learner):
    data = load_dataset(name)
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    assert check(learner, X, data.target).bound > 0


@names
def test_nasty_data(learner):
    for number in NASTY:
        problem = adversary.problem(number)
        try:
            check(learner, problem.X, problem.y)
        except AssertionError as error:
            raise AssertionError(f"{problem.name}: {error}") from error


@pytest.mark.parametrize("method", ["lmnn", "ln-lmnn"])
def test_command_line(
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    """From a table to a model whose proof holds."""
    monkeypatch.chdir(tmp_path)
    data = load_dataset("iris")
    frame = pd.DataFrame(data.data).add_prefix("x").assign(kind=np.asarray(data.target))
    frame.to_csv("iris.csv", index=False)
    command = f"fit iris.csv --label kind --method {method} --scale standard -o a.model --quiet"
    assert main(command.split()) == 0
    capsys.readouterr()
    assert main("info a.model --verify iris.csv".split()) == 0
    assert "The proof holds." in capsys.readouterr().out
