"""Softmax sums by class against dense NumPy."""

import numpy as np
import oracles
import pytest
from toy_data import embedded, sorted_blobs

from lnml.kernels.cpu import threads

SIZES = [[30, 1, 45], [1500, 700], [2] * 200 + [1000]]


def dense(embedding, y):
    """p, and values^T Lap(W + W^T) data for the coordinates and for the data."""
    Z, X = (a.astype(np.float64) for a in (embedding.coordinates, embedding.points.data))
    P = oracles.neighbor_probabilities(oracles.squared_distances(Z))
    same = y[:, None] == y
    share = (P * same).sum(axis=1)
    laplacian = oracles.laplacian(P * (same - share[:, None]))
    return share, Z.T @ laplacian @ X, X.T @ laplacian @ X


@pytest.mark.parametrize("class_sizes", SIZES, ids=["few", "many", "pairs"])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_shares_and_moments(class_sizes, dtype, rtol):
    X, y = sorted_blobs(3, class_sizes, 5)
    kernels, embedding = embedded(X, y, dtype)
    components = 0.3 * np.random.default_rng(3).standard_normal((2, 5))
    embedding = kernels.embed(embedding.points, components)
    expected_share, *expected = dense(embedding, y)
    both = (embedding.coordinates, embedding.points.data)
    for values, moment in zip(both, expected, strict=True):
        share, found = kernels.class_softmax(embedding, values)
        np.testing.assert_allclose(share, expected_share, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(found, moment, atol=rtol * np.abs(moment).max())


def test_bitwise_equal_whatever_the_number_of_threads(monkeypatch):
    X, y = sorted_blobs(0, [900, 700, 3], 3)
    kernels, embedding = embedded(X, y)
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with kernels.session():
            share, moment = kernels.class_softmax(embedding, embedding.points.data)
        results.append(share.tobytes() + moment.tobytes())
    assert results[0] == results[1]
