"""A sum of v v^T over weighted pairs, with a bound of its rounding."""

import numpy as np
import pytest
from toy_data import sorted_blobs

from lnml.core.pairs import Pattern
from lnml.kernels import get_kernels

pytestmark = pytest.mark.usefixtures("device")


def patterns(rng, n, sizes):
    """Pairs of every row, and their weights."""
    for size in sizes:
        indices = np.concatenate([np.sort(rng.permutation(n)[:size]) for _ in range(n)])
        yield Pattern(np.arange(0, n * size + 1, size), indices.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_within_its_error(dtype, offset):
    X, y = sorted_blobs(0, [900, 700], 5)
    X = (X + offset).astype(dtype)
    rng = np.random.default_rng(1)
    device = get_kernels()
    points = device.points(X, np.array([0, 900, 1600]))
    first, second = patterns(rng, len(y), (3, 5))
    weights = rng.uniform(0.0, 2.0, second.size)
    edges = [
        (device.pattern(first), None, 1.0),
        (device.pattern(second), device.arrays.array(weights), -0.7),
    ]
    found = device.edge_scatter(points, edges, X.mean(axis=0, dtype=np.float64))
    exact, squares = np.zeros((5, 5), np.longdouble), np.zeros(5, np.longdouble)
    for pattern, weight in ((first, np.ones(first.size)), (second, -0.7 * weights)):
        rows = np.repeat(np.arange(len(y)), np.diff(pattern.indptr))
        v = X[rows].astype(np.longdouble) - X[pattern.indices]
        exact += (v * weight[:, None]).T @ v
        squares += np.abs(weight) @ v**2
    allowed = np.outer(found.left, found.right)
    assert (np.abs(found.matrix - exact) <= allowed + allowed.T).all()
    np.testing.assert_allclose(found.squares, squares.astype(float), rtol=1e-9)
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    assert allowed.max() <= 1e-9 * found.squares.max()
