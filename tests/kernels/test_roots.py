"""Sums of distances over pairs of different class against dense NumPy."""

import numpy as np
import pytest
from oracles import other_class, root_sum, squared_distances
from toy_data import embedded, lattice, sorted_blobs

from lnml.kernels.cpu import threads

pytestmark = [
    pytest.mark.usefixtures("device"),
    pytest.mark.one_machine("MMC, which needs sums of roots, is not fitted on a cluster"),
]

SIZES = [30, 1, 45]
MANY = [700, 3, 900, 80]
PRECISION = [(np.float64, 1e-10), (np.float32, 2e-5)]


def dense(embedding, y):
    """Root sum and sum of v v^T / (2 sqrt(D)), the root limited below as documented."""
    Z, X = (a.astype(np.float64) for a in (embedding.coordinates, embedding.points.data))
    D = squared_distances(Z)
    typical = np.sqrt(2.0 * ((Z - Z.mean(axis=0)) ** 2).sum(axis=1).mean())
    floor = {"float64": 1e-8, "float32": 1e-4}[embedding.coordinates.dtype.name] * typical
    W = np.where(other_class(y), 0.5 / np.maximum(np.sqrt(D), floor), 0.0)
    v = X.T[:, :, None] - X.T[:, None]
    return root_sum(D, y), np.array([[(W * a * b).sum() for b in v] for a in v])


def assert_equal_to_dense(kernels, embedding, y, rtol):
    expected, moment = dense(embedding, y)
    total, found = kernels.root_sums(embedding)
    assert total == pytest.approx(expected, rel=rtol)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, moment, rtol=rtol, atol=rtol * np.abs(moment).max())
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("class_sizes", [SIZES, MANY, [1] * 40, [2] * 300])
@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("dtype, rtol", PRECISION)
def test_sums_and_moments(class_sizes, rank, dtype, rtol):
    X, y = sorted_blobs(3, class_sizes, 5)
    kernels, embedding = embedded(X, y, dtype)
    components = np.random.default_rng(3).standard_normal((rank, 5))
    embedding = kernels.embed(embedding.points, components)
    assert_equal_to_dense(kernels, embedding, y, rtol)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_ties_and_duplicates(dtype, rtol):
    X = lattice(0, 400, 3)
    y = np.repeat([0, 1, 2], [150, 200, 50])
    assert_equal_to_dense(*embedded(X, y, dtype), y, rtol)


def test_near_duplicates_far_from_the_mean():
    """Products would lose all digits of these distances."""
    X, y = sorted_blobs(1, [40, 40], 3)
    X[40:] = X[:40] + 1e-7 * X[40:]
    kernels, embedding = embedded(1e3 + X, y)
    assert_equal_to_dense(kernels, embedding, y, 1e-9)


def test_far_classes():
    X, y = sorted_blobs(2, [40, 40, 40], 3)
    kernels, embedding = embedded(X + 1e6 * y[:, None], y)
    expected, _ = dense(embedding, y)
    assert kernels.root_sums(embedding)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_identical_rows_have_no_distance(dtype):
    kernels, embedding = embedded(np.ones((6, 2)), np.repeat([0, 1], 3), dtype)
    total, found = kernels.root_sums(embedding)
    assert total == 0.0
    np.testing.assert_array_equal(found, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bitwise_equal_whatever_the_number_of_threads(dtype, monkeypatch):
    Z, y = sorted_blobs(0, [900, 700, 3], 3)
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        kernels, embedding = embedded(Z, y, dtype)
        with kernels.session():
            results.append(kernels.root_sums(embedding))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
