"""Hinge terms, their slopes and multipliers against dense sums over triplets."""

import numpy as np
import oracles
import pytest
from devices import device_kernels, host_kernels, room_for
from oracles import nearest_targets, other_class, same_class, smoothed_hinge, squared_distances
from toy_data import class_start, embedded, neighborhoods, pattern_matrix, sorted_blobs

from lnml.core.pairs import Multipliers, Pattern, WorkingSet

pytestmark = pytest.mark.usefixtures("device")

SIZES = [25, 1, 40, 14]
GAMMAS = [0.0, 0.05, 0.7]


def columns_of(pattern, i):
    return pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]


def some_targets(D, y, seed):
    """Up to three nearest neighbours a row, some rows without any."""
    P = nearest_targets(D, y, 3)
    P[np.random.default_rng(seed).random(P.shape) < 0.2] = 0.0
    P[::9] = 0.0
    return neighborhoods(P)


def some_candidates(y, seed, share=0.7):
    """Random pairs of different class, some rows without any."""
    chosen = other_class(y) & (np.random.default_rng(seed).random((y.size, y.size)) < share)
    chosen[4] = False
    return neighborhoods(chosen)


def some_multipliers(targets, y, seed, share=0.3):
    """Random multipliers of triplets (candidates or not), as the library and by triplet."""
    rng = np.random.default_rng(seed)
    indptr, impostors, slots, values, by_triplet = [0], [], [], [], {}
    for i in range(y.size):
        partners = columns_of(targets, i)
        for l in np.flatnonzero(y != y[i]):
            for slot, j in enumerate(partners):
                if rng.random() < share:
                    impostors.append(l)
                    slots.append(slot)
                    values.append(rng.choice([1.0, rng.random()]))
                    by_triplet[i, j, l] = values[-1]
        indptr.append(len(values))
    arrays = (np.array(a, dtype=t) for a, t in ((impostors, "i4"), (slots, "i4"), (values, "f8")))
    return Multipliers(np.array(indptr), *arrays), by_triplet


def dense_hinge(D, targets, candidates, gamma, by_triplet):
    """Smoothed value, weights of both patterns, hinges of the targets and slopes by triplet."""
    target_weights, candidate_weights = np.zeros(targets.size), np.zeros(candidates.size)
    target_hinge, smoothed, slopes = np.zeros(targets.size), 0.0, {}
    for i in range(targets.indptr.size - 1):
        for t in range(targets.indptr[i], targets.indptr[i + 1]):
            for c in range(candidates.indptr[i], candidates.indptr[i + 1]):
                j, l = targets.indices[t], candidates.indices[c]
                h = 1.0 + D[i, j] - D[i, l]
                value, a = smoothed_hinge(h, gamma, by_triplet.get((i, j, l), 0.0))
                smoothed += value
                slopes[i, j, l] = float(a)
                target_weights[t] += a
                candidate_weights[c] += a
                target_hinge[t] += max(h, 0.0)
    return smoothed, target_weights, candidate_weights, target_hinge, slopes


def slope_laplacian(targets, candidates, target_weights, candidate_weights):
    """Laplacian of the weights of targets minus those of candidates, n x n."""
    n = targets.indptr.size - 1
    W = pattern_matrix(targets, target_weights, n)
    return oracles.laplacian(W - pattern_matrix(candidates, candidate_weights, n))


def assert_hinge(kernels, embedding, working, D, gamma, by_triplet, rtol=1e-10):
    """Every field of the result; data are an identity matrix, so moments show each weight."""
    targets, candidates = working.targets, working.candidates
    smoothed, *weights, target_hinge, slopes = dense_hinge(
        D, targets, candidates, gamma, by_triplet
    )
    active = sum(1.0 + D[i, j] - D[i, l] > 0.0 for i, j, l in slopes)
    laplacian = slope_laplacian(targets, candidates, *weights)
    moments = {"": None, "data": laplacian, "coordinates": embedding.coordinates.T @ laplacian}
    close = {"rtol": rtol, "atol": rtol}
    for name, moment in moments.items():
        found = kernels.hinge(embedding, working, gamma, moment=name)
        assert found.n_active == active > 0
        np.testing.assert_allclose(found.smoothed, smoothed, **close)
        np.testing.assert_allclose(found.exact, target_hinge.sum(), **close)
        np.testing.assert_allclose(found.slope_sum, sum(slopes.values()), **close)
        if moment is None:
            np.testing.assert_allclose(found.target_hinge, target_hinge, **close)
            assert found.moment is None
        else:
            assert found.moment.dtype == np.float64
            atol = rtol * np.abs(moment).max()
            np.testing.assert_allclose(found.moment, moment, rtol=rtol, atol=atol)


def one_hot(Z, y, dtype=np.float64):
    """Coordinates ``Z`` of data that are an identity matrix."""
    kernels = host_kernels()
    points = kernels.points(np.eye(y.size, dtype=dtype), class_start(y))
    embedding = kernels.embed(points, np.asarray(Z, dtype=np.float64).T)
    np.testing.assert_array_equal(embedding.coordinates, Z)
    return kernels, embedding


def toy(seed, dtype=np.float64):
    Z, y = sorted_blobs(seed, SIZES, 3)
    Z = (0.7 * Z).astype(dtype)
    D = squared_distances(Z)
    targets, candidates = some_targets(D, y, seed), some_candidates(y, seed)
    return *one_hot(Z, y, dtype), D, y, targets, candidates


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(2))
def test_without_multipliers(seed, gamma):
    kernels, embedding, D, _, targets, candidates = toy(seed)
    assert_hinge(kernels, embedding, WorkingSet(targets, candidates), D, gamma, {})


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(2))
def test_with_multipliers(seed, gamma):
    kernels, embedding, D, y, targets, candidates = toy(seed)
    multipliers, by_triplet = some_multipliers(targets, y, seed)
    working = WorkingSet(targets, candidates, multipliers)
    assert_hinge(kernels, embedding, working, D, gamma, by_triplet)


@pytest.mark.one_machine
@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_a_working_set_is_evaluated_again_and_again(gamma):
    """A GPU records the first evaluations and repeats them for other coordinates."""
    Z, y = sorted_blobs(0, SIZES, 3)
    D = squared_distances(Z)
    targets, candidates = some_targets(D, y, 0), some_candidates(y, 0)
    multipliers, _ = some_multipliers(targets, y, 0)
    kernels = device_kernels()
    points = kernels.points(Z.astype(np.float32), class_start(y))
    working = kernels.working_set(targets, candidates, multipliers)
    for size in (0.5, 0.7, 0.9, 1.1):
        embedding = kernels.embed(points, size * np.eye(3))
        found = kernels.hinge(embedding, working, gamma, moment="coordinates")
        anew = kernels.working_set(targets, candidates, multipliers)
        expected = kernels.hinge(embedding, anew, gamma, moment="coordinates")
        np.testing.assert_array_equal(found.moment, expected.moment)
        assert found[:4] == expected[:4]


def test_float32_sums_in_float64():
    kernels, embedding, D, y, targets, candidates = toy(0, np.float32)
    multipliers, by_triplet = some_multipliers(targets, y, 0)
    working = WorkingSet(targets, candidates, multipliers)
    assert_hinge(kernels, embedding, working, D, 0.3, by_triplet, rtol=1e-5)


def row_by_row_weights(Z, targets, candidates, gamma):
    """Weights of both patterns, without multipliers, row by row."""
    target_weights, candidate_weights = np.zeros(targets.size), np.zeros(candidates.size)
    for i in range(len(Z)):
        mine, theirs = (slice(p.indptr[i], p.indptr[i + 1]) for p in (targets, candidates))
        near, far = (
            ((Z[i] - Z[p.indices[part]]) ** 2).sum(axis=1)
            for p, part in ((targets, mine), (candidates, theirs))
        )
        a = np.clip((1.0 + near[:, None] - far) / gamma, 0.0, 1.0)
        target_weights[mine], candidate_weights[theirs] = a.sum(axis=1), a.sum(axis=0)
    return target_weights, candidate_weights


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-11), (np.float32, 1e-5)])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_moments_of_many_rows(dtype, rtol, offset):
    """More rows than a tile; data that are not the coordinates, and far from zero."""
    Z, y = sorted_blobs(1, [1500, 700], 3)
    X = (Z + offset).astype(dtype)
    rng = np.random.default_rng(2)
    kernels, embedding = embedded(X, y, dtype)
    embedding = kernels.embed(embedding.points, 0.5 * rng.standard_normal((2, 3)))
    near = embedding.coordinates.astype(np.float64)
    # About five targets and ten candidates a row.
    number = y.size * rng.random((y.size, y.size))
    targets = neighborhoods(same_class(y) & (number < 8.0))
    candidates = neighborhoods(other_class(y) & (number < 20.0))
    weights = row_by_row_weights(near, targets, candidates, 0.3)
    laplacian = slope_laplacian(targets, candidates, *weights)
    X = X.astype(np.float64)
    for name, left in (("data", X), ("coordinates", near)):
        found = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.3, moment=name).moment
        # Rows of a Laplacian sum to zero, so an offset takes no part.
        expected = (left - left.mean(axis=0)).T @ laplacian @ (X - X.mean(axis=0))
        size = np.abs(expected).max() * (1.0 + offset) ** (dtype is np.float32)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("rows_at_a_time", [0, 1, 7, 80])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 1e-5)])
def test_target_hinges_of_blocks_of_rows(rows_at_a_time, dtype, rtol):
    """The hinges of all impostors, however few rows there is room for."""
    kernels, embedding, D, y, targets, _ = toy(3, dtype)
    *_, expected, _ = dense_hinge(D, targets, neighborhoods(other_class(y)), 0.0, {})
    assert (expected > 0).any()
    reach = kernels.distances(embedding, targets, longest=True) + 1.0
    assert (reach == -np.inf).any()
    with room_for(kernels, rows_at_a_time * y.size):
        for radius in (reach, 1.1 * reach, np.full(y.size, np.inf)):
            found = kernels.target_hinges(embedding, targets, radius)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    working = WorkingSet(targets, kernels.within(embedding, reach).found)
    kept = kernels.hinge(embedding, working, 0.0).target_hinge
    np.testing.assert_allclose(found, kept, rtol=rtol, atol=rtol)


def test_target_hinges_within_a_radius():
    """Impostors outside of it are not looked at."""
    kernels, embedding, D, y, targets, _ = toy(4)
    radius = np.quantile(D, 0.2, axis=1)
    inside = neighborhoods(other_class(y) & (D < radius[:, None]))
    *_, expected, _ = dense_hinge(D, targets, inside, 0.0, {})
    found = kernels.target_hinges(embedding, targets, radius)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_target_hinges_without_targets():
    kernels, embedding, _, y, _, _ = toy(0)
    nobody = neighborhoods(np.zeros((y.size, y.size)))
    found = kernels.target_hinges(embedding, nobody, np.full(y.size, -np.inf))
    assert found.shape == (0,)


def test_no_candidates():
    kernels, embedding, _, y, targets, _ = toy(0)
    nobody = Pattern(np.zeros(y.size + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    for working in (WorkingSet(targets, nobody), kernels.working_set(targets, None)):
        found = kernels.hinge(embedding, working, 0.1, moment="data")
        assert (found.smoothed, found.exact, found.slope_sum, found.n_active) == (0.0, 0.0, 0.0, 0)
        assert found.moment.shape == (y.size, y.size)
        assert not found.moment.any()
        hinges = kernels.hinge(embedding, working, 0.1).target_hinge
        assert hinges.shape == (targets.size,)
        assert not hinges.any()
        assert kernels.slopes(embedding, working, 0.1).value.size == 0


@pytest.mark.parametrize("some", [False, True], ids=["no candidates", "candidates"])
def test_no_targets(some):
    kernels, embedding, _, y, _, candidates = toy(0)
    nobody = neighborhoods(np.zeros((y.size, y.size)))
    working = kernels.working_set(nobody, candidates if some else None)
    for moment, n_rows in (("data", y.size), ("coordinates", 3)):
        found = kernels.hinge(embedding, working, 0.1, moment=moment)
        assert (found.smoothed, found.exact, found.slope_sum, found.n_active) == (0.0, 0.0, 0.0, 0)
        np.testing.assert_array_equal(found.moment, np.zeros((n_rows, y.size)))
    assert kernels.hinge(embedding, working, 0.1).target_hinge.shape == (0,)


def edge_laplacian(edges, n):
    """Laplacian of a few weighted pairs, written entry by entry."""
    found = np.zeros((n, n))
    for (i, j), weight in edges.items():
        for a, b in ((i, j), (j, i)):
            found[a, a] += weight
            found[a, b] -= weight
    return found


def test_known_answer():
    """Targets at distance 1 and 4, an impostor at distance 3: hinges -1 and 2."""
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, np.sqrt(3.0)]])
    kernels, embedding = one_hot(Z, np.array([0, 0, 0, 1]))
    targets = Pattern(np.array([0, 2, 2, 2, 2]), np.array([1, 2], dtype=np.int32))
    candidates = Pattern(np.array([0, 1, 1, 1, 1]), np.array([3], dtype=np.int32))
    working = WorkingSet(targets, candidates)
    hinges = kernels.hinge(embedding, working, 0.5).target_hinge
    np.testing.assert_allclose(hinges, [0.0, 2.0], atol=1e-12)
    found = kernels.hinge(embedding, working, 0.5, moment="data")
    expected = edge_laplacian({(0, 2): 1.0, (0, 3): -1.0}, 4)
    np.testing.assert_allclose(found.moment, expected, atol=1e-12)
    np.testing.assert_allclose([found.exact, found.smoothed], [2.0, 2.0 - 0.25])
    assert found.n_active == 1
    multipliers = Multipliers(
        np.array([0, 1, 1, 1, 1]), np.array([3], "i4"), np.array([0], "i4"), np.array([1.0])
    )
    working = WorkingSet(targets, candidates, multipliers)
    found = kernels.hinge(embedding, working, 4.0, moment="data")
    expected = edge_laplacian({(0, 1): 0.75, (0, 2): 0.5, (0, 3): -1.25}, 4)
    np.testing.assert_allclose(found.moment, expected, atol=1e-12)
    np.testing.assert_allclose(found.smoothed, -0.75 - 2.0 * 0.0625 + 1.0 - 2.0 * 0.25)


@pytest.mark.parametrize("gamma", [0.05, 0.7])
@pytest.mark.parametrize("known", [False, True])
def test_slopes(gamma, known):
    kernels, embedding, D, y, targets, candidates = toy(1)
    multipliers, by_triplet = some_multipliers(targets, y, 1) if known else (None, {})
    found = kernels.slopes(embedding, WorkingSet(targets, candidates, multipliers), gamma)
    *_, slopes = dense_hinge(D, targets, candidates, gamma, by_triplet)
    expected = {triplet: a for triplet, a in slopes.items() if a > 0.0}
    as_triplets = {}
    for i in range(y.size):
        entries = range(found.indptr[i], found.indptr[i + 1])
        order = [(found.impostor[e], found.slot[e]) for e in entries]
        assert order == sorted(set(order))
        for e in entries:
            j = columns_of(targets, i)[found.slot[e]]
            as_triplets[i, j, found.impostor[e]] = found.value[e]
    assert as_triplets.keys() == expected.keys()
    for triplet, a in expected.items():
        assert as_triplets[triplet] == pytest.approx(a, abs=1e-10)


def test_slopes_become_the_next_multipliers():
    """Taking slopes as multipliers: the smoothed value then has the same slopes at gamma -> inf."""
    kernels, embedding, _, _, targets, candidates = toy(2)
    multipliers = kernels.slopes(embedding, WorkingSet(targets, candidates), 0.5)
    before = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.5, moment="data")
    working = WorkingSet(targets, candidates, multipliers)
    after = kernels.hinge(embedding, working, 1e12, moment="data")
    assert np.abs(before.moment).max() > 1.0
    np.testing.assert_allclose(after.moment, before.moment, atol=1e-9)


def test_many_tiles_agree_with_row_by_row_sums():
    """Enough candidate pairs for several tiles, and more slopes than a first buffer holds."""
    Z, y = sorted_blobs(5, [250, 250], 2)
    D = squared_distances(Z)
    kernels, embedding = embedded(Z, y)
    targets = neighborhoods(nearest_targets(D, y, 2))
    candidates = kernels.within(embedding, np.full(y.size, np.inf)).found
    assert candidates.size == 2 * 250 * 250
    found = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.2, moment="data")
    rows, columns = targets.pairs()
    h = np.where(other_class(y)[rows], 1.0 + D[rows, columns][:, None] - D[rows], -np.inf)
    hinges = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.2).target_hinge
    np.testing.assert_allclose(hinges, np.maximum(h, 0.0).sum(axis=1), rtol=1e-10)
    slopes = np.clip(h / 0.2, 0.0, 1.0)
    W = pattern_matrix(targets, slopes.sum(axis=1), y.size)
    np.subtract.at(W, rows, slopes)
    np.testing.assert_allclose(found.moment, Z.T @ oracles.laplacian(W) @ Z, rtol=1e-9)
    multipliers = kernels.slopes(embedding, WorkingSet(targets, candidates), 0.2)
    assert multipliers.value.size == (slopes > 0.0).sum() > 4096
    np.testing.assert_allclose(multipliers.value.sum(), slopes.sum(), rtol=1e-10)
