"""LMNN solutions against the semidefinite programme."""

import numpy as np
import pytest
from oracles import lmnn_objective, nearest_targets, squared_distances
from sdp import lmnn_optimum
from toy_data import blobs, device_targets, in_class_order, training_set

from lnml.core.pairs import Edge
from lnml.objectives.conditioning import whiten_pull
from lnml.objectives.lmnn import LMNNObjective, LMNNTask
from lnml.solvers.problem import ObjectiveProblem

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.sampled(3)]

SOLVER = 1e-6


def solve(X, y, P, push_weight, tol, start=None):
    """Solution by the library; its components refer to X as given."""
    problem = ObjectiveProblem(LMNNObjective(training_set(X, y), push_weight), 200)
    start = np.eye(X.shape[1]) if start is None else start
    return problem.solve(device_targets(in_class_order(P, y)), start, tol=tol)


def assert_certified(solution, X, y, P, push_weight, optimum, tol, accuracy=SOLVER):
    exact = lmnn_objective(X, y, P, solution.components, push_weight)
    scale = max(optimum, 1e-6 * push_weight * P.sum() * y.size)
    assert solution.objective == pytest.approx(exact, rel=accuracy, abs=accuracy * scale)
    assert solution.bound <= optimum + accuracy * scale
    assert solution.objective >= optimum - accuracy * scale
    assert solution.converged
    assert solution.gap <= tol
    assert solution.objective - solution.bound <= tol * max(solution.objective, scale) * (1 + 1e-9)
    assert solution.objective <= optimum + 1.01 * tol * scale


@pytest.mark.parametrize(
    "seed, class_sizes, n_features, k, push_weight",
    [
        (0, [15, 15], 2, 3, 0.5),
        (1, [10, 10, 10], 4, 1, 0.5),
        (2, [12, 8, 6], 3, 2, 0.1),
        (3, [14, 14], 4, 3, 0.9),
        (4, [9, 1, 12], 3, 3, 0.5),
        (5, [8, 8, 8], 1, 2, 0.3),
        (6, [11, 10], 4, 20, 0.7),
        (7, [2, 2, 2], 2, 1, 0.5),
    ],
)
def test_bound_optimum_objective(seed, class_sizes, n_features, k, push_weight):
    X, y = blobs(seed, class_sizes, n_features)
    P = nearest_targets(squared_distances(X), y, k)
    solution = solve(X, y, P, push_weight, tol=1e-4)
    optimum = lmnn_optimum(X, y, P, push_weight)
    assert_certified(solution, X, y, P, push_weight, optimum, tol=1e-4)


def test_optimum_of_any_start():
    X, y = blobs(8, [12, 12], 3)
    P = nearest_targets(squared_distances(X), y, 2)
    optimum = lmnn_optimum(X, y, P, 0.5)
    rng = np.random.default_rng(8)
    for start in (1e-3 * np.eye(3), 1e3 * np.eye(3), rng.standard_normal((3, 3))):
        solution = solve(X, y, P, 0.5, tol=1e-3, start=start)
        assert_certified(solution, X, y, P, 0.5, optimum, tol=1e-3)


def constant_column(X):
    X[:, 1] = 3.0
    return X


def repeated_column(X):
    X[:, 1] = X[:, 0]
    return X


def repeated_rows(X):
    """The same rows in other classes too: hinges that no metric can lower."""
    X[::2] = X[1::2][: X[::2].shape[0]]
    return X


def integers(X):
    return np.round(X)


@pytest.mark.parametrize("degenerate", [constant_column, repeated_column, repeated_rows, integers])
def test_degenerate_data(degenerate):
    X, y = blobs(9, [10, 10, 4], 3)
    X = degenerate(X)
    P = nearest_targets(squared_distances(X), y, 2)
    solution = solve(X, y, P, 0.5, tol=1e-3)
    assert_certified(solution, X, y, P, 0.5, lmnn_optimum(X, y, P, 0.5), tol=1e-3)


@pytest.mark.parametrize(
    "seed, class_sizes, n_features, separation, k, push_weight",
    [
        (38, [12, 10], 4, 0.5, 3, 0.05),
        (94, [3, 9], 4, 0.5, 1, 0.05),
        (22, [4, 4, 6], 3, 20.0, 3, 0.5),
        (13, [30, 30, 30], 10, 4.0, 3, 0.5),
    ],
)
def test_no_metric_at_all_is_not_the_end(seed, class_sizes, n_features, separation, k, push_weight):
    """A step may land at M = 0, where the gradient in L vanishes, far from the optimum."""
    X, y = blobs(seed, class_sizes, n_features, separation)
    P = nearest_targets(squared_distances(X), y, k)
    solution = solve(X, y, P, push_weight, tol=1e-3)
    assert solution.converged
    assert solution.gap <= 1e-3


def test_a_direction_in_which_nothing_pulls():
    """Target neighbours agree in the second column, so more metric there costs no pull."""
    X, y = blobs(14, [14, 14], 3)
    X[:, 1] = np.sign(X[:, 1])
    P = nearest_targets(squared_distances(X), y, 4) * (X[:, 1][:, None] == X[:, 1])
    solution = solve(X, y, P, 0.5, tol=1e-3)
    assert_certified(solution, X, y, P, 0.5, lmnn_optimum(X, y, P, 0.5), tol=1e-3)


def test_separable_data_have_an_optimum_near_zero():
    X, y = blobs(10, [10, 10], 3, separation=30.0)
    P = nearest_targets(squared_distances(X), y, 2)
    solution = solve(X, y, P, 0.5, tol=1e-3)
    assert_certified(solution, X, y, P, 0.5, lmnn_optimum(X, y, P, 0.5), tol=1e-3)


def test_float32():
    X, y = blobs(11, [15, 14], 3)
    X = X.astype(np.float32)
    P = nearest_targets(squared_distances(X), y, 3)
    solution = solve(X, y, P, 0.5, tol=1e-3)
    optimum = lmnn_optimum(X.astype(float), y, P, 0.5)
    assert_certified(solution, X, y, P, 0.5, optimum, tol=1e-3, accuracy=1e-5)


@pytest.mark.parametrize("smoothing", [0.01, 0.15, 1.0])
def test_bound_holds_at_any_metric_multipliers_and_smoothing(smoothing):
    X, y = blobs(12, [12, 10, 1], 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    P = nearest_targets(squared_distances(X), y, 2)
    optimum = lmnn_optimum(X, y, P, 0.4)
    training, targets = training_set(X, y), device_targets(P)
    conditioning = whiten_pull(training.kernels, training.points, Edge(targets))
    task = LMNNTask(training.kernels, conditioning, targets, 0.4)
    rng = np.random.default_rng(12)
    bounds = []
    for scale in (0.3, 1.0, 1.0, 3.0):
        components = scale * rng.standard_normal((3, 3))
        task.search(components, smoothing)
        bounds.append(task.evaluate(components, smoothing).bound)
        assert bounds[-1] <= optimum * (1 + SOLVER)
        task.update_multipliers(components, smoothing)
    assert max(bounds) > 0.0


def test_the_bound_of_a_working_set_holds_too():
    """Without the impostors of a full search the objective is not exact, the bound is a bound."""
    X, y = blobs(13, [12, 10], 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    P = nearest_targets(squared_distances(X), y, 2)
    training, targets = training_set(X, y), device_targets(P)
    conditioning = whiten_pull(training.kernels, training.points, Edge(targets))
    task = LMNNTask(training.kernels, conditioning, targets, 0.5)
    components = 2.0 * np.eye(3)
    task.search(5.0 * components, 0.1)
    seen = task.evaluate(components, 0.1)
    assert 0.0 < seen.bound <= lmnn_optimum(X, y, P, 0.5) * (1 + SOLVER)
