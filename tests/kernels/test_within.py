"""Impostor search against brute force."""

import numpy as np
import pytest
from oracles import other_class, squared_distances
from toy_data import embedded, lattice, pattern_matrix, sorted_blobs

from lnml.core.pairs import TooManyPairs

pytestmark = pytest.mark.usefixtures("device")

# More rows than one tile is high or wide, with class boundaries inside tiles.
MANY = [300, 1, 450, 399, 60]


def dense(pattern, n_columns):
    return pattern_matrix(pattern, 1.0, n_columns) > 0


def assert_sorted_columns(pattern):
    for i in range(pattern.indptr.size - 1):
        row = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        assert (np.diff(row) > 0).all()


def random_radius(D, seed, share=0.15):
    """A different radius for every row, some -inf as of rows without targets."""
    rng = np.random.default_rng(seed)
    radius = np.quantile(D, share) * rng.uniform(0.2, 2.0, D.shape[0])
    radius[rng.random(D.shape[0]) < 0.1] = -np.inf
    return radius


def assert_found_exactly(pattern, D, y, radius, margin):
    """All pairs inside the radius, and none of those clearly outside it."""
    found = dense(pattern, y.size)
    assert_sorted_columns(pattern)
    assert found.sum() == pattern.size
    inside = (D < radius[:, None]) & other_class(y)
    assert inside.any()
    assert (found | ~inside).all()
    outside = (D > radius[:, None] * (1.0 + margin)) | ~other_class(y)
    assert not (found & outside).any()


@pytest.mark.parametrize("class_sizes", [[20, 15, 1], [3, 300, 40], [260, 256, 2], MANY])
@pytest.mark.parametrize("dtype, margin", [(np.float64, 1e-6), (np.float32, 1e-3)])
def test_pairs_inside_the_radius(class_sizes, dtype, margin):
    Z, y = sorted_blobs(0, class_sizes, 4)
    Z = Z.astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = random_radius(D, 1)
    assert_found_exactly(kernels.within(embedding, radius), D, y, radius, margin)


def test_almost_all_pairs():
    """Result buffers grow as often as they must."""
    Z, y = sorted_blobs(1, [700, 600], 2)
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    radius = np.full(y.size, np.quantile(D, 0.99))
    assert_found_exactly(kernels.within(embedding, radius), D, y, radius, 1e-6)


def test_no_pair():
    Z, y = sorted_blobs(1, [20, 20], 2)
    kernels, embedding = embedded(Z, y)
    pattern = kernels.within(embedding, np.full(y.size, -np.inf))
    assert pattern.size == 0
    np.testing.assert_array_equal(pattern.indptr, np.zeros(y.size + 1))


@pytest.mark.parametrize("rows", [(0, 1210), (0, 7), (299, 302), (250, 1100), (1209, 1210)])
def test_range_of_rows(rows):
    Z, y = sorted_blobs(2, MANY, 4)
    kernels, embedding = embedded(Z, y)
    radius = random_radius(squared_distances(Z), 2)
    full = dense(kernels.within(embedding, radius), y.size)
    part = kernels.within(embedding, radius, rows=rows)
    assert_sorted_columns(part)
    np.testing.assert_array_equal(dense(part, y.size), full[slice(*rows)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_never_loses_a_pair(dtype):
    """Large norms, tiny differences: the matrix product alone is off by more than the distances."""
    Z, y = sorted_blobs(3, [200, 150, 30], 3)
    Z = np.vstack([Z[:-2], Z[-2:] + 1e4]).astype(dtype)
    Z[::2] += dtype(1e3)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = np.sort(D, axis=1)[:, 40]
    inside = (D < radius[:, None]) & other_class(y)
    found = dense(kernels.within(embedding, radius), y.size)
    assert (found | ~inside).all()


def test_extreme_scales():
    Z, y = sorted_blobs(4, [100, 100], 5)
    Z = Z * np.array([1e-8, 1e-4, 1.0, 1e4, 1e8]) + 1e6
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    radius = random_radius(D, 4)
    assert_found_exactly(kernels.within(embedding, radius), D, y, radius, 1e-6)


def test_lattice_pairs_within_a_radius_between_two_levels():
    y = np.repeat([0, 1, 2], [150, 100, 60])
    Z = lattice(5, y.size, 3)
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    found = dense(kernels.within(embedding, np.full(y.size, 2.5)), y.size)
    np.testing.assert_array_equal(found, (D < 2.5) & other_class(y))


@pytest.mark.parametrize("rows", [None, (100, 400)])
def test_too_many_pairs(rows):
    Z, y = sorted_blobs(6, [300, 300], 2)
    kernels, embedding = embedded(Z, y)
    radius = np.full(y.size, 1.0)
    size = kernels.within(embedding, radius, rows=rows).size
    assert size > 1
    assert kernels.within(embedding, radius, rows=rows, max_pairs=size).size == size
    with pytest.raises(TooManyPairs):
        kernels.within(embedding, radius, rows=rows, max_pairs=size - 1)


@pytest.mark.parametrize("dtype, margin", [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("scale", [1.0, 1e25, 1e-25])
@pytest.mark.parametrize("outlier", [0.0, 1e6])
def test_leading_coordinates_lose_no_pair(monkeypatch, dtype, margin, scale, outlier):
    """The filter of large searches, on few rows: flat and steep spectra, any unit, an outlier."""
    if dtype is np.float32 and scale != 1.0:
        scale = scale ** (1 / 2)
    monkeypatch.setattr("lnml.kernels.cpu.search.SMALL", 0)
    Z, y = sorted_blobs(3, MANY[:3], 40)
    Z *= np.geomspace(1.0, 1e-3, 40)
    Z[0] += outlier
    Z = (Z * scale).astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = random_radius(D, 3)
    assert_found_exactly(kernels.within(embedding, radius), D, y, radius, margin)
    part = kernels.within(embedding, radius, rows=(280, 340))
    whole = kernels.within(embedding, radius)
    low, high = whole.indptr[280], whole.indptr[340]
    np.testing.assert_array_equal(part.indices, whole.indices[low:high])
