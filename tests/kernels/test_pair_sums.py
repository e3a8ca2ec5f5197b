"""Distances, Laplacian products, Gram matrices and softmax sums against dense NumPy."""

import numpy as np
import oracles
import pytest
from devices import host_kernels
from oracles import squared_distances
from toy_data import embedded, neighborhoods, pattern_matrix, sorted_blobs

from lnml.core.pairs import Pattern, round_ties

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
    rows = kernels.arrays.rows(embedding, np.array([4, 0]))
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows, X[[4, 0]] @ components.T, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_distances_of_pairs(dtype, rtol):
    Z, y = sorted_blobs(0, SIZES, 4)
    kernels, embedding = embedded(Z, y, dtype)
    pairs = random_pattern(y.size, 0.3, 0)
    rows, columns = pairs.pairs()
    expected = squared_distances(Z.astype(dtype))[rows, columns]
    np.testing.assert_allclose(kernels.distances(embedding, pairs), expected, rtol=rtol)


@pytest.mark.parametrize("class_sizes", [SIZES, MANY])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-11), (np.float32, 1e-5)])
def test_laplacian_of_signed_weights_on_two_patterns(class_sizes, dtype, rtol):
    values, y = sorted_blobs(1, class_sizes, 3)
    values = values.astype(dtype)
    rng = np.random.default_rng(2)
    share = 20 / y.size
    patterns = [random_pattern(y.size, share, seed) for seed in (3, 4)]
    weights = [rng.uniform(0.0, 1.0, p.size) * (rng.random(p.size) < 0.7) for p in patterns]
    factors = [1.0, -0.5]
    W = sum(
        factor * pattern_matrix(p, w, y.size)
        for p, w, factor in zip(patterns, weights, factors, strict=True)
    )
    edges = list(zip(patterns, weights, factors, strict=True))
    found = host_kernels().laplacian(edges, values)
    assert found.dtype == dtype
    expected = oracles.laplacian(W) @ values.astype(float)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def test_laplacian_of_one_pair():
    pattern = Pattern(np.array([0, 1, 1, 1]), np.array([2], dtype=np.int32))
    values = np.array([[1.0], [5.0], [4.0]])
    found = host_kernels().laplacian([(pattern, np.array([2.0]), 0.5)], values)
    np.testing.assert_allclose(found, [[-3.0], [0.0], [3.0]])


@pytest.mark.parametrize("n_rows", [7, 10_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_in_float64(n_rows, dtype):
    rng = np.random.default_rng(0)
    left = (100.0 + rng.standard_normal((n_rows, 3))).astype(dtype)
    right = (100.0 + rng.standard_normal((n_rows, 2))).astype(dtype)
    found = host_kernels().gram(left, right)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, left.astype(float).T @ right.astype(float), rtol=1e-12)


@pytest.mark.parametrize("class_sizes", [SIZES, MANY])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 2e-5)])
def test_log_normalizers(class_sizes, dtype, rtol):
    Z, y = sorted_blobs(2, class_sizes, 2)
    Z = Z.astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    expected = oracles.log_normalizers(squared_distances(Z))
    np.testing.assert_allclose(kernels.log_normalizers(embedding), expected, rtol=rtol, atol=rtol)


def softmax_moments(embedding, row_weights):
    """Log Z and V^T Lap(P + P^T) data, V the coordinates and V the data."""
    Z, X = (a.astype(np.float64) for a in (embedding.coordinates, embedding.points.data))
    D = squared_distances(Z)
    laplacian = oracles.laplacian(row_weights[:, None] * oracles.neighbor_probabilities(D))
    return oracles.log_normalizers(D), Z.T @ laplacian @ X, X.T @ laplacian @ X


@pytest.mark.parametrize("class_sizes", [SIZES, MANY])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 2e-5)])
def test_softmax_moments(class_sizes, dtype, rtol):
    X, y = sorted_blobs(3, class_sizes, 5)
    kernels, embedding = embedded(X, y, dtype)
    rng = np.random.default_rng(3)
    embedding = kernels.embed(embedding.points, rng.standard_normal((2, 5)))
    row_weights = rng.uniform(0.0, 2.0, y.size) * (rng.random(y.size) < 0.8)
    expected_log_z, *expected = softmax_moments(embedding, row_weights)
    for full, moment in zip((False, True), expected, strict=True):
        log_z, found = kernels.softmax(embedding, row_weights, full=full)
        np.testing.assert_allclose(log_z, expected_log_z, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(found, moment, rtol=rtol, atol=rtol * np.abs(moment).max())


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_softmax_where_the_nearest_row_is_in_another_block(dtype, rtol, scale):
    """Pairs of near rows, far from all others, half of the data apart."""
    half = 700
    X = np.tile(np.arange(half)[:, None] * np.array([1.0, 0.5]), (2, 1))
    X[half:, 0] += 0.125
    kernels, embedding = embedded(scale * X, np.zeros(2 * half, dtype=int), dtype)
    row_weights = np.ones(2 * half)
    expected_log_z, moment, _ = softmax_moments(embedding, row_weights)
    log_z, found = kernels.softmax(embedding, row_weights, full=True)
    largest = np.abs(embedding.coordinates).max() ** 2
    precision = 20 * np.finfo(dtype).eps * largest
    np.testing.assert_allclose(log_z, expected_log_z, rtol=rtol, atol=precision)
    if precision < 1e-2:
        np.testing.assert_allclose(found, moment, rtol=rtol, atol=precision * np.abs(moment).max())


def test_rounding_of_ties_keeps_37_bits():
    values = np.random.default_rng(0).lognormal(sigma=20.0, size=1000)
    mantissa, exponent = np.frexp(values)
    expected = np.ldexp(np.round(np.ldexp(mantissa, 37)), exponent - 37)
    np.testing.assert_array_equal(round_ties(values), expected)
    np.testing.assert_array_equal(round_ties(np.array([0.0, 1.0, 3.0])), [0.0, 1.0, 3.0])
    assert round_ties(np.array(0.1 + 0.2)) == round_ties(np.array(0.3))
