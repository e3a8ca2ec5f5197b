"""MMC against dense NumPy, finite differences and a conic solver."""

import numpy as np
import pytest
from devices import host, host_kernels
from oracles import (
    central_differences,
    mmc_ratio,
    nearest_targets,
    other_class,
    pull_scatter,
    root_sum,
    same_class,
    squared_distances,
)
from sdp import mmc_optimum
from toy_data import (
    blobs,
    device_targets,
    in_class_order,
    lattice,
    small_dataset,
    sorted_blobs,
    training_set,
)

from lnml.core.pairs import Edge
from lnml.kernels import get_kernels
from lnml.objectives.conditioning import scale_pull, whiten_pull
from lnml.objectives.mmc import GivenPairsObjective, MMCObjective, MMCTask
from lnml.solvers.path import solve as solve_objective
from lnml.solvers.problem import ObjectiveProblem

pytestmark = pytest.mark.usefixtures("device")

SOLVER = 1e-6


def targets_of(X, y, k):
    return same_class(y) * 1.0 if k is None else nearest_targets(squared_distances(X), y, k)


def solve(X, y, k, *, diagonal=False, tol=1e-4, start=None):
    """Solution by the library, and the target matrix; k None stands for the classes."""
    P = targets_of(X, y, k)
    problem = ObjectiveProblem(MMCObjective(training_set(X, y), diagonal), 100)
    targets = None if k is None else device_targets(in_class_order(P, y))
    return problem.solve(targets, np.eye(X.shape[1]) if start is None else start, tol=tol), P


def optimum_of(X, y, P, diagonal):
    """Optimum over standardised columns, whose problem is the same and scaled well."""
    X = X / X.std(axis=0)
    differences = (X[:, None] - X[None])[other_class(y)]
    return mmc_optimum(pull_scatter(X, P), differences, diagonal)


def assert_certified(solution, X, y, P, optimum, tol):
    assert solution.objective == pytest.approx(mmc_ratio(X, y, P, solution.components), rel=1e-8)
    D = squared_distances(X, solution.components)
    assert root_sum(D, y) == pytest.approx(1.0, rel=1e-8)
    assert solution.bound <= optimum * (1.0 + SOLVER)
    assert solution.objective >= optimum * (1.0 - SOLVER)
    assert solution.converged
    assert solution.gap <= tol
    assert solution.objective <= optimum * (1.0 + 1.1 * tol + SOLVER)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(
    "seed, class_sizes, n_features, k",
    [
        (0, [10, 10], 2, None),
        (1, [7, 6, 7], 3, None),
        (2, [10, 8], 3, 2),
        (3, [9, 1, 8], 2, 3),
        (4, [8, 1, 1, 6], 3, None),
        (5, [6, 6, 6], 1, 1),
        (6, [9, 9], 4, 30),
    ],
)
def test_bound_optimum_objective(seed, class_sizes, n_features, k, diagonal):
    X, y = blobs(seed, class_sizes, n_features)
    solution, P = solve(X, y, k, diagonal=diagonal)
    assert_certified(solution, X, y, P, optimum_of(X, y, P, diagonal), tol=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("name", ["iris", "wine", "balance_scale"])
def test_optimum_on_real_data(name, diagonal):
    X, y = small_dataset(name, 30)
    y = np.unique(y, return_inverse=True)[1]
    solution, P = solve(X, y, None, diagonal=diagonal)
    assert_certified(solution, X, y, P, optimum_of(X, y, P, diagonal), tol=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
def test_duplicates_across_classes(diagonal):
    X = lattice(0, 40, 2)
    y = np.repeat([0, 1], 20)
    assert (squared_distances(X)[other_class(y)] == 0).any()
    solution, P = solve(X, y, None, diagonal=diagonal)
    assert_certified(solution, X, y, P, optimum_of(X, y, P, diagonal), tol=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
def test_optimum_of_any_start(diagonal):
    X, y = blobs(7, [9, 9], 3)
    optimum = optimum_of(X, y, same_class(y) * 1.0, diagonal)
    starts = [
        1e-6 * np.eye(3),
        1e6 * np.eye(3),
        np.diag([0.0, 1.0, 1.0]),
        np.diag([0.0, 0.0, 1.0]),
        np.random.default_rng(7).standard_normal((3, 3)),
    ]
    for start in starts:
        solution, P = solve(X, y, None, diagonal=diagonal, start=start)
        assert_certified(solution, X, y, P, optimum, tol=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("column", [np.zeros(18), np.full(18, 1e6)])
def test_constant_column(column, diagonal):
    X, y = blobs(8, [9, 9], 3)
    X[:, 1] = column
    solution, P = solve(X, y, None, diagonal=diagonal)
    optimum = optimum_of(X[:, [0, 2]], y, P, diagonal)
    assert_certified(solution, X, y, P, optimum, tol=1e-4)
    np.testing.assert_array_equal(solution.components[:, 1], 0.0)


@pytest.mark.parametrize("diagonal", [False, True])
def test_columns_of_very_different_scale(diagonal):
    X, y = blobs(9, [9, 9], 3)
    X = X * [1e-6, 1.0, 1e6]
    solution, P = solve(X, y, None, diagonal=diagonal)
    assert_certified(solution, X, y, P, optimum_of(X, y, P, diagonal), tol=1e-4)


def test_float32():
    X, y = blobs(10, [10, 9], 3)
    X = X.astype(np.float32)
    solution, P = solve(X, y, 3, tol=1e-3)
    optimum = optimum_of(X.astype(float), y, P, False)
    exact = mmc_ratio(X, y, P, solution.components)
    assert solution.objective == pytest.approx(exact, rel=1e-4)
    assert solution.bound <= optimum * (1 + 1e-4)
    assert solution.converged


def test_low_rank_is_measured_against_any_rank():
    X, y = blobs(11, [9, 9, 9], 3)
    solution, P = solve(X, y, None, start=np.eye(1, 3))
    assert solution.components.shape == (1, 3)
    assert solution.converged
    assert solution.bound <= optimum_of(X, y, P, False) * (1 + SOLVER) <= solution.objective
    assert solution.objective == pytest.approx(mmc_ratio(X, y, P, solution.components), rel=1e-8)


@pytest.mark.parametrize("diagonal", [False, True])
def test_similar_pairs_that_do_not_differ(diagonal):
    """A column that tells the classes apart: the minimum is zero, and said to be useless."""
    X, y = blobs(12, [8, 8], 3)
    X[:, 1] = y
    with pytest.warns(UserWarning, match="PCA"):
        solution, P = solve(X, y, None, diagonal=diagonal)
    assert solution.objective < 1e-20
    assert solution.bound == 0.0
    assert solution.gap < 1e-6
    assert mmc_ratio(X, y, P, solution.components) < 1e-20
    assert root_sum(squared_distances(X, solution.components), y) == pytest.approx(1.0)
    assert len(solution.history) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_more_directions_than_rows(dtype):
    X, y = blobs(13, [4, 4], 12)
    with pytest.warns(UserWarning, match="PCA"):
        solution, P = solve(X.astype(dtype), y, None)
    assert mmc_ratio(X, y, P, solution.components) < (1e-20 if dtype == np.float64 else 1e-10)


def test_a_start_that_sees_nothing():
    X, y = blobs(14, [8, 8], 3)
    X[:, 0] = 5.0
    solution, P = solve(X, y, None, start=np.eye(1, 3))
    assert np.isfinite(solution.components).all()
    assert solution.objective == pytest.approx(mmc_ratio(X, y, P, solution.components), rel=1e-8)
    objective = MMCObjective(training_set(X, y), False)
    costs = objective.pair_costs(np.eye(1, 3), device_targets(P)).values
    np.testing.assert_array_equal(costs, 0.0)


def make_task(seed, diagonal, k=None):
    X, y = sorted_blobs(seed, [12, 1, 15], 3)
    training = training_set(X, y)
    P = targets_of(X, y, k)
    pull = np.ones(3) if k is None else Edge(device_targets(P))
    condition = scale_pull if diagonal else whiten_pull
    conditioning = condition(training.kernels, training.points, pull)

    def roots(L):
        return training.kernels.root_sums(training.kernels.embed(conditioning.points, L))

    return MMCTask(roots, conditioning, diagonal), X, y, P


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_gradient(n_rows, k):
    task, *_ = make_task(0, False, k)
    components = np.random.default_rng(1).standard_normal((n_rows, 3))
    _, gradient = task.value_and_gradient(components)
    expected = central_differences(lambda L: task.value_and_gradient(L)[0], components)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    assert abs(np.vdot(gradient, components)) <= 1e-9 * np.abs(gradient).max()


def test_gradient_of_a_diagonal_metric():
    task, *_ = make_task(1, True)
    diagonal = np.random.default_rng(1).uniform(0.5, 2.0, 3)
    _, gradient = task.value_and_gradient(np.diag(diagonal))
    np.testing.assert_array_equal(gradient - np.diag(np.diag(gradient)), 0.0)
    expected = central_differences(lambda l: task.value_and_gradient(np.diag(l))[0], diagonal)
    np.testing.assert_allclose(np.diag(gradient), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("k", [None, 2])
def test_bound_holds_at_any_metric(k, diagonal):
    task, X, y, P = make_task(2, diagonal, k)
    optimum = optimum_of(X, y, P, diagonal)
    rng = np.random.default_rng(2)
    for _ in range(5):
        components = task.admissible(rng.standard_normal((3, 3)))
        seen = task.certify(components)
        original = task.to_original(components, 3)
        assert seen.objective == pytest.approx(mmc_ratio(X, y, P, original), rel=1e-10)
        assert 0.0 < seen.bound <= optimum * (1 + SOLVER) <= seen.objective * (1 + 2 * SOLVER)


def test_pair_costs_add_up_to_the_objective():
    X, y = sorted_blobs(4, [14, 11, 8], 3)
    components = 7.0 * np.random.default_rng(4).standard_normal((2, 3))
    P = nearest_targets(squared_distances(X, components), y, 2)
    pairs = device_targets(P)
    problem = ObjectiveProblem(MMCObjective(training_set(X, y), False), 1)
    costs = host(problem.pair_costs(components, pairs))
    D = squared_distances(X, components)
    np.testing.assert_allclose(costs, (D / root_sum(D, y) ** 2)[host(pairs).pairs()], rtol=1e-9)
    assert costs.sum() == pytest.approx(mmc_ratio(X, y, P, components), rel=1e-9)
    assert problem.free_term(components) == 0.0


def test_sum_of_lengths():
    differences = np.random.default_rng(5).standard_normal((30, 4))
    differences[3] = 0.0
    components = np.random.default_rng(6).standard_normal((2, 4))
    kernels = host_kernels()
    points = kernels.points(differences, np.array([0, 30]))
    total, slopes = kernels.length_sums(points, components)
    lengths = np.linalg.norm(differences @ components.T, axis=1)
    assert total == pytest.approx(lengths.sum(), rel=1e-9)
    seen = lengths > 0
    expected = (differences[seen].T * (0.5 / lengths[seen])) @ differences[seen]
    np.testing.assert_allclose(slopes, expected, rtol=1e-9)
    nothing = kernels.points(np.zeros((2, 4)), np.array([0, 2]))
    assert kernels.length_sums(nothing, components)[0] == 0.0


@pytest.mark.parametrize("diagonal", [False, True])
def test_pairs_against_a_conic_solver(diagonal):
    """Columns 1 and 2: no dissimilar pair differs in the one, no pair at all in the other."""
    rng = np.random.default_rng(7)
    differences = rng.standard_normal((40, 5))
    similar = np.arange(40) % 3 > 0
    differences[~similar, 1] = 0.0
    differences[:, 2] = 0.0
    objective = GivenPairsObjective(get_kernels(), differences, similar, diagonal)
    solution = solve_objective(objective, None, np.eye(5), tol=1e-4, max_iter=100)
    S = differences[similar].T @ differences[similar]
    kept = [0, 1, 3, 4]
    optimum = mmc_optimum(S[np.ix_(kept, kept)], differences[~similar][:, kept], diagonal)
    lengths = np.linalg.norm(differences @ solution.components.T, axis=1)
    assert lengths[~similar].sum() == pytest.approx(1.0, rel=1e-8)
    assert (lengths[similar] ** 2).sum() == pytest.approx(solution.objective, rel=1e-8)
    assert solution.bound <= optimum * (1 + SOLVER)
    assert optimum * (1 - SOLVER) <= solution.objective <= optimum * (1 + 2e-4)
    np.testing.assert_array_equal(solution.components[:, 2], 0.0)
