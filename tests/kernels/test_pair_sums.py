"""Embeddings, distances and softmax sums against dense NumPy."""

import numpy as np
import oracles
import pytest
from devices import host_kernels
from oracles import squared_distances
from toy_data import embedded, neighborhoods, sorted_blobs

from lnml.core.pairs import round_ties

pytestmark = pytest.mark.usefixtures("device")

SIZES = [30, 1, 45]
MANY = [1500, 700]


def random_pattern(n, share, seed):
    chosen = np.random.default_rng(seed).random((n, n)) < share
    np.fill_diagonal(chosen, False)
    chosen[1] = False
    return neighborhoods(chosen)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_embedding_and_its_rows(dtype, rtol):
    X, y = sorted_blobs(0, SIZES, 5)
    components = np.random.default_rng(1).standard_normal((3, 5))
    kernels = host_kernels()
    points = kernels.points(X.astype(dtype), np.array([0, 30, 31, y.size]))
    np.testing.assert_array_equal(points.row_class, y)
    embedding = kernels.embed(points, components)
    assert embedding.coordinates.dtype == dtype
    np.testing.assert_allclose(embedding.coordinates, X @ components.T, rtol=rtol, atol=rtol)
    rows = kernels.rows(embedding, np.array([4, 0]))
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows, X[[4, 0]] @ components.T, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(kernels.to_host(embedding.coordinates), embedding.coordinates)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_distances_of_pairs(dtype, rtol):
    Z, y = sorted_blobs(0, SIZES, 4)
    kernels, embedding = embedded(Z, y, dtype)
    pairs = random_pattern(y.size, 0.3, 0)
    rows, columns = pairs.pairs()
    expected = squared_distances(Z.astype(dtype))[rows, columns]
    found = kernels.distances(embedding, pairs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=rtol)
    # Row 1 has no pair.
    longest = np.full(y.size, -np.inf)
    np.maximum.at(longest, rows, found)
    assert longest[1] == -np.inf
    np.testing.assert_array_equal(kernels.distances(embedding, pairs, longest=True), longest)


def test_distances_of_no_pairs():
    kernels, embedding = embedded(*sorted_blobs(0, SIZES, 4))
    nobody = neighborhoods(np.zeros((sum(SIZES), sum(SIZES))))
    assert kernels.distances(embedding, nobody).shape == (0,)
    longest = kernels.distances(embedding, nobody, longest=True)
    np.testing.assert_array_equal(longest, np.full(sum(SIZES), -np.inf))


@pytest.mark.parametrize("class_sizes", [SIZES, MANY])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 2e-5)])
def test_softmax_costs(class_sizes, dtype, rtol):
    """Different numbers of pairs a row, and rows without any."""
    Z, y = sorted_blobs(2, class_sizes, 2)
    Z = Z.astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    pairs = random_pattern(y.size, 3 / y.size, 5)
    rows, columns = pairs.pairs()
    sizes = np.bincount(rows, minlength=y.size)
    assert {0, 1} < set(sizes)
    D = squared_distances(Z)
    expected = D[rows, columns] + oracles.log_normalizers(D)[rows] - np.log(sizes[rows])
    found = kernels.softmax_costs(embedding, pairs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected / sizes[rows], rtol=rtol, atol=rtol)


def test_softmax_costs_of_one_pair_a_row():
    """With k = 1 the cost is D_ij + log Z_i: each log Z by itself."""
    Z, y = sorted_blobs(2, MANY, 2)
    kernels, embedding = embedded(Z, y)
    ring = neighborhoods(np.roll(np.eye(y.size), 1, axis=1))
    found = kernels.softmax_costs(embedding, ring) - kernels.distances(embedding, ring)
    expected = oracles.log_normalizers(squared_distances(Z))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def softmax_moments(embedding, counts):
    """Log Z, and V^T Lap(P + P^T) data of some rows, V the coordinates and V the data."""
    Z, X = (a.astype(np.float64) for a in (embedding.coordinates, embedding.points.data))
    D = squared_distances(Z)
    laplacian = oracles.laplacian(counts[:, None] * oracles.neighbor_probabilities(D))
    return oracles.log_normalizers(D), Z.T @ laplacian @ X, X.T @ laplacian @ X


@pytest.mark.parametrize("class_sizes", [SIZES, MANY])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 2e-5)])
@pytest.mark.parametrize("all_rows", [False, True])
def test_softmax_moments(class_sizes, dtype, rtol, all_rows):
    """Of rows that have targets, or a row of their class besides themselves."""
    X, y = sorted_blobs(3, class_sizes, 5)
    kernels, embedding = embedded(X, y, dtype)
    rng = np.random.default_rng(3)
    embedding = kernels.embed(embedding.points, rng.standard_normal((2, 5)))
    if all_rows:
        targets, counts = None, np.bincount(y)[y] > 1
    else:
        P = oracles.same_class(y) & (rng.random((y.size, y.size)) < 2 / y.size)
        targets, counts = neighborhoods(P), P.any(axis=1)
        assert 0.2 < counts.mean() < 0.9
    log_z, *expected = softmax_moments(embedding, counts)
    for full, moment in zip((False, True), expected, strict=True):
        total, found = kernels.softmax(embedding, targets, full=full)
        assert isinstance(total, float)
        assert total == pytest.approx(log_z[counts].sum(), rel=rtol, abs=rtol)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, moment, rtol=rtol, atol=rtol * np.abs(moment).max())
    total, found = kernels.softmax(embedding, targets, full=None)
    assert total == pytest.approx(log_z[counts].sum(), rel=rtol, abs=rtol)
    assert found.size == 0


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_softmax_where_the_nearest_row_is_in_another_block(dtype, rtol, scale):
    """Pairs of near rows, far from all others, half of the data apart."""
    half = 450
    X = np.tile(np.arange(half)[:, None] * np.array([1.0, 0.5]), (2, 1))
    X[half:, 0] += 0.125
    kernels, embedding = embedded(scale * X, np.zeros(2 * half, dtype=int), dtype)
    log_z, moment, _ = softmax_moments(embedding, np.ones(2 * half))
    precision = 20 * np.finfo(dtype).eps * np.abs(embedding.coordinates).max() ** 2
    near = neighborhoods(np.roll(np.eye(2 * half), half, axis=1))
    found = kernels.softmax_costs(embedding, near) - kernels.distances(embedding, near)
    np.testing.assert_allclose(found, log_z, rtol=rtol, atol=precision)
    total, found = kernels.softmax(embedding, None, full=True)
    assert total == pytest.approx(log_z.sum(), rel=rtol, abs=float(2 * half * precision))
    if precision < 1e-2:
        np.testing.assert_allclose(found, moment, rtol=rtol, atol=precision * np.abs(moment).max())


def test_rounding_of_ties_keeps_37_bits():
    values = np.random.default_rng(0).lognormal(sigma=20.0, size=1000)
    mantissa, exponent = np.frexp(values)
    expected = np.ldexp(np.round(np.ldexp(mantissa, 37)), exponent - 37)
    np.testing.assert_array_equal(round_ties(values), expected)
    np.testing.assert_array_equal(round_ties(np.array([0.0, 1.0, 3.0])), [0.0, 1.0, 3.0])
    assert round_ties(np.array(0.1 + 0.2)) == round_ties(np.array(0.3))
