"""Softmax sums by class against dense NumPy."""

import numpy as np
import oracles
import pytest
from devices import examples
from hypothesis import given
from hypothesis import strategies as st
from toy_data import embedded, lattice, neighborhoods, sorted_blobs

from lnml.kernels.cpu import threads

pytestmark = pytest.mark.usefixtures("device")

SIZES = [[30, 1, 45], [1500, 700], [2] * 200 + [1000]]


def dense(embedding, y):
    """Sum of 1 - p, and V^T Lap(W + W^T) data, V the coordinates and V the data."""
    Z, X = (a.astype(np.float64) for a in (embedding.coordinates, embedding.points.data))
    P = oracles.neighbor_probabilities(oracles.squared_distances(Z))
    same = y[:, None] == y
    share = (P * same).sum(axis=1)
    laplacian = oracles.laplacian(P * (same - share[:, None]))
    return (1.0 - share).sum(), Z.T @ laplacian @ X, X.T @ laplacian @ X


def assert_equal_to_dense(kernels, embedding, y, rtol):
    """The sum and both moments."""
    expected_total, *expected = dense(embedding, y)
    for full, moment in zip((False, True), expected, strict=True):
        total, found = kernels.class_softmax(embedding, full=full)
        assert isinstance(total, float)
        assert total == pytest.approx(expected_total, rel=rtol)
        np.testing.assert_allclose(found, moment, atol=rtol * np.abs(moment).max())
    assert kernels.class_softmax(embedding, full=None)[0] == total
    assert kernels.class_softmax(embedding, full=None)[1].size == 0


@pytest.mark.parametrize("class_sizes", SIZES, ids=["few", "many", "pairs"])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_sums_and_moments(class_sizes, dtype, rtol):
    X, y = sorted_blobs(3, class_sizes, 5)
    kernels, embedding = embedded(X, y, dtype)
    components = 0.3 * np.random.default_rng(3).standard_normal((2, 5))
    embedding = kernels.embed(embedding.points, components)
    assert_equal_to_dense(kernels, embedding, y, rtol)


def with_outliers(offset):
    """Two classes; two rows far from all others, and a pair of near rows far from the rest."""
    X, y = sorted_blobs(4, [250, 300], 3)
    X[7] += offset
    X[300] -= 1.5 * offset
    X[400:402] = [-offset, offset, 0.0]
    X[401, 0] += 0.5
    return X, y


@pytest.mark.parametrize("dtype, offset, rtol", [(np.float64, 40, 1e-9), (np.float32, 12, 1e-3)])
def test_rows_far_from_all_others(dtype, offset, rtol):
    """Their exp(-D_ij) underflow."""
    X, y = with_outliers(offset)
    kernels, embedding = embedded(X, y, dtype)
    embedding = kernels.embed(embedding.points, np.diag([1.0, 0.9, 1.1]))
    distances = oracles.squared_distances(embedding.coordinates)
    assert (np.exp(-distances[[7, 300]]).astype(dtype).sum(axis=1) == 1.0).all()
    assert_equal_to_dense(kernels, embedding, y, rtol)
    # The cost of its nearest row shows the Z of every row by itself.
    others = distances + np.where(np.eye(y.size), np.inf, 0.0)
    nearest = neighborhoods(others == others.min(axis=1, keepdims=True))
    rows, columns = nearest.pairs()
    assert rows.size == y.size
    costs = distances[rows, columns] + oracles.log_normalizers(distances)
    atol = rtol * (1.0 + distances[rows, columns])
    assert (np.abs(kernels.softmax_costs(embedding, nearest) - costs) <= atol).all()


def test_any_scale_with_ties_and_duplicates(device):
    @examples(device, 40)
    @given(st.integers(0, 10**6), st.floats(-3.0, 3.0))
    def check(seed, log_scale):
        Z = 10.0**log_scale * lattice(seed, 40, 2, levels=6)
        y = np.sort(np.random.default_rng(seed).integers(0, 3, 40))
        y = np.unique(y, return_inverse=True)[1]
        kernels, embedding = embedded(Z, y)
        expected_total, _, expected = dense(embedding, y)
        total, found = kernels.class_softmax(embedding, full=True)
        rounding = 1e-12 + 100 * np.finfo(float).eps * (Z**2).sum(axis=1).max()
        assert total == pytest.approx(expected_total, abs=40 * rounding)
        atol = rounding * (1.0 + np.abs(Z).max() ** 2) * 40
        np.testing.assert_allclose(found, expected, atol=atol)

    check()


@pytest.mark.parametrize("offset", [0, 40])
def test_bitwise_equal_whatever_the_number_of_threads(offset, monkeypatch):
    X, y = with_outliers(offset)
    kernels, embedding = embedded(X, y)
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with kernels.session():
            total, moment = kernels.class_softmax(embedding, full=True)
        results.append((total, moment.tobytes()))
    assert results[0] == results[1]
