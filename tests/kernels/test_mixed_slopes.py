"""Mixed slopes of triplets, and their sums by pair, against dense ones."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import nearest_targets, squared_distances
from toy_data import embedded, neighborhoods, sorted_blobs

from lnml.core.pairs import Multipliers

pytestmark = pytest.mark.usefixtures("device")

SIZES = [30, 1, 45]


def slopes_of(targets, share, seed):
    """Slopes of a share of all triplets, and the same in a dense array (n, width, n)."""
    rng, n, width = np.random.default_rng(seed), targets.n_rows, int(targets.sizes.max())
    dense = rng.random((n, width, n)) * (rng.random((n, width, n)) < share)
    dense[np.arange(width) >= targets.sizes[:, None]] = 0.0
    row, impostor, slot = np.nonzero(dense.transpose(0, 2, 1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    value = dense[row, slot, impostor]
    return Multipliers(indptr, impostor.astype(np.int32), slot.astype(np.int32), value), dense


def assert_mixed(parts, problem):
    kernels, targets = problem
    found = kernels.mixed_slopes([(share, slopes) for share, (slopes, _) in parts], targets)
    dense = sum(share * each for share, (_, each) in parts)
    rows, _ = targets.pairs()
    slots = np.arange(rows.size) - targets.indptr[rows]
    again = np.zeros_like(dense)
    target, impostor = np.asarray(found.triplets).T
    again[rows[target], slots[target], impostor] = found.slopes
    np.testing.assert_allclose(again, dense, rtol=1e-15)
    assert found.slopes.size == np.count_nonzero(dense)
    assert found.slopes.max(initial=0.0) <= 1.0
    np.testing.assert_allclose(found.total, dense.sum(), rtol=1e-13)
    np.testing.assert_allclose(found.targets, dense.sum(axis=2)[rows, slots], rtol=1e-13)
    of_pairs = dense.sum(axis=1)
    row, impostor = np.nonzero(of_pairs)
    np.testing.assert_array_equal(np.repeat(np.arange(len(dense)), found.pairs.sizes), row)
    np.testing.assert_array_equal(found.pairs.indices, impostor)
    np.testing.assert_allclose(found.impostors, of_pairs[row, impostor], rtol=1e-13)
    used = dense > 0.0
    assert max(used.sum(axis=2).max(), used.sum(axis=1).max()) <= found.most


def uneven(seed):
    """Kernels, and up to three targets in a row, none in some."""
    Z, y = sorted_blobs(seed, SIZES, 3)
    P = nearest_targets(squared_distances(Z), y, 3) > 0
    P &= np.random.default_rng(seed).random(P.shape) < 0.7
    return embedded(Z, y)[0], neighborhoods(P)


def full(seed):
    """Kernels, and three targets in each row."""
    Z, y = sorted_blobs(seed, [30, 45], 3)
    return embedded(Z, y)[0], neighborhoods(nearest_targets(squared_distances(Z), y, 3))


@pytest.mark.parametrize("make", [uneven, full])
@pytest.mark.parametrize("share", [0.01, 0.4])
def test_of_one_dual_point(make, share):
    problem = make(0)
    assert_mixed([(1.0, slopes_of(problem[1], share, 1))], problem)


@pytest.mark.parametrize("make", [uneven, full])
def test_of_a_mixture(make):
    problem = make(1)
    shares = 0.5, 0.2, 0.3
    parts = [(s, slopes_of(problem[1], 0.2, seed)) for seed, s in enumerate(shares)]
    assert_mixed(parts, problem)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_without_slopes(n_parts):
    problem = uneven(2)
    nothing = slopes_of(problem[1], 0.0, 0)
    assert_mixed([(0.5, nothing)] * n_parts, problem)
    assert_mixed([(0.5, nothing), (0.5, slopes_of(problem[1], 0.1, 3))], problem)


def test_shares_of_one_do_not_exceed_one():
    """0.33 + 0.56 + 0.11 rounds to more than one."""
    problem = full(3)
    slopes, dense = slopes_of(problem[1], 0.3, 0)
    slopes = replace(slopes, value=np.ones_like(slopes.value))
    assert_mixed([(share, (slopes, 1.0 * (dense > 0.0))) for share in (0.33, 0.56, 0.11)], problem)


def test_without_room_on_the_device(device, monkeypatch):
    """The host adds them up: the fit is solved by then."""
    if not device.startswith(("torch", "cuda")):
        pytest.skip("slopes are on the host anyway")
    torch = pytest.importorskip("torch")

    def too_much(*args):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr("lnml.kernels.torch.patterns.mixed_slopes", too_much)
    problem = full(4)
    parts = [(0.5, slopes_of(problem[1], 0.2, seed)) for seed in range(2)]
    assert_mixed(parts, problem)
