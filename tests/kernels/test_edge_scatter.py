"""A sum of v v^T over weighted pairs, with a bound of its rounding."""

import numpy as np
import pytest
from devices import device_kernels, host
from toy_data import class_start, sorted_blobs

from lnml.core.pairs import Edge, Pattern

pytestmark = pytest.mark.usefixtures("device")


def patterns(rng, n, sizes):
    """Pairs of every row."""
    for size in sizes:
        indices = np.concatenate([np.sort(rng.permutation(n)[:size]) for _ in range(n)])
        yield Pattern(np.arange(0, n * size + 1, size), indices.astype(np.int32))


def uneven(rng, n):
    """Up to four pairs of a row; some have none."""
    lists = [np.sort(rng.permutation(n)[: rng.integers(0, 5)]) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return Pattern(indptr, np.concatenate(lists).astype(np.int32))


def rows_of(pattern):
    return np.repeat(np.arange(pattern.indptr.size - 1), np.diff(pattern.indptr))


def assert_within_its_error(found, X, weighted):
    """Against the sum over pairs in long double; also the size of the error."""
    width = X.shape[1]
    exact, squares = np.zeros((width, width), np.longdouble), np.zeros(width, np.longdouble)
    for pattern, weight in weighted:
        v = X[rows_of(pattern)].astype(np.longdouble) - X[pattern.indices]
        exact += (v * weight[:, None]).T @ v
        squares += np.abs(weight) @ v**2
    allowed = np.outer(found.left, found.right)
    assert (np.abs(found.matrix - exact) <= allowed + allowed.T).all()
    np.testing.assert_allclose(found.squares, squares.astype(float), rtol=1e-9)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    assert allowed.max() <= 1e-9 * found.squares.max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_within_its_error(dtype, offset):
    X, y = sorted_blobs(0, [900, 700], 5)
    X = (X + offset).astype(dtype)
    rng = np.random.default_rng(1)
    device = device_kernels()
    points = device.points(X, class_start(y))
    first, second = patterns(rng, len(y), (3, 5))
    weights = rng.uniform(0.0, 2.0, second.size)
    edges = [Edge(device.pattern(first)), Edge(device.pattern(second), weights, -0.7)]
    found = device.edge_scatter(points, edges)
    weighted = [(first, np.ones(first.size)), (second, -0.7 * weights)]
    assert_within_its_error(found, X, weighted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("weights", ["ones", "host", "device"])
def test_weights_of_pairs_of_classes_and_of_rows(dtype, by_class, shared, weights):
    """All kinds of weights, alone and together; values of pairs on the device, too."""
    X, y = sorted_blobs(1, [60, 1, 40], 4)
    X = X.astype(dtype)
    rng = np.random.default_rng(2)
    device = device_kernels()
    points = device.points(X, class_start(y))
    pattern = uneven(rng, len(y))
    assert 0 in np.diff(pattern.indptr)
    pairs = device.pattern(pattern)
    of_pairs = {"ones": None, "host": rng.uniform(0.0, 2.0, pattern.size)}.get(
        weights, device.distances(device.embed(points, 0.5 * np.eye(4)), pairs)
    )
    of_classes = np.array([0.5, 3.0, 0.0]) if by_class else None
    edge = Edge(pairs, of_pairs, -0.3, by_class=of_classes, shared=shared)
    rows = rows_of(pattern)
    expected = np.full(pattern.size, -0.3)
    if weights != "ones":
        expected *= host(of_pairs)
    if by_class:
        expected *= of_classes[y[rows]]
    if shared:
        expected /= np.diff(pattern.indptr)[rows]
    assert_within_its_error(device.edge_scatter(points, [edge]), X, [(pattern, expected)])


def test_edges_without_pairs():
    X, y = sorted_blobs(1, [6, 5], 3)
    device = device_kernels()
    points = device.points(X, class_start(y))
    nobody = device.pattern(Pattern(np.zeros(12, np.int64), np.zeros(0, np.int32)))
    found = device.edge_scatter(points, [Edge(nobody, shared=True)])
    np.testing.assert_array_equal(found.matrix, np.zeros((3, 3)))
    np.testing.assert_array_equal(found.squares, np.zeros(3))


def test_the_total_weight_of_an_edge():
    device = device_kernels()
    device.points(np.eye(50), np.array([0, 50]))
    pattern = device.pattern(uneven(np.random.default_rng(3), 50))
    sizes = np.diff(host(pattern).indptr)
    assert Edge(pattern, factor=0.5).total == 0.5 * sizes.sum()
    assert Edge(pattern, factor=0.5, shared=True).total == 0.5 * (sizes > 0).sum()
