"""Mixtures of dual points of LMNN, against a conic solver."""

import cvxpy as cp
import numpy as np
import pytest

from lnml.core.solution import DualPoint
from lnml.objectives.mixture import RecentPoints

WEIGHT = 0.5


def best_bound(points):
    """Largest sum of slopes of a feasible mixture, straight from the formula."""
    shares = cp.Variable(len(points), nonneg=True)
    pushes = sum(share * point.matrix for share, point in zip(shares, points, strict=True))
    dual = WEIGHT * np.eye(len(points[0].matrix)) + pushes
    total = sum(share * point.value for share, point in zip(shares, points, strict=True))
    problem = cp.Problem(cp.Maximize(total), [cp.sum(shares) <= 1.0, dual >> 0])
    return float(problem.solve(solver=cp.CLARABEL))


def almost_feasible(seed, n_points=5, size=6):
    """Points of about the same value, each infeasible in directions of its own."""
    rng = np.random.default_rng(seed)
    # The optimum of its problem uses up the pull in all directions but one.
    base = -WEIGHT * np.diag(np.repeat([1.0, 0.5], [size - 1, 1]))
    for _ in range(n_points):
        noise = 0.01 * rng.normal(size=(size, size))
        yield DualPoint(100.0 + rng.normal(), base + noise + noise.T)


def alone(point):
    shortfall = max(0.0, -(np.linalg.eigvalsh(point.matrix)[0] + WEIGHT))
    return point.value * WEIGHT / (WEIGHT + shortfall)


@pytest.mark.parametrize("seed", range(4))
def test_mixture_reaches_what_can_be_proved(seed):
    recent, points = RecentPoints(np.full(6, WEIGHT), WEIGHT), list(almost_feasible(seed))
    optimum = best_bound(points)
    # A third of the gap that the best point leaves alone.
    tol = (1.0 - max(map(alone, points)) / optimum) / 3.0
    for point in points:
        found = recent.mixed(point, alone(point), optimum, tol)
    assert (1.0 - tol) * optimum <= found.bound <= optimum * (1.0 + 1e-6)
    # The shares prove it: scaled until it is feasible, the mixture has this sum of slopes.
    value = sum(share * each.value for share, each in zip(found.shares, points, strict=True))
    push = sum(share * each.matrix for share, each in zip(found.shares, points, strict=True))
    assert 0.0 <= min(found.shares) and sum(found.shares) <= 1.0 + 1e-12
    assert found.bound == pytest.approx(alone(DualPoint(value, push)), rel=1e-12)


def test_points_far_off_are_not_mixed():
    recent, points = RecentPoints(np.full(6, WEIGHT), WEIGHT), list(almost_feasible(0))
    for point in points:
        recent.mixed(point, alone(point), 101.0, 0.1)
    far = DualPoint(100.0, -3.0 * np.eye(6))
    assert recent.mixed(far, alone(far), 101.0, 0.1) == (alone(far), (1.0,))
