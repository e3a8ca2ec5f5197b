"""The referee itself: its data, its formulas, and that it finds planted lies."""

import numpy as np
import oracles
import pytest
import referee
from adversary import PATTERNS, Problem, problem, problems
from attained import Mapped, column_maps
from numpy.testing import assert_allclose
from references import LONG, Choice, Divergence, Hinges, LogDet, RootRatio, inverse_and_log_det
from toy_data import blobs

pytestmark = pytest.mark.sampled(6)


def objectives(X, y):
    """One objective of every kind, with what ``oracles`` computes for components."""
    P = oracles.nearest_targets(oracles.squared_distances(X), y, 3)
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(y), 30), rng.integers(0, len(y), 30)
    kept = first != second
    v, similar = (X[first] - X[second])[kept], (y[first] == y[second])[kept]
    bounds, D = (0.5, 3.0), oracles.squared_distances
    weights = np.where(similar, *bounds)

    def hinges(L):
        return 0.7 * (oracles.lmnn_objective(X, y, P, L, 0.5) * 2 - (P * D(X, L)).sum())

    def choice(L):
        p = oracles.neighbor_probabilities(D(X, L))
        return p[oracles.other_class(y)].sum()

    return {
        "LMNN": (
            Hinges(X, y, P, pull=0.6, push=0.4),
            lambda L: oracles.lmnn_objective(X, y, P, L, 0.4),
        ),
        "Frobenius": (
            Hinges(X, y, P, pull=0.0, push=0.7, norm=True),
            lambda L: 0.5 * ((L.T @ L) ** 2).sum() + hinges(L),
        ),
        "MCML": (
            Divergence(X, y),
            lambda L: oracles.mcml_objective(X, oracles.same_class(y) * 1.0, L),
        ),
        "MCML, targets": (Divergence(X, y, P), lambda L: oracles.mcml_objective(X, P, L)),
        "MMC": (RootRatio(X, y, P), lambda L: oracles.mmc_ratio(X, y, P, L)),
        "NCA": (Choice(X, y), choice),
        "ITML": (
            LogDet(v, similar, bounds, 2.0),
            lambda L: oracles.itml_objective(L.T @ L, v, similar, weights, 2.0),
        ),
    }


KINDS = ["LMNN", "Frobenius", "MCML", "MCML, targets", "MMC", "NCA", "ITML"]


@pytest.mark.parametrize("kind", KINDS)
def test_objectives_are_those_of_the_oracles(kind):
    X, y = blobs(0, (7, 8, 6), 3)
    objective, oracle = objectives(X, y)[kind]
    rng = np.random.default_rng(1)
    for scale in (0.1, 0.5, 2.0):
        L = scale * rng.standard_normal((3, 3))
        found = objective.at(L)
        assert_allclose(float(found.value), oracle(L), rtol=1e-12)
        assert 0 < found.allowance < 1e-11 * max(1.0, float(found.value))


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_those_of_differences(kind):
    X, y = blobs(0, (7, 8, 6), 3)
    objective = objectives(X, y)[kind][0]
    task = Mapped(objective, column_maps(X)["residuals"])
    start = 0.3 * np.random.default_rng(2).standard_normal(9)
    differences = oracles.central_differences(lambda x: task(x)[0], start, step=1e-6)
    assert_allclose(task(start)[1], differences, rtol=1e-4, atol=1e-5)


def test_residuals_have_unit_spread_and_no_correlation():
    z = np.random.default_rng(0).standard_normal(50)
    X = np.c_[z, z + 1e-7 * np.random.default_rng(1).standard_normal(50), 2 * z, np.ones(50)]
    matrix = column_maps(X)["residuals"]
    assert matrix.shape == (4, 2)
    Z = X.astype(LONG) @ matrix
    Z = Z - Z.mean(axis=0)
    assert_allclose((Z.T @ Z / 50).astype(float), np.eye(2), atol=1e-10)


def test_inverse_and_determinant():
    A = np.random.default_rng(0).standard_normal((5, 5))
    inverse, log_det = inverse_and_log_det(A.astype(LONG))
    assert_allclose(inverse.astype(float), np.linalg.inv(A), rtol=1e-10)
    assert_allclose(float(log_det), np.linalg.slogdet(A)[1], rtol=1e-12)
    assert inverse_and_log_det(np.ones((2, 2), dtype=LONG))[1] == -np.inf


def test_problems_are_small_named_and_the_same_every_time():
    seen = set()
    for data in problems(8 * len(PATTERNS)):
        n, d = data.X.shape
        assert 8 <= n <= 60 and 1 <= d <= 6 and data.y.shape == (n,)
        assert 2 <= len(np.unique(data.y)) <= 4
        assert np.isfinite(data.X).all()
        seen.add((data.pattern, data.X.dtype))
        again = problem(data.number)
        assert (again.X == data.X).all() and (again.y == data.y).all()
    assert len(seen) == 2 * len(PATTERNS)


LIES = {
    "objective_": lambda model: setattr(model, "objective_", model.objective_ * (1 + 1e-6)),
    "the bound": lambda model: setattr(model, "duality_gap_", 0.0),
    "duality_gap_ is": lambda model: setattr(model, "duality_gap_", -1e-3),
    "without a warning": lambda model: setattr(model, "duality_gap_", 0.5),
    "not finite": lambda model: setattr(model, "objective_", np.nan),
}


@pytest.mark.parametrize("learner", [name for name in referee.LEARNERS if name != "NCA"])
@pytest.mark.parametrize("lie", [None, *LIES])
def test_planted_lies_are_found(monkeypatch, learner, lie):
    """A metric that is a little off, said to be the best; other wrong claims; and none."""
    honest = referee.fit

    def fit(*arguments):
        model, objective, told = honest(*arguments)
        if lie == "the bound":
            model.components_ = model.components_ * np.array([1.1, 0.9, 1.0])
            model.objective_ = float(objective.at(model.components_).value)
        if lie:
            LIES[lie](model)
        return model, objective, told

    monkeypatch.setattr(referee, "fit", fit)
    X, y = blobs(3, (10, 12), 3)
    with np.errstate(all="ignore"):
        found = referee.judge(Problem("blobs", 0, X, y), learner).violations
    if lie is None:
        assert not found
    else:
        assert any(lie in text for text in found), found
