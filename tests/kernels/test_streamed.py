"""Hinge terms whose impostors are not kept, against dense sums over triplets."""

import numpy as np
import pytest
from devices import room_for
from oracles import laplacian, nearest_targets, other_class, smoothed_hinge, squared_distances
from toy_data import embedded, neighborhoods, sorted_blobs

from lnml.core.pairs import Pattern, Streamed
from lnml.kernels.cpu import search, threads
from lnml.kernels.cpu.backend import CPUKernels

CLUSTER = pytest.mark.one_machine("a cluster keeps all candidates, or says that they do not fit")


def streamed(targets):
    nobody = Pattern(np.zeros(targets.indptr.size, dtype=np.int64), np.zeros(0, dtype=np.int32))
    return Streamed(targets, nobody)


class Dense:
    """All triplets of some targets, one by one."""

    def __init__(self, D, y, P, gamma):
        n = y.size
        self.smoothed = self.exact = self.slope_sum = 0.0
        self.n_active, self.weights, self.sizes = 0, np.zeros((n, n)), np.zeros((n, n))
        self.target_slopes = []
        for i, j in np.argwhere(P):
            h = 1.0 + D[i, j] - D[i]
            value, slope = smoothed_hinge(h, gamma, np.zeros(n))
            value, slope = (np.where(other_class(y)[i], part, 0.0) for part in (value, slope))
            self.smoothed += value.sum()
            self.exact += np.maximum(h, 0.0)[other_class(y)[i]].sum()
            self.n_active += int((h > 0.0)[other_class(y)[i]].sum())
            self.slope_sum += slope.sum()
            self.target_slopes.append(slope.sum())
            self.weights[i] -= slope
            self.weights[i, j] += slope.sum()
            self.sizes[i] += slope
            self.sizes[i, j] += slope.sum()


def some_targets(D, y, seed):
    """Up to three nearest neighbours a row, some rows without any."""
    P = nearest_targets(D, y, 3)
    P[np.random.default_rng(seed).random(P.shape) < 0.2] = 0.0
    P[::9] = 0.0
    return P


@CLUSTER
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("gamma", [0.05, 0.7])
@pytest.mark.parametrize("rows_at_a_time", [0, 3, 200])
def test_sums_over_all_triplets(rows_at_a_time, gamma):
    """However few rows there is room for."""
    Z, y = sorted_blobs(1, [25, 1, 40, 14], 3)
    Z = 0.7 * Z
    P = some_targets(squared_distances(Z), y, 1)
    kernels, embedding = embedded(Z, y)
    expected = Dense(squared_distances(Z), y, P, gamma)
    moment = Z.T @ laplacian(expected.weights) @ Z
    working, close = streamed(neighborhoods(P)), {"rtol": 1e-10, "atol": 1e-10}
    with room_for(kernels, rows_at_a_time * y.size):
        for name in ("", "data", "coordinates"):
            found = kernels.hinge(embedding, working, gamma, moment=name)
            assert found.n_active == expected.n_active > 0
            for part in ("smoothed", "exact", "slope_sum"):
                np.testing.assert_allclose(getattr(found, part), getattr(expected, part), **close)
            if name:
                np.testing.assert_allclose(found.moment, moment, rtol=1e-9, atol=1e-8)
        found = kernels.hinge(embedding, working, gamma, moment="scatter")
    np.testing.assert_allclose(found.target_slopes, expected.target_slopes, **close)
    np.testing.assert_allclose(found.scatter.matrix, moment, rtol=1e-9, atol=1e-8)


@CLUSTER
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_the_error_of_a_scatter_is_within_its_bound(offset):
    """Compared with a sum in long double over differences."""
    Z, y = sorted_blobs(2, [60, 40, 50], 3)
    Z = Z + offset
    D = squared_distances(Z - offset)
    P = some_targets(D, y, 2)
    kernels, embedding = embedded(Z, y)
    with room_for(kernels, 8 * y.size):
        scatter = kernels.hinge(
            embedding, streamed(neighborhoods(P)), 0.3, moment="scatter"
        ).scatter
    dense = Dense(D, y, P, 0.3)
    i, j = np.nonzero(dense.sizes)
    v = Z.astype(np.longdouble)[i] - Z[j]
    exact = (v * dense.weights[i, j][:, None]).T @ v
    squares = dense.sizes[i, j] @ v**2
    scale = np.sqrt(np.outer(squares, squares))
    allowed = np.outer(scatter.left, scatter.right)
    # The slopes of the two differ by the rounding of distances.
    assert (np.abs(scatter.matrix - exact) <= allowed + allowed.T + 1e-9 * scale).all()
    assert (scatter.squares >= squares * (1.0 - 1e-9)).all()
    # And it is not idle.
    assert (allowed <= 1e-10 * scale).all()


def test_no_more_pairs_are_kept_than_there_is_room_for(monkeypatch):
    kept, original = [], search._to_pattern

    def noted(parts, *rows):
        kept.append(sum(part[0].size for part in parts))
        return original(parts, *rows)

    monkeypatch.setattr(search, "_to_pattern", noted)
    Z, _ = sorted_blobs(0, [120, 100], 2)
    kernels = CPUKernels()
    embedding = kernels.embed(kernels.points(0.1 * Z, np.array([0, 120, 220])), np.eye(2))
    targets = kernels.partners(embedding, 3).pairs
    with room_for(kernels, 4000):
        kernels.hinge(embedding, streamed(targets), 0.1, moment="data")
        assert 1000 < max(kept) <= 2000
        assert sum(kept) == 2 * 120 * 100


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_search_ends_once_all_tiles_together_have_too_many(count, monkeypatch):
    """No tile has many pairs, and still most of the tiles are never looked at."""
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    monkeypatch.setattr(search, "TILE_ROWS", 16)
    looked, original = [], search._collect

    def noted(*arguments):
        looked.append(arguments[1])
        return original(*arguments)

    monkeypatch.setattr(search, "_collect", noted)
    Z, _ = sorted_blobs(0, [800, 800], 2)
    kernels = CPUKernels()
    points = kernels.points(0.01 * Z, np.array([0, 800, 1600]))
    with pytest.raises(search.TooManyPairs, match="more than 30,000 pairs"):
        search.within(kernels.embed(points, np.eye(2)), np.ones(1600), 30_000)
    assert len(set(looked)) < 25
    found = search.within(kernels.embed(points, np.eye(2)), np.ones(1600), 2 * 800 * 800)
    assert found.size == 2 * 800 * 800


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_do_not_depend_on_the_number_of_threads(dtype, monkeypatch):
    Z, _ = sorted_blobs(3, [700, 900], 4)
    kernels = CPUKernels()
    points = kernels.points((0.3 * Z).astype(dtype), np.array([0, 700, 1600]))
    embedding = kernels.embed(points, np.eye(4))
    targets = kernels.partners(embedding, 3).pairs
    results = []
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with room_for(kernels, 100_000):
            for moment in ("coordinates", "data", "scatter"):
                found = kernels.hinge(embedding, streamed(targets), 0.2, moment=moment)
                sums = found.moment if found.scatter is None else found.scatter.matrix
                results.append((found[:4], np.asarray(sums).tobytes()))
    assert results[:3] == results[3:6] == results[6:]
