"""Points that are far: sums from differences, against dense sums in long double.

A third of the rows have a code for missing values, 1e8, in one column, which weighs as
much as the others. Squared norms are 1e16 there, and products lose all near distances.
"""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from toy_data import embedded, lattice, neighborhoods, sorted_blobs

from lnml.core.points import Embedding
from lnml.kernels.cpu import threads

pytestmark = pytest.mark.usefixtures("device")

CODE = 1e8
COMPONENTS = np.array([[1.0, 0.5, 0.0, 0.2], [0.3, -1.0, 0.4, 0.0], [-0.7, 0.1, 0.2, 0.5]])
SIZES = [[40, 1, 60], [300, 250]]
ROOTS = pytest.mark.one_machine("MMC, which needs sums of roots, is not fitted on a cluster")
PRODUCTS = pytest.mark.one_machine("a cluster takes products for far points: docs/cluster.md")


def far(embedding):
    """The same embedding, its points marked as far."""
    return Embedding(embedding.coordinates, replace(embedding.points, far=True))


def coded(class_sizes, dtype=np.float64, components=COMPONENTS):
    """Rows of which a third have the code in the first column."""
    X, y = sorted_blobs(5, class_sizes, 4)
    X[::3, 0] = CODE
    kernels, embedding = embedded(X, y, dtype)
    return kernels, far(kernels.embed(embedding.points, components)), y


class Dense:
    """Squared distances, log Z and P of the coordinates, and moments of the data."""

    def __init__(self, embedding):
        self.Z = embedding.coordinates.astype(np.longdouble)
        self.X = embedding.points.data.astype(np.longdouble)
        self.D = ((self.Z[:, None] - self.Z) ** 2).sum(axis=2)
        others = self.D + np.where(np.eye(len(self.D)), np.inf, 0.0)
        least = others.min(axis=1)
        weights = np.exp(least[:, None] - others)
        self.log_z = np.log(weights.sum(axis=1)) - least
        self.P = weights / weights.sum(axis=1, keepdims=True)
        self.nearest = others.argmin(axis=1)

    def moment(self, W, full):
        """Sum over pairs of W_ij (v_i - v_j) (x_i - x_j)^T."""
        V = self.X if full else self.Z
        v, x = V[:, None] - V, self.X[:, None] - self.X
        found = [
            [(W * v[..., a] * x[..., b]).sum() for b in range(x.shape[2])]
            for a in range(V.shape[1])
        ]
        return np.array(found).astype(float)


def assert_close(found, expected, rtol):
    """Equal but for a share of the largest entry."""
    expected = np.asarray(expected).astype(float)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def nearest_pairs(dense):
    """Each row with the one nearest to it."""
    P = np.zeros(dense.D.shape)
    P[np.arange(len(P)), dense.nearest] = 1.0
    return neighborhoods(P)


def log_normalizers(kernels, embedding, dense):
    """Log Z_i, from the cost of the nearest row: D_ij + log Z_i."""
    pairs = nearest_pairs(dense)
    return kernels.softmax_costs(embedding, pairs) - kernels.distances(embedding, pairs)


def check_softmax(kernels, embedding, y, rtol):
    """All softmax sums against the dense ones."""
    dense = Dense(embedding)
    assert_close(log_normalizers(kernels, embedding, dense), dense.log_z, rtol)
    same = y[:, None] == y
    some = np.random.default_rng(6).random(y.size) < 0.8
    targets = neighborhoods(some[:, None] * nearest_pairs(dense).to_graph().toarray())
    everybody = same.sum(axis=1) > 1
    for given, counts in ((targets, some), (None, everybody)):
        for full in (False, True, None):
            total, found = kernels.softmax(embedding, given, full=full)
            assert total == pytest.approx(float(dense.log_z[counts].sum()), rel=rtol, abs=rtol)
            if full is not None:
                assert_close(found, dense.moment(counts[:, None] * dense.P, full), rtol)
    share = (dense.P * same).sum(axis=1)
    by_class = dense.P * (same - share[:, None])
    for full in (False, True):
        total, found = kernels.class_softmax(embedding, full=full)
        assert total == pytest.approx(float((1.0 - share).sum()), rel=rtol)
        assert_close(found, dense.moment(by_class, full), rtol)


def check_roots(kernels, embedding, y, rtol):
    """The sum of roots and each entry of its gradient against the dense ones."""
    dense = Dense(embedding)
    roots = np.sqrt(dense.D)
    other = oracles.other_class(y)
    W = np.where(other & (roots > 0), 0.5 / np.where(roots > 0, roots, 1.0), 0.0)
    total, found = kernels.root_sums(embedding)
    expected = dense.moment(W, full=True)
    assert total == pytest.approx(float(roots[other].sum()), rel=rtol)
    np.testing.assert_array_equal(found, found.T)
    # Entries have the sizes of their columns: 1e8 for the one with codes.
    size = np.sqrt(np.diag(expected))
    assert_close(found / size / size[:, None], expected / size / size[:, None], rtol)


@PRODUCTS
@pytest.mark.parametrize("class_sizes", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_softmax_of_rows_with_a_code(class_sizes, dtype):
    kernels, embedding, y = coded(class_sizes, dtype)
    check_softmax(kernels, embedding, y, 1e-6)


@ROOTS
@pytest.mark.parametrize("class_sizes", SIZES)
@pytest.mark.parametrize("components", [COMPONENTS, np.eye(4)], ids=["mixed", "axes"])
def test_roots_of_rows_with_a_code(class_sizes, components):
    kernels, embedding, y = coded(class_sizes, components=components)
    check_roots(kernels, embedding, y, 1e-6)


@PRODUCTS
def test_products_would_lose_them():
    """The reason for all this: without the mark the same sums are wrong."""
    kernels, embedding, _ = coded(SIZES[0])
    near = Embedding(embedding.coordinates, replace(embedding.points, far=False))
    dense = Dense(embedding)
    error = log_normalizers(kernels, near, dense) - dense.log_z.astype(float)
    assert np.abs(error).max() > 0.1


def ordinary(class_sizes, dtype=np.float64):
    """Rows that need not be far."""
    X, y = sorted_blobs(3, class_sizes, 4)
    kernels, embedding = embedded(X, y, dtype)
    return kernels, far(kernels.embed(embedding.points, COMPONENTS)), y


def tied():
    """Duplicates and ties."""
    X, y = lattice(0, 120, 3), np.repeat([0, 1, 2], [50, 60, 10])
    kernels, embedding = embedded(X, y)
    return kernels, far(embedding), y


@pytest.mark.parametrize("class_sizes", SIZES)
def test_softmax_of_ordinary_rows(class_sizes):
    check_softmax(*ordinary(class_sizes), 1e-10)


@PRODUCTS
@pytest.mark.parametrize("class_sizes", SIZES)
def test_softmax_of_ordinary_rows_in_float32(class_sizes):
    check_softmax(*ordinary(class_sizes, np.float32), 1e-10)


@ROOTS
@pytest.mark.parametrize("class_sizes", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_roots_of_ordinary_rows(class_sizes, dtype):
    check_roots(*ordinary(class_sizes, dtype), 1e-10)


def test_softmax_of_duplicates_and_ties():
    check_softmax(*tied(), 1e-10)


@ROOTS
def test_roots_of_duplicates_and_ties():
    check_roots(*tied(), 1e-10)


def test_rows_whose_weights_underflow():
    X, y = sorted_blobs(4, [60, 70], 3)
    X[7] += 40.0
    X[100] -= 60.0
    X[110:112] = [-40.0, 40.0, 0.0]
    X[111, 0] += 0.5
    kernels, embedding = embedded(X, y)
    assert np.exp(-np.sort(Dense(embedding).D[7])[1].astype(float)) == 0.0
    check_softmax(kernels, far(embedding), y, 1e-10)


@ROOTS
def test_identical_rows():
    kernels, embedding = embedded(np.full((6, 2), CODE), np.repeat([0, 1], 3))
    total, found = kernels.root_sums(far(embedding))
    assert total == 0.0
    np.testing.assert_array_equal(found, 0.0)


@ROOTS
def test_bitwise_equal_whatever_the_number_of_threads(monkeypatch):
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        kernels, embedding, _ = coded(SIZES[1])
        with kernels.session():
            loss, moment = kernels.class_softmax(embedding, full=True)
            total, gradient = kernels.root_sums(embedding)
        results.append([loss, moment.tobytes(), total, gradient.tobytes()])
    assert results[0] == results[1]
