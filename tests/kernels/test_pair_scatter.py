"""The scatter of all pairs of rows, weighted by row or class, against a sum over pairs."""

import numpy as np
import pytest
from devices import device_kernels, host, host_kernels
from toy_data import sorted_blobs

from lnml.core.pairs import Pattern

pytestmark = pytest.mark.usefixtures("device")

DTYPES = [np.float64, np.float32]
# One row, and empty classes at the start, in the middle and at the end.
SIZES = [0, 12, 1, 0, 20, 0]


def starts(class_sizes):
    return np.concatenate([[0], np.cumsum(class_sizes)])


def data_of(class_sizes, n_features=3, dtype=np.float64, seed=0):
    """Rows of classes, some of which may be empty, and the class of each."""
    X, _ = sorted_blobs(seed, [size for size in class_sizes if size], n_features)
    return X.astype(dtype), np.repeat(np.arange(len(class_sizes)), class_sizes)


def some_weights(kind, class_sizes, rng):
    """Weights as the library takes them; signed, and some zero."""
    if kind == "none":
        return None
    size = len(class_sizes) if kind == "class" else sum(class_sizes)
    return rng.uniform(-0.5, 1.0, size) * (rng.random(size) < 0.8)


def per_row(weights, y, n_classes):
    """One weight for every row."""
    if weights is None:
        return np.zeros(y.size)
    return weights[y] if len(weights) == n_classes else weights


def sum_over_pairs(X, y, same, other):
    """Sum of weight * v v^T, pair by pair, in long double; and that of the sizes of its terms."""
    X = X.astype(np.longdouble)
    total, size = np.zeros((2, X.shape[1], X.shape[1]), np.longdouble)
    for i in range(y.size):
        for j in range(y.size):
            v = X[i] - X[j]
            weight = same[i] if y[i] == y[j] else other[i]
            total += weight * np.outer(v, v)
            size += abs(weight) * np.outer(abs(v), abs(v))
    return total, size


def sum_over_rows(X, y, same, other):
    """The same sums, all partners of a row at once."""
    X = X.astype(np.longdouble)
    total, size = np.zeros((2, X.shape[1], X.shape[1]), np.longdouble)
    for i in range(y.size):
        v = X[i] - X
        weight = np.where(y == y[i], same[i], other[i])
        total += (weight[:, None] * v).T @ v
        size += (abs(weight)[:, None] * abs(v)).T @ abs(v)
    return total, size


def assert_close(found, expected, rtol=1e-12):
    """Equal up to a share of the sizes of the terms."""
    total, size = expected
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, found.T)
    assert (np.abs(found - total) <= rtol * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", ["none", "class", "row"])
@pytest.mark.parametrize("same", ["none", "class", "row"])
def test_weights_of_rows_and_classes(same, other, dtype):
    X, y = data_of(SIZES, dtype=dtype)
    rng = np.random.default_rng(1)
    kernels = host_kernels()
    weights = [some_weights(kind, SIZES, rng) for kind in (same, other)]
    found = kernels.pair_scatter(kernels.points(X, starts(SIZES)), *weights)
    expected = sum_over_pairs(X, y, *(per_row(given, y, len(SIZES)) for given in weights))
    assert_close(found, expected)


@pytest.mark.parametrize("class_sizes", [[250, 1, 0, 199], [450], [3] * 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_more_rows_than_a_tile(class_sizes, dtype, device, monkeypatch):
    rows_per_tile = {
        "cpu": "cpu.columns._ROWS_PER_TILE",
        "cluster": "cluster.layout.BLOCK_ROWS",
    }.get(device, "torch.columns._ROWS_PER_TILE")
    monkeypatch.setattr(f"lnml.kernels.{rows_per_tile}", 64)
    X, y = data_of(class_sizes, 2, dtype)
    rng = np.random.default_rng(2)
    same, other = (some_weights(kind, class_sizes, rng) for kind in ("row", "class"))
    kernels = host_kernels()
    points = kernels.points(X, starts(class_sizes))
    found = kernels.pair_scatter(points, same, other)
    n_classes = len(class_sizes)
    assert_close(found, sum_over_rows(X, y, same, per_row(other, y, n_classes)))
    found = kernels.pair_scatter(points, other, same)
    assert_close(found, sum_over_rows(X, y, per_row(other, y, n_classes), same))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_costs_no_digits(dtype):
    """Sums are in float64, from differences, whatever the type of the data."""
    X, y = data_of([300, 1, 200], dtype=dtype)
    X += dtype(1e3)
    kernels = host_kernels()
    ones = np.ones(3)
    found = kernels.pair_scatter(kernels.points(X, starts([300, 1, 200])), ones, ones)
    assert_close(found, sum_over_rows(X, y, np.ones(y.size), np.ones(y.size)))


@pytest.mark.parametrize("dtype, gap", [(np.float64, 1e8), (np.float32, 1e3)])
def test_the_scatter_of_classes_does_not_feel_how_far_they_are_apart(dtype, gap):
    X, y = data_of([30, 1, 40], dtype=dtype)
    X += dtype(gap) * y[:, None].astype(dtype)
    same = np.array([0.5, 1.0, 2.0])
    kernels = host_kernels()
    found = kernels.pair_scatter(kernels.points(X, starts([30, 1, 40])), same)
    # The mean of a class is rounded, too.
    rtol = 1e-12 + np.finfo(float).eps * gap
    assert_close(found, sum_over_pairs(X, y, same[y], np.zeros(y.size)), rtol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_rows_on_the_device(dtype):
    X, y = data_of(SIZES, dtype=dtype)
    kernels = device_kernels()
    points = kernels.points(X, starts(SIZES))
    ring = Pattern(np.arange(y.size + 1), np.roll(np.arange(y.size, dtype=np.int32), 1))
    embedding = kernels.embed(points, 0.3 * np.eye(3))
    values = kernels.distances(embedding, kernels.pattern(ring), longest=True)
    found = kernels.pair_scatter(points, 2.0 * values, values)
    there = host(values)
    assert_close(found, sum_over_pairs(X, y, 2.0 * there, there))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row_and_identical_rows_have_no_scatter(dtype):
    kernels = host_kernels()
    ones = np.ones(2)
    for X, class_sizes in ((np.full((1, 2), 7.3), [0, 1]), (np.full((6, 2), 7.3), [2, 4])):
        points = kernels.points(X.astype(dtype), starts(class_sizes))
        np.testing.assert_allclose(kernels.pair_scatter(points, ones, ones), 0.0, atol=1e-27)
