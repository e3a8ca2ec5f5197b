"""A path of trace penalties: the same optima as separate fits, in a third of the evaluations."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import scale

from lnml import ITML, LMNN, LNML, MCML, MMC, NCA, trace_path
from lnml.certificates import verify
from lnml.core.checks import LEAST_PENALTY
from lnml.core.solution import Solution
from lnml.datasets import load_dataset
from lnml.objectives.base import Form
from lnml.solvers.path import FOLLOWERS

LEARNERS = [LMNN(), MCML(), MMC(), MMC(diagonal=True)]


def standardized(name):
    data = load_dataset(name)
    return scale(data.data), data.target


def evaluations(model):
    return sum(line["n_evaluations"] for line in model.history_)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_every_metric_is_certified_and_as_good_as_a_fit_of_its_own(learner):
    X, y = standardized("iris")
    path = trace_path(learner, X, y, n_penalties=6)
    assert (np.diff(path.trace_penalties) < 0).all()
    assert (path.gaps <= learner.tol).all()
    for penalty, model in zip(path.trace_penalties, path.models, strict=True):
        alone = clone(learner).set_params(trace_penalty=float(penalty)).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2 * learner.tol)
        assert model.trace_penalty == penalty
        checked = verify(model.certificate(X, y), X, y)
        assert checked.holds, checked.reason
    assert not hasattr(learner, "components_")


EXTRAS = [pytest.param(name, marks=pytest.mark.extras) for name in ("wine", "sonar")]


@pytest.mark.parametrize("name", ["iris", *EXTRAS])
@pytest.mark.parametrize(
    ("learner", "share"), [(LMNN(), 0.55), (MCML(), 1 / 3), (MMC(), 1 / 3)], ids=str
)
def test_fewer_evaluations_than_fits_apart(learner, share, name):
    X, y = standardized(name)
    path = trace_path(learner, X, y)
    apart = sum(
        evaluations(clone(learner).set_params(trace_penalty=float(penalty)).fit(X, y))
        for penalty in path.trace_penalties
    )
    assert path.n_evaluations.sum() <= share * apart


def test_objectives_fall_with_the_penalty():
    X, y = standardized("wine")
    path = trace_path(LMNN(), X, y, n_penalties=8)
    assert (np.diff(path.objectives) < 0).all()


def test_a_list_in_any_order_with_zero():
    X, y = standardized("iris")
    path = trace_path(LMNN(), X, y, trace_penalties=[0.1, 0.0, 1.0, 0.1])
    assert path.trace_penalties.tolist() == [1.0, 0.1, 0.0]
    alone = LMNN().fit(X, y)
    assert path.objectives[-1] == pytest.approx(alone.objective_, rel=2e-3)


def test_models_work_like_fitted_ones():
    X, y = standardized("iris")
    path = trace_path(LMNN(), X, y, n_penalties=3)
    model = path.models[0]
    assert model.transform(X).shape == X.shape
    assert model.target_neighbors_.shape == (150, 150)
    assert model.n_features_in_ == 4
    scores = path.scores(X[::2], y[::2], X[1::2], y[1::2], n_neighbors=3)
    assert ((scores > 0.85) & (scores <= 1.0)).all()


def test_given_targets_and_low_rank():
    X, y = standardized("iris")
    targets = LMNN(n_neighbors=2).fit(X, y).target_neighbors_
    path = trace_path(LMNN(), X, y, trace_penalties=[1.0, 0.1], target_neighbors=targets)
    assert all(model.target_neighbors_.nnz == targets.nnz for model in path.models)
    flat = trace_path(LMNN(n_components=2), X, y, trace_penalties=[1.0, 0.1])
    assert [c.shape for c in flat.components] == [(2, 4), (2, 4)]


def test_a_point_that_does_not_converge_is_solved_anew(monkeypatch):
    """Both solves count."""
    X, y = standardized("iris")

    def lost(task, components, run):
        record = {"iteration": 1, "objective": 1e9, "bound": 0.0, "gap": 1.0, "n_evaluations": 7}
        run.report(components, record)
        task.search(components, 0.1)
        task.keep_dual(components, 0.1, task.evaluate(components, 0.1))
        return Solution(components, 1e9, 0.0, 1.0, False)

    monkeypatch.setitem(FOLLOWERS, Form.HINGES, lost)
    path = trace_path(LMNN(), X, y, trace_penalties=[1.0, 0.1])
    alone = LMNN(trace_penalty=0.1).fit(X, y)
    assert (path.gaps <= 1e-3).all()
    np.testing.assert_array_equal(path.components[1], alone.components_)
    assert path.n_evaluations[1] == evaluations(alone) + 7


def test_a_callback_ends_a_path():
    X, y = standardized("iris")
    seen = []

    def callback(state):
        seen.append(state.record["iteration"])
        return len(seen) == 6

    path = trace_path(LMNN(callback=callback), X, y, trace_penalties=[3.0, 1.0, 0.3, 0.1])
    assert len(seen) == 6
    assert 1 <= len(path.models) == path.trace_penalties.size < 4


def test_no_penalty_below_rounding():
    """Columns of very different scales leave room for tiny penalties only."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = np.column_stack([1e6 * rng.standard_normal(40), 1e-2 * (y + rng.standard_normal(40))])
    for scales in ([1.0, 1.0], [1e3, 1e-3]):
        try:
            path = trace_path(MCML(), X * scales, y, n_penalties=3)
        except ValueError as error:
            assert "scale the columns first" in str(error)
        else:
            assert path.trace_penalties.min() >= LEAST_PENALTY


@pytest.mark.parametrize("learner", [LNML(), NCA(), ITML()], ids=str)
def test_no_path_without_convexity_or_a_penalty(learner):
    X, y = standardized("iris")
    with pytest.raises(TypeError, match="no path for"):
        trace_path(learner, X, y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trace_penalties": []}, "at least one"),
        ({"trace_penalties": [-1.0]}, "trace_penalty"),
        ({"trace_penalties": [np.nan]}, "trace_penalty"),
        ({"trace_penalties": [1e9]}, "too large"),
        ({"n_penalties": 0}, "n_penalties"),
    ],
)
def test_bad_lists(given, message):
    X, y = standardized("iris")
    with pytest.raises(ValueError, match=message):
        trace_path(LMNN(), X, y, **given)


def test_numpy_may_be_told_to_raise():
    X, y = (part[::3] for part in standardized("wine"))
    with np.errstate(all="raise"):
        assert len(trace_path(MCML(tol=0.1), X, y, n_penalties=2).models) == 2
