"""MCML solutions against a conic solver."""

import numpy as np
import pytest
from oracles import mcml_objective, nearest_targets, same_class, squared_distances
from sdp import mcml_optimum
from toy_data import blobs, device_targets, in_class_order, training_set

from lnml.objectives.mcml import MCMLObjective
from lnml.solvers.problem import ObjectiveProblem

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.sampled(3)]

SOLVER = 1e-6


def solve(X, y, P, tol, start=None):
    """Solution by the library; P None stands for all rows of the same class."""
    problem = ObjectiveProblem(MCMLObjective(training_set(X, y)), 100)
    targets = None if P is None else device_targets(in_class_order(P, y))
    start = np.eye(X.shape[1]) if start is None else start
    return problem.solve(targets, start, tol=tol)


def assert_certified(solution, X, P, optimum, tol, accuracy=SOLVER):
    exact = mcml_objective(X, P, solution.components)
    scale = max(optimum, 1.0)
    assert solution.objective == pytest.approx(exact, rel=accuracy, abs=accuracy)
    assert solution.bound <= optimum + accuracy * scale
    assert solution.objective >= optimum - accuracy * scale
    assert solution.converged
    assert solution.gap <= tol
    assert solution.objective <= optimum + tol * scale


@pytest.mark.parametrize(
    "seed, class_sizes, n_features, k",
    [
        (0, [10, 10], 2, None),
        (1, [7, 6, 7], 3, None),
        (2, [10, 8], 3, 2),
        (3, [9, 1, 8], 2, 3),
        (4, [8, 1, 1, 6], 3, None),
        (5, [6, 6, 6], 1, 1),
        (6, [5, 5], 2, 30),
    ],
)
def test_bound_optimum_objective(seed, class_sizes, n_features, k):
    X, y = blobs(seed, class_sizes, n_features)
    P = same_class(y) * 1.0 if k is None else nearest_targets(squared_distances(X), y, k)
    solution = solve(X, y, None if k is None else P, tol=1e-4)
    assert_certified(solution, X, P, mcml_optimum(X, P), tol=1e-4)


def test_optimum_of_any_start():
    X, y = blobs(7, [9, 9], 2)
    P = same_class(y) * 1.0
    optimum = mcml_optimum(X, P)
    rng = np.random.default_rng(7)
    for start in (1e-3 * np.eye(2), 1e3 * np.eye(2), rng.standard_normal((2, 2))):
        assert_certified(solve(X, y, None, 1e-3, start), X, P, optimum, tol=1e-3)


@pytest.mark.parametrize("column", [np.zeros(18), np.full(18, 1e6)])
def test_constant_column(column):
    X, y = blobs(8, [9, 9], 3)
    X[:, 1] = column
    P = nearest_targets(squared_distances(X), y, 2)
    assert_certified(solve(X, y, P, tol=1e-3), X, P, mcml_optimum(X[:, [0, 2]], P), tol=1e-3)


def test_repeated_column():
    X, y = blobs(9, [9, 9], 3)
    X[:, 1] = X[:, 0]
    P = nearest_targets(squared_distances(X), y, 2)
    assert_certified(solve(X, y, P, tol=1e-3), X, P, mcml_optimum(X[:, [0, 2]], P), tol=1e-3)


def test_separable_data_have_an_infimum_of_zero():
    """Two far pairs: each row's partner is certain in the limit."""
    X = np.array([[0.0], [1.0], [100.0], [101.0]])
    y = np.array([0, 0, 1, 1])
    solution = solve(X, y, None, tol=1e-3)
    assert 0.0 <= solution.bound <= solution.objective <= 1e-6
    assert solution.converged


@pytest.mark.parametrize("dtype, accuracy", [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("seed, class_sizes, k", [(69, [6, 7], 3), (7, [6, 7, 9], 1)])
def test_identical_targets(seed, class_sizes, k, dtype, accuracy):
    """Nothing pulls, so the metric may grow without end: its objective must still be the true one.

    Rows of the other class are identical too, which keeps the optimum above zero.
    """
    X, y = blobs(seed, class_sizes, 3, separation=8.0)
    X = np.sign(X).astype(dtype)
    P = nearest_targets(squared_distances(X), y, k)
    solution = solve(X, y, P, tol=1e-3)
    exact = mcml_objective(X, P, solution.components)
    assert solution.objective == pytest.approx(exact, rel=accuracy)
    assert solution.objective >= mcml_optimum(X.astype(float), P) * (1.0 - accuracy)


def test_more_directions_than_rows():
    """Separable: the objective reported is the objective at the components, however small."""
    X, y = blobs(391, [3, 1], 4, separation=0.5)
    X[:, 0] = 4.0
    P = nearest_targets(squared_distances(X), y, 3)
    solution = solve(X, y, P, tol=1e-3)
    assert solution.objective == pytest.approx(mcml_objective(X, P, solution.components), abs=1e-3)


def test_float32():
    X, y = blobs(10, [10, 9], 3)
    X = X.astype(np.float32)
    P = nearest_targets(squared_distances(X), y, 3)
    solution = solve(X, y, P, tol=1e-3)
    optimum = mcml_optimum(X.astype(float), P)
    assert_certified(solution, X, P, optimum, tol=1e-3, accuracy=1e-5)
