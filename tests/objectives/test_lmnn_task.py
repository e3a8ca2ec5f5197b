"""The parts of the LMNN objective against dense NumPy and finite differences."""

import numpy as np
import pytest
from devices import host, host_kernels, room_for
from oracles import (
    central_differences,
    lmnn_objective,
    lmnn_pair_costs,
    nearest_targets,
    other_class,
    pull_scatter,
    same_class,
    smoothed_hinge,
    squared_distances,
    triplets,
)
from scipy.optimize import minimize_scalar
from toy_data import class_start, device_targets, sorted_blobs, training_set

from lnml.core.pairs import Edge, Multipliers
from lnml.kernels import get_kernels
from lnml.objectives.conditioning import Conditioning, whiten_pull
from lnml.objectives.lmnn import LMNNObjective, LMNNTask
from lnml.objectives.triplet_task import count_triplets

pytestmark = pytest.mark.usefixtures("device")

SIZES = [12, 1, 15, 9]


def make_task(seed, push_weight=0.5, n_features=4, class_sizes=SIZES):
    """A task in conditioned coordinates, and everything a dense computation needs."""
    X, y = sorted_blobs(seed, class_sizes, n_features)
    P = nearest_targets(squared_distances(X), y, 3)
    targets = device_targets(P)
    training = training_set(X, y)
    conditioning = whiten_pull(training.kernels, training.points, Edge(targets))
    task = LMNNTask(training.kernels, conditioning, targets, push_weight)
    return task, conditioning, X, y, P


def random_components(task, seed, n_rows=None, scale=2.0):
    """Scaled so that the margins of a fair share of triplets are near zero."""
    d = task.points.data.shape[1]
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((n_rows or d, d)) / np.sqrt(d)


def dense_smoothed(X, y, P, components, push_weight, smoothing):
    D = squared_distances(X, components)
    i, j, l = triplets(P, y)
    hinge, _ = smoothed_hinge(1.0 + D[i, j] - D[i, l], smoothing, 0.0)
    return (1.0 - push_weight) * (P * D).sum() + push_weight * hinge.sum()


@pytest.mark.parametrize("smoothing", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("push_weight", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("n_rows", [2, 4])
def test_gradient_with_multipliers(smoothing, push_weight, n_rows):
    task, *_ = make_task(0, push_weight)
    elsewhere = random_components(task, 1)
    task.search(elsewhere, smoothing)
    task.update_multipliers(elsewhere, smoothing)
    assert ((task.working.multipliers.value > 0) & (task.working.multipliers.value < 1)).any()
    components = random_components(task, 2, n_rows)
    task.search(components, smoothing)
    _, gradient = task.smoothed(components, smoothing)
    expected = central_differences(lambda L: task.smoothed(L, smoothing)[0], components)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("push_weight", [0.1, 0.8])
def test_value_of_the_smoothed_objective(smoothing, push_weight):
    """In conditioned coordinates over the impostors of a search: the same as over all triplets."""
    task, conditioning, X, y, P = make_task(1, push_weight)
    components = random_components(task, 3)
    task.search(components, smoothing)
    value, _ = task.smoothed(components, smoothing)
    original = conditioning.to_original(components, 4)
    expected = dense_smoothed(X, y, P, original, push_weight, smoothing)
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("push_weight", [0.1, 0.8])
def test_evaluation_is_exact_after_a_search(push_weight):
    task, conditioning, X, y, P = make_task(2, push_weight)
    components = random_components(task, 4)
    task.search(components, 0.1)
    seen = task.evaluate(components, 0.1)
    original = conditioning.to_original(components, 4)
    D = squared_distances(X, original)
    i, j, l = triplets(P, y)
    assert seen.objective == pytest.approx(lmnn_objective(X, y, P, original, push_weight))
    assert seen.n_active == (1.0 + D[i, j] - D[i, l] > 0.0).sum() > 0
    assert seen.bound <= seen.objective
    at_zero = lmnn_objective(X, y, P, np.zeros((1, 4)), push_weight)
    assert task.objective_at_zero == pytest.approx(at_zero)


@pytest.mark.parametrize("push_weight", [0.1, 0.8])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_bound_is_a_feasible_dual_point_and_the_best_of_its_ray(push_weight, scale):
    """The slopes times a share s <= 1 keep (1 - mu) S + mu s sum a C positive semidefinite."""
    task, conditioning, X, y, P = make_task(7, push_weight)
    components = random_components(task, 6, scale=scale)
    task.search(components, 0.2)
    bound = task.evaluate(components, 0.2).bound
    D = squared_distances(X, conditioning.to_original(components, 4))
    i, j, l = triplets(P, y)
    _, slopes = smoothed_hinge(1.0 + D[i, j] - D[i, l], 0.2, 0.0)
    share = bound / (push_weight * slopes.sum())
    assert 0.0 < share < 0.99
    W = np.zeros_like(D)
    np.add.at(W, (i, j), slopes)
    np.add.at(W, (i, l), -slopes)
    pull, push = (1.0 - push_weight) * pull_scatter(X, P), push_weight * pull_scatter(X, W)
    unit = np.linalg.norm(pull)
    assert np.linalg.eigvalsh(pull + share * push)[0] >= -1e-9 * unit
    assert np.linalg.eigvalsh(pull + 1.001 * share * push)[0] < 0.0


def test_multipliers_count_in_a_search():
    """Impostors just beyond the margin act while their multiplier is positive."""
    task, _, _, y, _ = make_task(3)
    components = random_components(task, 5)
    task.search(components, 0.5)
    task.update_multipliers(components, 0.5)
    value, gradient = task.smoothed(components, 0.5)
    everybody = device_targets(other_class(y))
    task.working = task.kernels.working_set(task.targets, everybody, task.working.multipliers)
    all_value, all_gradient = task.smoothed(components, 0.5)
    assert value == pytest.approx(all_value, rel=1e-12)
    np.testing.assert_allclose(gradient, all_gradient, rtol=1e-10)


@pytest.mark.parametrize("push_weight", [0.2, 0.7])
@pytest.mark.parametrize("class_sizes", [SIZES, [300, 2, 298]])
def test_pair_costs(push_weight, class_sizes):
    """All same-class pairs, in several blocks of rows where working memory is short."""
    X, y = sorted_blobs(4, class_sizes, 3)
    components = np.random.default_rng(4).standard_normal((2, 3))
    D = squared_distances(X, components)
    wanted = same_class(y) & (np.random.default_rng(5).random(D.shape) < 0.3)
    wanted[3] = False
    pairs = device_targets(wanted)
    objective = LMNNObjective(training_set(X, y), push_weight)
    with room_for(objective.training.kernels, 40_000):
        costs = objective.pair_costs(components, pairs)
    assert (costs.search is None) == (y.size > 100)
    expected = lmnn_pair_costs(D, y, push_weight)[host(pairs).pairs()]
    np.testing.assert_allclose(host(costs.values), expected, rtol=1e-10)
    assert objective.free_term(components) == 0.0


def test_number_of_triplets():
    y = np.repeat([0, 1, 2], [5, 1, 4])
    P = nearest_targets(squared_distances(np.arange(10.0)[:, None] ** 2), y, 2)
    P[2] = 0.0
    points, targets = get_kernels().points(np.zeros((10, 1)), class_start(y)), device_targets(P)
    assert count_triplets(points, targets, None) == len(triplets(P, y)[0])
    # Given impostors: one beside the one target of a row.
    given = device_targets(np.eye(10, k=5)[:, ::-1])
    assert count_triplets(points, targets, given) == given.size


def random_multipliers(P, y, seed):
    """Multipliers of random triplets, by triplet and in the library's form."""
    rng = np.random.default_rng(seed)
    by_triplet = {}
    indptr, impostors, slots, values = [0], [], [], []
    for i in range(y.size):
        for l in np.flatnonzero(y != y[i]):
            for slot, j in enumerate(np.flatnonzero(P[i])):
                if rng.random() < 0.4:
                    by_triplet[i, j, l] = rng.random()
                    impostors.append(l)
                    slots.append(slot)
                    values.append(by_triplet[i, j, l])
        indptr.append(len(values))
    found = Multipliers(
        np.array(indptr), np.array(impostors, "i4"), np.array(slots, "i4"), np.array(values)
    )
    return found, by_triplet


def as_triplets(multipliers, P):
    found = {}
    for i in range(P.shape[0]):
        entries = range(multipliers.indptr[i], multipliers.indptr[i + 1])
        order = [(multipliers.impostor[e], multipliers.slot[e]) for e in entries]
        assert order == sorted(order)
        for e in entries:
            j = np.flatnonzero(P[i])[multipliers.slot[e]]
            found[i, j, multipliers.impostor[e]] = multipliers.value[e]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_of_surviving_pairs_are_carried_over(seed):
    y = np.repeat([0, 1, 2], [6, 1, 5])
    rng = np.random.default_rng(seed)
    before, after = (same_class(y) & (rng.random((y.size, y.size)) < 0.5) for _ in range(2))
    old, by_triplet = random_multipliers(before, y, seed)
    new = host_kernels().carry_over(old, device_targets(before), device_targets(after))
    expected = {(i, j, l): a for (i, j, l), a in by_triplet.items() if after[i, j]}
    assert 0 < len(expected) < len(by_triplet)
    assert as_triplets(new, after) == expected


def test_multipliers_of_the_same_pairs_stay():
    y = np.repeat([0, 1], [5, 5])
    P = nearest_targets(squared_distances(np.arange(10.0)[:, None]), y, 2)
    old, by_triplet = random_multipliers(P, y, 0)
    kept = host_kernels().carry_over(old, device_targets(P), device_targets(P))
    assert as_triplets(kept, P) == by_triplet


def plain_task(Z, y, P, push_weight):
    """A task in the coordinates as given."""
    kernels, d = get_kernels(), Z.shape[1]
    points = kernels.points(Z, class_start(y))
    conditioning = Conditioning(points, np.eye(d), np.eye(d), np.ones(d))
    return LMNNTask(kernels, conditioning, device_targets(P), push_weight)


@pytest.mark.parametrize("push_weight, scale", [(0.5, 1 / 3), (0.2, 1 / 8)])
def test_best_scale_of_three_points(push_weight, scale):
    """Points 0 and 1 with an impostor at 3: margins 1 - 9 and 1 - 4, so knees at 1/8 and 1/3."""
    Z = np.array([[0.0], [1.0], [3.0]])
    P = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    task = plain_task(Z, np.array([0, 0, 1]), P, push_weight)
    assert task.best_scale(np.eye(1)) == pytest.approx(scale)
    assert task.best_scale(10.0 * np.eye(1)) == pytest.approx(scale / 100.0)


def test_best_scale_where_every_impostor_is_nearer():
    """No multiple of the metric helps, so it keeps its scale."""
    Z = np.array([[0.0], [3.0], [1.0]])
    P = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    task = plain_task(Z, np.array([0, 0, 1]), P, 0.5)
    assert task.best_scale(np.eye(1)) == 1.0


@pytest.mark.parametrize("push_weight", [0.1, 0.5, 0.9])
def test_best_scale_is_the_minimum_along_the_ray(push_weight):
    """With few rows nothing is sampled, so the scale is exact."""
    Z, y = sorted_blobs(6, [15, 10], 3, separation=2.0)
    P = nearest_targets(squared_distances(Z), y, 2)
    task = plain_task(Z, y, P, push_weight)
    components = np.random.default_rng(6).standard_normal((2, 3))

    def along_ray(log_scale):
        return lmnn_objective(Z, y, P, np.exp(log_scale / 2) * components, push_weight)

    found = along_ray(np.log(task.best_scale(components)))
    least = minimize_scalar(along_ray, bounds=(-10, 10), method="bounded", options={"xatol": 1e-9})
    assert found <= least.fun * (1 + 1e-6)


def test_no_room_for_impostors():
    """They are found again in each evaluation, but on a cluster, which says what fits."""
    task, *_ = make_task(0)
    components = random_components(task, 1)
    task.search(components, 0.3)
    kept, gradient = task.smoothed(components, 0.3)
    assert not task.streamed
    with room_for(task.kernels, 20):
        if task.kernels.remote:
            with pytest.raises(MemoryError, match=r"more than 0\.5 KiB: raise .*working_memory"):
                task.search(components, 0.3)
            return
        task.search(components, 0.3)
        assert task.streamed
        found, again = task.smoothed(components, 0.3)
    np.testing.assert_allclose(found, kept, rtol=1e-12)
    np.testing.assert_allclose(again, gradient, rtol=1e-9, atol=1e-9)
