"""The Frobenius methods against a conic solver, and their parts against dense NumPy."""

import numpy as np
import pytest
from oracles import nearest_targets, same_class, smoothed_hinge, squared_distances, triplets
from scipy.optimize import check_grad, minimize_scalar
from sdp import frobenius_optimum
from toy_data import blobs, device_targets, in_class_order, sorted_blobs, training_set

from lnml import RelativeComparisons, SupportVectorMetric
from lnml.kernels import get_kernels
from lnml.objectives.frobenius import FrobeniusObjective, WeightedBasisObjective
from lnml.solvers.problem import ObjectiveProblem
from lnml.solvers.saddles import leave_saddle

pytestmark = pytest.mark.usefixtures("device")

SOLVER = 1e-6


@pytest.fixture(autouse=True)
def session():
    """As in a fit: small products are not shared out among threads."""
    with get_kernels().session():
        yield


def objective(near, far, components, C):
    M = components.T @ components
    hinge = 1.0 + np.einsum("tp,pq,tq->t", near, M, near) - np.einsum("tp,pq,tq->t", far, M, far)
    return 0.5 * (M**2).sum() + C * np.maximum(hinge, 0.0).sum()


def differences(X, y, P):
    i, j, l = triplets(P, y)
    return X[i] - X[j], X[i] - X[l]


def make_problem(X, y, C, basis, max_iter=300):
    training = training_set(X, y)
    if basis is None:
        return ObjectiveProblem(FrobeniusObjective(training, C), max_iter)
    return ObjectiveProblem(WeightedBasisObjective(training, C, basis), max_iter)


def bases(d, seed=0):
    """The full metric, and diagonal ones over several bases."""
    rng = np.random.default_rng(seed)
    return {
        "full": None,
        "identity": np.eye(d),
        "orthogonal": np.linalg.qr(rng.standard_normal((d, d)))[0] * rng.uniform(0.5, 2.0, d),
        "general": rng.standard_normal((d, d)),
        "overcomplete": rng.standard_normal((d, d * (d + 1) // 2 + 2)),
        "few": rng.standard_normal((d, 1)),
    }


KINDS = list(bases(2))


def assert_certified(found, near, far, C, optimum, tol, accuracy=SOLVER):
    exact = objective(near, far, found.components, C)
    scale = max(optimum, 1e-6 * C * len(near))
    assert found.objective == pytest.approx(exact, rel=accuracy, abs=accuracy * scale)
    assert found.bound <= optimum + accuracy * scale
    assert found.objective >= optimum - accuracy * scale
    assert found.converged
    assert found.gap <= tol
    assert found.objective - found.bound <= tol * max(found.objective, scale) * (1 + 1e-9)


SMALL = (2, [10, 8, 6], 3, 2)


@pytest.mark.parametrize(
    "seed, class_sizes, d, k, C, kind",
    [
        *((*SMALL, 1.0, kind) for kind in KINDS),
        (0, [12, 12], 2, 3, 1e-4, "full"),
        (1, [8, 8, 8], 4, 1, 0.01, "full"),
        (2, [12, 8], 3, 2, 100.0, "full"),
        (4, [9, 1, 12], 3, 3, 1e-4, "general"),
        (5, [5, 6], 12, 2, 1.0, "full"),
    ],
)
def test_bound_optimum_objective(seed, class_sizes, d, k, C, kind):
    X, y = blobs(seed, class_sizes, d)
    P = nearest_targets(squared_distances(X), y, k)
    basis = bases(d, seed)[kind]
    start = np.eye(d) if basis is None else basis.T
    targets = device_targets(in_class_order(P, y))
    found = make_problem(X, y, C, basis).solve(targets, start, tol=1e-4)
    near, far = differences(X, y, P)
    optimum = frobenius_optimum(near, far, C, basis)
    assert_certified(found, near, far, C, optimum, tol=1e-4)
    assert found.components.shape == start.shape


@pytest.mark.parametrize("scales", [[1.0, 1e3, 1.0], [1e-2, 1.0, 30.0]])
@pytest.mark.parametrize("kind", ["full", "identity"])
def test_columns_of_different_units(kind, scales):
    X, y = blobs(5, [12, 12, 6], 3, separation=2.0)
    P = nearest_targets(squared_distances(X), y, 2)
    X = X * scales
    found = make_problem(X, y, 1.0, bases(3)[kind]).solve(
        device_targets(in_class_order(P, y)), np.eye(3), tol=1e-3
    )
    near, far = differences(X, y, P)
    assert found.converged and found.gap <= 1e-3
    exact = objective(near, far, found.components, 1.0)
    assert found.objective == pytest.approx(exact, rel=SOLVER)


def constant_column(X):
    X[:, 1] = 3.0
    return X


def multiple_of_a_column(X):
    """The least norm puts weight on the larger column, not on their mean."""
    X[:, 1] = 10.0 * X[:, 0]
    return X


def repeated_rows(X):
    """The same rows in other classes too: hinges that no metric can lower."""
    X[::2] = X[1::2][: X[::2].shape[0]]
    return X


@pytest.mark.parametrize("kind", ["full", "identity", "overcomplete"])
@pytest.mark.parametrize("degenerate", [constant_column, multiple_of_a_column, repeated_rows])
def test_degenerate_data(kind, degenerate):
    X, y = blobs(9, [10, 10, 4], 3)
    X = degenerate(X)
    P = nearest_targets(squared_distances(X), y, 2)
    basis = bases(3)[kind]
    start = np.eye(3) if basis is None else basis.T
    targets = device_targets(in_class_order(P, y))
    found = make_problem(X, y, 1.0, basis).solve(targets, start, tol=1e-3)
    near, far = differences(X, y, P)
    assert_certified(
        found, near, far, 1.0, frobenius_optimum(near, far, 1.0, basis), tol=1e-3, accuracy=1e-5
    )


def test_optimum_of_any_start():
    X, y = blobs(8, [12, 12], 3)
    P = nearest_targets(squared_distances(X), y, 2)
    near, far = differences(X, y, P)
    optimum = frobenius_optimum(near, far, 1.0)
    problem = make_problem(X, y, 1.0, None)
    rng = np.random.default_rng(8)
    for start in (1e-3 * np.eye(3), 1e3 * np.eye(3), rng.standard_normal((3, 3)), np.eye(3)[:1]):
        start = np.vstack([start, np.zeros((3 - len(start), 3))])
        found = problem.solve(device_targets(in_class_order(P, y)), start, tol=1e-3)
        assert_certified(found, near, far, 1.0, optimum, tol=1e-3)


@pytest.mark.parametrize(
    "kind, C", [(kind, 1.0) for kind in KINDS] + [("full", 0.01), ("general", 0.01)]
)
def test_given_triplets(kind, C):
    rng = np.random.default_rng(3)
    given = rng.standard_normal((60, 3, 3)) * [1.0, 0.3, 2.0] + 100.0
    basis = bases(3)[kind]
    if basis is None:
        model = SupportVectorMetric(C=C, tol=1e-4, max_iter=300)
    else:
        model = RelativeComparisons(C=C, basis=basis, tol=1e-4, max_iter=300)
    model.fit_triplets(given)
    near, far = given[:, 0] - given[:, 1], given[:, 0] - given[:, 2]
    optimum = frobenius_optimum(near, far, C, basis)
    assert model.history_[-1]["bound"] <= optimum * (1 + SOLVER)
    assert optimum <= model.objective_ * (1 + SOLVER) <= optimum * (1 + 1.1e-4)
    assert model.objective_ == pytest.approx(objective(near, far, model.components_, C))
    assert model.converged_ and model.duality_gap_ <= 1e-4
    assert not hasattr(model, "classes_") and not hasattr(model, "target_neighbors_")


def make_task(kind, seed=0, C=0.7, d=3):
    X, y = sorted_blobs(seed, [12, 1, 15, 9], d)
    P = nearest_targets(squared_distances(X), y, 3)
    task = make_problem(X, y, C, bases(d)[kind]).objective.task(device_targets(P))
    coordinates = task.coordinates
    return coordinates, task, X, y, P


def random_components(task, kind, seed):
    e = task.points.data.shape[1]
    rng = np.random.default_rng(seed)
    if kind == "full":
        return 3.0 * rng.standard_normal((e, e))
    return np.diag(rng.uniform(0.1, 0.7, e))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.05, 0.5])
def test_gradient(kind, smoothing):
    _, task, *_ = make_task(kind)
    elsewhere = random_components(task, kind, 1)
    task.search(elsewhere, smoothing)
    task.update_multipliers(elsewhere, smoothing)
    components = random_components(task, kind, 2)
    task.search(components, smoothing)
    shape = components.shape
    free = np.ones(shape, bool) if kind == "full" else np.eye(len(components), dtype=bool)

    def whole(x):
        full = np.zeros(shape)
        full[free] = x
        return full

    error = check_grad(
        lambda x: task.smoothed(whole(x), smoothing)[0],
        lambda x: task.smoothed(whole(x), smoothing)[1][free],
        components[free],
    )
    gradient = task.smoothed(components, smoothing)[1]
    assert not gradient[~free].any()
    assert error <= 1e-5 * np.linalg.norm(gradient)


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_the_task(kind):
    """Smoothed and exact objective in the task's coordinates are those of the data's."""
    coordinates, task, X, y, P = make_task(kind, seed=1)
    components = random_components(task, kind, 3)
    task.search(components, 0.2)
    outside = coordinates.to_original(components, len(components))
    np.testing.assert_allclose(
        coordinates.to_conditioned(outside).T @ coordinates.to_conditioned(outside),
        components.T @ components,
        rtol=1e-8,
        atol=1e-8,
    )
    D = squared_distances(X, outside)
    i, j, l = triplets(P, y)
    norm = 0.5 * ((outside.T @ outside) ** 2).sum()
    smooth = smoothed_hinge(1.0 + D[i, j] - D[i, l], 0.2, 0.0)[0].sum()
    assert task.smoothed(components, 0.2)[0] == pytest.approx(norm + 0.7 * smooth)
    seen = task.evaluate(components, 0.2)
    near, far = differences(X, y, P)
    scaled = np.sqrt(seen.multiple) * outside
    assert seen.objective == pytest.approx(objective(near, far, scaled, 0.7))
    assert seen.objective <= objective(near, far, outside, 0.7) * (1 + 1e-12)
    assert 1.0 <= seen.multiple <= 1.3
    assert task.objective_at_zero == pytest.approx(0.7 * len(i))


@pytest.mark.parametrize("kind", KINDS)
def test_bound_holds_at_any_metric(kind):
    _, task, X, y, P = make_task(kind, seed=2, C=0.1)
    optimum = frobenius_optimum(*differences(X, y, P), 0.1, bases(3)[kind])
    bounds = []
    for seed in range(5):
        components = random_components(task, kind, seed)
        task.search(components, 0.3)
        bounds.append(task.evaluate(components, 0.3).bound)
        task.update_multipliers(components, 0.3)
    assert 0.0 < bounds[0] <= bounds[-1] <= optimum * (1 + SOLVER)
    assert (np.diff(bounds) >= -1e-12 * optimum).all()


def test_a_lost_weight_comes_back():
    """Zero weights are saddles; the components stay diagonal when they are left."""
    X, y = blobs(6, [12, 12], 3)
    P = nearest_targets(squared_distances(X), y, 2)
    targets, problem = device_targets(in_class_order(P, y)), make_problem(X, y, 1.0, np.eye(3))
    full = problem.solve(targets, np.eye(3), tol=1e-4)
    used = np.flatnonzero(full.components.any(axis=1))
    assert used.size > 1
    found = problem.solve(targets, np.diag(np.arange(3.0) == used[0]), tol=1e-4)
    assert found.converged
    assert found.objective == pytest.approx(full.objective, rel=2e-4)
    assert not (found.components - np.diag(found.components.diagonal())).any()


def test_escape_takes_no_more_room_than_there_is():
    left = leave_saddle(np.diag([2.0, 0.0, 0.0]), np.eye(3)[:, 1:], 1.0, np.array([1e-9, 1.0]))
    np.testing.assert_allclose((left**2).diagonal()[:2], [4.0, 1e-9])
    assert 1e-9 < left[2, 2] ** 2 < 1.0
    assert not (left - np.diag(left.diagonal())).any()


@pytest.mark.parametrize("kind", ["full", "identity"])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_best_scale_is_the_minimum_along_the_ray(kind, C):
    """With few rows nothing is sampled."""
    coordinates, task, X, y, P = make_task(kind, C=C)
    components = random_components(task, kind, 4)
    outside = coordinates.to_original(components, len(components))
    near, far = differences(X, y, P)

    def along_ray(log_scale):
        return objective(near, far, np.exp(log_scale / 2) * outside, C)

    least = minimize_scalar(along_ray, bounds=(-30, 10), method="bounded")
    found = along_ray(np.log(task.best_scale(components)))
    assert found <= least.fun * 1.02


def test_pair_costs_and_free_term():
    X, y = sorted_blobs(4, [12, 1, 15, 9], 3)
    components = np.random.default_rng(4).standard_normal((2, 3))
    D = squared_distances(X, components)
    pairs = device_targets(same_class(y))
    problem = make_problem(X, y, 0.3, None)
    rows, columns = pairs.pairs()
    expected = [
        0.3 * np.maximum(0.0, 1.0 + D[i, j] - D[i, y != y[i]]).sum()
        for i, j in zip(rows, columns, strict=True)
    ]
    np.testing.assert_allclose(problem.pair_costs(components, pairs), expected, rtol=1e-10)
    M = components.T @ components
    assert problem.free_term(components) == pytest.approx(0.5 * (M**2).sum())
