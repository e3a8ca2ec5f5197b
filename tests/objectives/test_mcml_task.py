"""The parts of the MCML objective against dense NumPy and finite differences."""

import numpy as np
import pytest
from devices import host
from oracles import (
    central_differences,
    laplacian,
    mcml_objective,
    mcml_pair_costs,
    nearest_targets,
    neighbor_probabilities,
    pull_scatter,
    same_class,
    squared_distances,
)
from toy_data import device_targets, sorted_blobs, training_set

from lnml.objectives.conditioning import ideal_pull, whiten_pull
from lnml.objectives.mcml import MCMLObjective, MCMLTask, target_counts
from lnml.solvers.problem import ObjectiveProblem

pytestmark = pytest.mark.usefixtures("device")

SIZES = [12, 1, 15, 9]


def make_task(seed, k=None, n_features=3):
    """A task for k targets a row, or all of the class, and what a dense computation needs."""
    X, y = sorted_blobs(seed, SIZES, n_features)
    training = training_set(X, y)
    P = same_class(y) * 1.0 if k is None else nearest_targets(squared_distances(X), y, k)
    targets = None if k is None else device_targets(P)
    pull = ideal_pull(training.points, targets)
    conditioning = whiten_pull(training.kernels, training.points, pull)
    return MCMLTask(training.kernels, conditioning, targets), conditioning, X, y, P


def random_components(seed, n_rows, n_features=3, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((n_rows, n_features))


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_gradient(k, n_rows, scale):
    task, *_ = make_task(0, k)
    components = random_components(1, n_rows, scale=scale)
    _, gradient = task.value_and_gradient(components)
    expected = central_differences(lambda L: task.value_and_gradient(L)[0], components)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("k", [None, 1, 3, 20])
def test_rows_by_their_number_of_targets(k):
    task, _, _, _, P = make_task(7, k)
    sizes = P.sum(axis=1)
    expected = {size: (sizes == size).sum() for size in sizes[sizes > 0]}
    assert target_counts(task.kernels, task.points, task.targets) == expected
    assert task.n_counted == (sizes > 0).sum()
    assert task.log_sizes == pytest.approx(np.log(sizes[sizes > 0]).sum(), rel=1e-12)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_value(k):
    task, conditioning, X, _, P = make_task(1, k)
    components = random_components(2, 3, scale=3.0)
    value, _ = task.value_and_gradient(components)
    original = conditioning.to_original(components, 3)
    assert value == pytest.approx(mcml_objective(X, P, original), rel=1e-10)
    at_zero = mcml_objective(X, P, np.zeros((1, 3)))
    assert task.objective_at_zero == pytest.approx(at_zero, rel=1e-12)


@pytest.mark.parametrize("k", [None, 3])
def test_dual_point_is_the_entropy_of_the_model(k):
    """Its matrix is the gradient in M, its bound the entropy of rows that have targets."""
    task, conditioning, X, _, P = make_task(2, k)
    components = random_components(3, 3, scale=2.0)
    point = task.dual_point(components)
    original = conditioning.to_original(components, 3)
    sizes = P.sum(axis=1)
    q = neighbor_probabilities(squared_distances(X, original))
    entropy = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)[sizes > 0].sum()
    expected = entropy - np.log(sizes[sizes > 0]).sum()
    assert point.value == pytest.approx(expected, rel=1e-9)
    target_share = P / np.maximum(sizes, 1.0)[:, None]
    difference = target_share - np.where(sizes[:, None] > 0, q, 0.0)
    in_original = X.T @ laplacian(difference) @ X
    to_original = np.linalg.inv(conditioning.matrix)
    matrix = to_original.T @ point.matrix @ to_original
    np.testing.assert_allclose(matrix, in_original, atol=1e-9 * np.abs(in_original).max())
    _, gradient = task.value_and_gradient(components)
    np.testing.assert_allclose(gradient, 2.0 * components @ point.matrix, rtol=1e-8)


@pytest.mark.parametrize("k", [None, 3])
def test_pull_is_the_weighted_target_scatter(k):
    task, conditioning, X, _, P = make_task(3, k)
    weights = P / np.maximum(P.sum(axis=1), 1.0)[:, None]
    scatter = conditioning.matrix.T @ pull_scatter(X, weights) @ conditioning.matrix
    np.testing.assert_allclose(scatter, np.diag(task.pull), atol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_pair_costs_add_up_to_the_objective(k):
    X, y = sorted_blobs(4, [14, 11, 8], 3)
    components = random_components(4, 2)
    D = squared_distances(X, components)
    P = nearest_targets(D, y, k)
    pairs = device_targets(P)
    problem = ObjectiveProblem(MCMLObjective(training_set(X, y)), 1)
    costs = host(problem.pair_costs(components, pairs))
    np.testing.assert_allclose(costs, mcml_pair_costs(D, k)[host(pairs).pairs()], rtol=1e-10)
    assert costs.sum() == pytest.approx(mcml_objective(X, P, components), rel=1e-10)
    assert problem.free_term(components) == 0.0


def test_pair_costs_of_rows_without_pairs():
    X, y = sorted_blobs(5, [6, 1, 5], 2)
    P = nearest_targets(squared_distances(X), y, 2)
    P[2] = 0.0
    costs = host(
        ObjectiveProblem(MCMLObjective(training_set(X, y)), 1).pair_costs(
            np.eye(2), device_targets(P)
        )
    )
    assert costs.size == P.sum()
    assert costs.sum() == pytest.approx(mcml_objective(X, P, np.eye(2)), rel=1e-10)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_best_scale_is_about_the_minimum_along_the_ray(scale):
    task, *_ = make_task(6)
    components = random_components(6, 3, scale=scale)

    def along_ray(log_scale):
        return task.value_and_gradient(np.exp(log_scale / 2) * components)[0]

    grid = np.linspace(-30, 30, 601)
    least = min(along_ray(t) for t in grid)
    found = along_ray(np.log(task.best_scale(components)))
    assert found <= least + 0.02 * (task.objective_at_zero - least)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_the_last_pass_over_all_pairs_is_remembered(n_rows):
    """The same metric again, or its dual point, takes none; results are those of a new task."""
    task, fresh = make_task(0, k=2)[0], make_task(0, k=2)[0]
    here, there = random_components(1, n_rows), random_components(2, n_rows)
    task.value_and_gradient(there)
    value, gradient = task.value_and_gradient(here)
    assert task.n_evaluations == 2
    again = task.value_and_gradient(here.copy())
    assert (again[0], task.n_evaluations) == (value, 2)
    np.testing.assert_array_equal(again[1], gradient)
    point = task.dual_point(here)
    # The full moment of a metric of low rank is another sum.
    assert task.n_evaluations == (2 if n_rows == 3 else 3)
    expected = fresh.dual_point(here)
    assert point.value == expected.value
    np.testing.assert_array_equal(point.matrix, expected.matrix)
    here *= 2.0
    assert task.value_and_gradient(here)[0] != value
