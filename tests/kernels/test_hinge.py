"""Hinge terms, their slopes and multipliers against dense sums over triplets."""

import numpy as np
import pytest
from oracles import nearest_targets, other_class, smoothed_hinge, squared_distances
from toy_data import embedded, neighborhoods, sorted_blobs

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


def dense_hinge(D, targets, candidates, gamma, by_triplet, first_row=0):
    """Every field of the result, by a sum over triplets; and the slopes by triplet."""
    target_weights, candidate_weights = np.zeros(targets.size), np.zeros(candidates.size)
    target_hinge, smoothed, slopes = np.zeros(targets.size), 0.0, {}
    for row in range(targets.indptr.size - 1):
        i = first_row + row
        for t in range(targets.indptr[row], targets.indptr[row + 1]):
            for c in range(candidates.indptr[row], candidates.indptr[row + 1]):
                j, l = targets.indices[t], candidates.indices[c]
                h = 1.0 + D[i, j] - D[i, l]
                value, a = smoothed_hinge(h, gamma, by_triplet.get((i, j, l), 0.0))
                smoothed += value
                slopes[i, j, l] = float(a)
                target_weights[t] += a
                candidate_weights[c] += a
                target_hinge[t] += max(h, 0.0)
    return smoothed, target_weights, candidate_weights, target_hinge, slopes


def assert_hinge(found, D, targets, candidates, gamma, by_triplet, first_row=0, rtol=1e-10):
    smoothed, target_weights, candidate_weights, target_hinge, slopes = dense_hinge(
        D, targets, candidates, gamma, by_triplet, first_row
    )
    active = sum(1.0 + D[i, j] - D[i, l] > 0.0 for i, j, l in slopes)
    rows = first_row + np.repeat(np.arange(targets.indptr.size - 1), np.diff(targets.indptr))
    close = {"rtol": rtol, "atol": rtol}
    assert found.n_active == active > 0
    np.testing.assert_allclose(found.smoothed, smoothed, **close)
    np.testing.assert_allclose(found.exact, target_hinge.sum(), **close)
    np.testing.assert_allclose(found.slope_sum, sum(slopes.values()), **close)
    np.testing.assert_allclose(found.target_weights, target_weights, **close)
    np.testing.assert_allclose(found.candidate_weights, candidate_weights, **close)
    np.testing.assert_allclose(found.target_hinge, target_hinge, **close)
    np.testing.assert_allclose(found.target_distances, D[rows, targets.indices], **close)


def toy(seed, dtype=np.float64):
    Z, y = sorted_blobs(seed, SIZES, 3)
    Z = (0.7 * Z).astype(dtype)
    D = squared_distances(Z)
    targets, candidates = some_targets(D, y, seed), some_candidates(y, seed)
    return *embedded(Z, y, dtype), D, y, targets, candidates


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(2))
def test_without_multipliers(seed, gamma):
    kernels, embedding, D, _, targets, candidates = toy(seed)
    found = kernels.hinge(embedding, WorkingSet(targets, candidates), gamma)
    assert_hinge(found, D, targets, candidates, gamma, {})


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(2))
def test_with_multipliers(seed, gamma):
    kernels, embedding, D, y, targets, candidates = toy(seed)
    multipliers, by_triplet = some_multipliers(targets, y, seed)
    found = kernels.hinge(embedding, WorkingSet(targets, candidates, multipliers), gamma)
    assert_hinge(found, D, targets, candidates, gamma, by_triplet)


def test_float32_sums_in_float64():
    kernels, embedding, D, y, targets, candidates = toy(0, np.float32)
    multipliers, by_triplet = some_multipliers(targets, y, 0)
    found = kernels.hinge(embedding, WorkingSet(targets, candidates, multipliers), 0.3)
    assert_hinge(found, D, targets, candidates, 0.3, by_triplet, rtol=1e-5)


def test_a_block_of_rows():
    kernels, embedding, D, _, targets, candidates = toy(3)
    lo, hi = 20, 55
    blocks = [
        Pattern(
            pattern.indptr[lo : hi + 1] - pattern.indptr[lo],
            pattern.indices[pattern.indptr[lo] : pattern.indptr[hi]],
        )
        for pattern in (targets, candidates)
    ]
    found = kernels.hinge(embedding, WorkingSet(*blocks), 0.1, first_row=lo)
    assert_hinge(found, D, *blocks, 0.1, {}, first_row=lo)


def test_no_candidates():
    kernels, embedding, _, y, targets, _ = toy(0)
    nobody = Pattern(np.zeros(y.size + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    found = kernels.hinge(embedding, WorkingSet(targets, nobody), 0.1)
    assert (found.smoothed, found.exact, found.slope_sum, found.n_active) == (0.0, 0.0, 0.0, 0)
    assert not found.target_weights.any()
    assert kernels.slopes(embedding, WorkingSet(targets, nobody), 0.1).value.size == 0


def test_known_answer():
    """Targets at distance 1 and 4, an impostor at distance 3: hinges -1 and 2."""
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, np.sqrt(3.0)]])
    kernels, embedding = embedded(Z, np.array([0, 0, 0, 1]))
    targets = Pattern(np.array([0, 2, 2, 2, 2]), np.array([1, 2], dtype=np.int32))
    candidates = Pattern(np.array([0, 1, 1, 1, 1]), np.array([3], dtype=np.int32))
    found = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.5)
    np.testing.assert_allclose(found.target_hinge, [0.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(found.target_weights, [0.0, 1.0])
    np.testing.assert_allclose(found.candidate_weights, [1.0])
    np.testing.assert_allclose([found.exact, found.smoothed], [2.0, 2.0 - 0.25])
    assert found.n_active == 1
    multipliers = Multipliers(
        np.array([0, 1, 1, 1, 1]), np.array([3], "i4"), np.array([0], "i4"), np.array([1.0])
    )
    found = kernels.hinge(embedding, WorkingSet(targets, candidates, multipliers), 4.0)
    np.testing.assert_allclose(found.target_weights, [0.75, 0.5])
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
    before = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.5)
    after = kernels.hinge(embedding, WorkingSet(targets, candidates, multipliers), 1e12)
    np.testing.assert_allclose(after.target_weights, before.target_weights, rtol=1e-9)
    np.testing.assert_allclose(after.candidate_weights, before.candidate_weights, atol=1e-9)


def test_many_tiles_agree_with_row_by_row_sums():
    """Enough candidate pairs for several tiles, and more slopes than a first buffer holds."""
    Z, y = sorted_blobs(5, [250, 250], 2)
    D = squared_distances(Z)
    kernels, embedding = embedded(Z, y)
    targets = neighborhoods(nearest_targets(D, y, 2))
    candidates = kernels.within(embedding, np.full(y.size, np.inf))
    assert candidates.size == 2 * 250 * 250
    found = kernels.hinge(embedding, WorkingSet(targets, candidates), 0.2)
    rows, columns = targets.pairs()
    h = np.where(other_class(y)[rows], 1.0 + D[rows, columns][:, None] - D[rows], -np.inf)
    np.testing.assert_allclose(found.target_hinge, np.maximum(h, 0.0).sum(axis=1), rtol=1e-10)
    slopes = np.clip(h / 0.2, 0.0, 1.0)
    np.testing.assert_allclose(found.target_weights, slopes.sum(axis=1), rtol=1e-10)
    multipliers = kernels.slopes(embedding, WorkingSet(targets, candidates), 0.2)
    assert multipliers.value.size == (slopes > 0.0).sum() > 4096
    np.testing.assert_allclose(multipliers.value.sum(), slopes.sum(), rtol=1e-10)
