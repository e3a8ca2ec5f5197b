"""Sums over all triplets against sums in extended precision, triplet by triplet."""

import numpy as np
import pytest

from lnml.proofs.all_pairs import Rows
from lnml.proofs.all_triplets import Triplets, hinge_total, implied_sums

LONG = np.longdouble
SIZES = (9, 1, 12)
N = sum(SIZES)


def problem(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3)) * scale
    start = np.concatenate([[0], np.cumsum(SIZES)])
    codes = np.repeat(np.arange(3), SIZES)
    pairs = []
    for i in range(N):
        own = np.flatnonzero((codes == codes[i]) & (np.arange(N) != i))
        # Some rows have no target.
        pairs += [(i, j) for j in sorted(rng.permutation(own)[: rng.integers(0, 3)])]
    i, j = np.array(pairs).T
    first = np.searchsorted(i, np.arange(N + 1))
    return Triplets(Rows(X, start), first, i, j), codes, rng.standard_normal((2, 3)) / scale


def margins_of(triplets, codes, components):
    """Yield pair, impostor and margin of each triplet, in extended precision."""
    X, L = triplets.rows.data.astype(LONG), components.astype(LONG)
    for i, j in zip(triplets.i, triplets.j, strict=True):
        near = ((L @ (X[i] - X[j])) ** 2).sum()
        for other in np.flatnonzero(codes != codes[i]):
            yield i, j, other, 1 + near - ((L @ (X[i] - X[other])) ** 2).sum()


@pytest.mark.parametrize("scale", [np.ones(3), np.array([1.0, 1e6, 1e-6])], ids=["plain", "units"])
@pytest.mark.parametrize("seed", range(3))
def test_hinges(seed, scale):
    triplets, codes, L = problem(seed, scale)
    expected = sum(max(LONG(0), h) for *_, h in margins_of(triplets, codes, L))
    found = hinge_total(triplets, L)
    assert abs(found.value - expected) <= found.error <= 1e-9 * expected


@pytest.mark.parametrize("scale", [np.ones(3), np.array([1.0, 1e6, 1e-6])], ids=["plain", "units"])
@pytest.mark.parametrize("seed", range(3))
def test_slopes_that_a_check_finds_prove_as_much(seed, scale):
    """Whatever rounding does to slopes that may move, the claims cover it."""
    triplets, codes, L = problem(seed, scale)
    W, X = np.diag(1.0 / scale), triplets.rows.data.astype(LONG)
    found, smoothing = implied_sums(triplets, L, 0.3, W), LONG(0.3)
    for moved in (0.0, 1e-15, -1e-15):
        total, push = LONG(0), np.zeros((3, 3), dtype=LONG)
        for i, j, other, h in margins_of(triplets, codes, L):
            slope = min(max(h / smoothing, LONG(0)), LONG(1))
            if 0 < slope < 1:
                slope += moved
            total += slope
            near, far = (W.astype(LONG).T @ (X[i] - X[k]) for k in (j, other))
            push += slope * (np.outer(near, near) - np.outer(far, far))
        assert found.total <= total
        apart = (push - found.push.matrix).astype(np.float64)
        for sign in (1.0, -1.0):
            assert np.linalg.eigvalsh(np.diag(found.push.error) + sign * apart)[0] >= 0.0
    assert found.total >= total * (1.0 - 1e-9)
    assert (found.push.error <= 1e-9 * found.push.squares).all()
