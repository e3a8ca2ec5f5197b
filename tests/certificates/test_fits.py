"""What fits claim holds: every learner that proves something, on ordinary and on nasty data."""

import warnings
from pathlib import Path

import adversary
import learners
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lnml import LMNN, RelativeComparisons, SupportVectorMetric
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

pytestmark = pytest.mark.sampled(4)


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


def shared_code(code):
    """Return rows whose classes only the difference of two columns tells, in all but three."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3))
    X[:, 0] = X[:, 1] + 5 * y + 0.1 * X[:, 2]
    X[[3, 25, 47], :2] = code
    return X, y


@names
@pytest.mark.parametrize("code", [1e16, 1e20, 1e36])
def test_a_code_in_two_columns_hides_nothing(code, learner):
    """Rows with the code differ from others by more than these say about the classes."""
    X, y = shared_code(code)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = clone(learner).fit(X, y)
    if model.certificate_ is None:
        return
    found = verify(model.certificate_, X, y)
    assert found.holds, found.reason
    assert found.bound == 0.0 or model.certificate_.left_out == 0
    if found.bound == 0.0:
        assert any(
            "holds 1e" in str(warning.message) or "raise max_iter" in str(warning.message)
            for warning in said
        )


def test_triplets_of_huge_rows_count():
    """Coordinates of rows with the code are rounded to more than a margin."""
    X, y = shared_code(1e20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SupportVectorMetric().fit(X, y)
    found = verify(model.certificate_, X, y)
    assert found.holds, found.reason


@pytest.mark.parametrize("learner", [SupportVectorMetric(), RelativeComparisons()])
@pytest.mark.filterwarnings("ignore")
def test_squared_norms_that_overflow_are_refused(learner):
    X, y = 1e150 * load_dataset("iris").data, load_dataset("iris").target
    with pytest.raises(ValueError, match="fourth powers"):
        clone(learner).fit(X, y)


@pytest.mark.parametrize("learner", [SupportVectorMetric(), RelativeComparisons()])
def test_large_fits_of_other_methods_are_proved_from_rows(learner, monkeypatch):
    """Only LMNN has a proof that does without the rows."""
    monkeypatch.setattr("lnml.objectives.triplet_proof.LARGE", 0.0)
    iris = load_dataset("iris")
    model = clone(learner).fit(iris.data, iris.target)
    assert model.converged_
    assert verify(model.certificate_, iris.data, iris.target).holds
