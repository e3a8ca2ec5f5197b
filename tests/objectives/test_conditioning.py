"""Conditioned coordinates: the same distances, a pull scatter of one."""

import numpy as np
import pytest
from devices import host
from oracles import nearest_targets, pull_scatter, same_class, squared_distances
from toy_data import device_targets, sorted_blobs, training_set

from lnml.core.pairs import Edge
from lnml.objectives.conditioning import class_pull, scale_pull, whiten_pull

pytestmark = pytest.mark.usefixtures("device")

SCALES = np.array([1e-8, 1e-3, 1.0, 1e8])
SIZES = [14, 1, 12]


def constant(X):
    X[:, 2] = 1e6
    return X


def repeated(X):
    X[:, 2] = 5.0 * X[:, 0]
    return X


def fewer_rows_than_columns(X):
    return np.hstack([X, np.random.default_rng(0).standard_normal((X.shape[0], 30))])


DATA = {
    "plain": lambda X: X,
    "scales": lambda X: X * SCALES,
    "offset": lambda X: X + 1e6,
    "constant": constant,
    "repeated": repeated,
    "wide": fewer_rows_than_columns,
}


def conditioned(X, y, P=None, **weights):
    """Coordinates that whiten the pull of target pairs, or of classes."""
    training = training_set(X, y)
    pull = class_pull(training.points) if P is None else Edge(device_targets(P), **weights)
    return whiten_pull(training.kernels, training.points, pull)


def toy(name, k=2):
    X, y = sorted_blobs(0, SIZES, 4)
    X = DATA[name](X)
    return X, y, nearest_targets(squared_distances(X / X.std(axis=0).clip(1e-300)), y, k)


def random_components(X, n_rows):
    """A random metric that sees every column, whatever its scale."""
    spread = X.std(axis=0)
    spread = np.where(spread > 1e-9 * np.abs(X).max(axis=0), spread, 1.0)
    return np.random.default_rng(1).standard_normal((n_rows, X.shape[1])) / spread


@pytest.mark.parametrize("name", DATA)
def test_pull_scatter_is_one_where_there_is_any(name):
    X, y, P = toy(name)
    found = conditioned(X, y, P)
    scatter = pull_scatter(found.points.data, P)
    assert found.pull.min() >= 0.0
    np.testing.assert_allclose(scatter, np.diag(found.pull), atol=1e-6)
    assert (found.pull > 1.0 - 1e-12).sum() == np.linalg.matrix_rank(scatter, tol=1e-4)


@pytest.mark.parametrize("name", DATA)
def test_no_direction_of_the_data_is_lost(name):
    X, y, P = toy(name)
    centred = (X - X.mean(axis=0)) / X.std(axis=0).clip(1e-300)
    found = conditioned(X, y, P)
    assert found.points.data.shape[1] == np.linalg.matrix_rank(centred, tol=1e-8)
    np.testing.assert_array_equal(found.points.class_start, [0, 14, 15, 27])


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n_rows", [1, 4])
def test_distances_are_the_same_both_ways(name, n_rows):
    X, y, P = toy(name)
    components = random_components(X, n_rows)
    found = conditioned(X, y, P)
    inside = found.to_conditioned(components)
    assert inside.shape[0] <= min(n_rows, inside.shape[1])
    D = squared_distances(X, components)
    close = {"rtol": 1e-6, "atol": 1e-9 * D.max()}
    np.testing.assert_allclose(squared_distances(host(found.points.data), inside), D, **close)
    outside = found.to_original(inside, n_rows)
    assert outside.shape == components.shape
    np.testing.assert_allclose(squared_distances(X, outside), D, **close)


def test_more_components_than_directions_of_the_data():
    X, y, P = toy("wide")
    components = random_components(X, 34)
    found = conditioned(X, y, P)
    inside = found.to_conditioned(components)
    assert inside.shape == (26, 26)
    outside = found.to_original(inside, 34)
    assert not outside[26:].any()
    D = squared_distances(X, components)
    np.testing.assert_allclose(squared_distances(X, outside), D, rtol=1e-6)


def test_nearly_dependent_columns_are_whitened_too():
    X, y, P = toy("plain")
    X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    found = conditioned(X, y, P)
    np.testing.assert_allclose(found.pull, 1.0)
    np.testing.assert_allclose(pull_scatter(found.points.data, P), np.eye(4), atol=1e-6)


@pytest.mark.parametrize("name", DATA)
def test_pairs_that_share_the_weight_of_their_row(name):
    X, y, P = toy(name, k=5)
    P[np.random.default_rng(2).random(P.shape) < 0.4] = 0.0
    sizes = P.sum(axis=1, keepdims=True)
    assert np.unique(sizes).size > 3
    found = conditioned(X, y, P, factor=0.7, shared=True)
    scatter = pull_scatter(found.points.data, 0.7 * P / np.maximum(sizes, 1.0))
    np.testing.assert_allclose(scatter, np.diag(found.pull), atol=1e-6)


@pytest.mark.parametrize("name", ["plain", "offset", "repeated"])
def test_a_ridge_counts_like_a_pull_in_the_columns_as_given(name):
    X, y, P = toy(name)
    training, ridge = training_set(X, y), 0.3
    found = whiten_pull(training.kernels, training.points, Edge(device_targets(P)), ridge)
    together = pull_scatter(X, P) + ridge * np.eye(4)
    np.testing.assert_allclose(found.matrix.T @ together @ found.matrix, np.eye(4), atol=1e-6)
    np.testing.assert_array_equal(found.pull, 1.0)
    np.testing.assert_allclose(found.matrix @ found.inverse, np.eye(4), atol=1e-9)


def test_classes_as_targets_without_a_graph():
    """All pairs of one class, each row's weights adding up to one."""
    X, y, _ = toy("scales")
    P = same_class(y) * 1.0
    found = conditioned(X, y)
    W = P / np.maximum(P.sum(axis=1), 1.0)[:, None]
    np.testing.assert_allclose(pull_scatter(found.points.data, W), np.eye(4), atol=1e-9)


def test_identical_targets_have_no_pull():
    X = np.repeat(np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]]), 2, axis=0)
    y = np.array([0, 0, 1, 1, 1, 1])
    P = nearest_targets(squared_distances(X), y, 1)
    found = conditioned(X, y, P)
    np.testing.assert_array_equal(found.pull, [0.0, 0.0])
    inside = found.to_conditioned(np.eye(2))
    D = squared_distances(X)
    np.testing.assert_allclose(squared_distances(host(found.points.data), inside), D, atol=1e-12)


def test_float32_stays_float32():
    X, y, P = toy("plain")
    found = conditioned(X.astype(np.float32), y, P)
    assert found.points.dtype == np.float32
    scatter = pull_scatter(host(found.points.data).astype(float), P)
    np.testing.assert_allclose(scatter, np.eye(4), atol=1e-5)


@pytest.mark.parametrize("name", ["plain", "scales", "offset", "constant", "repeated"])
@pytest.mark.parametrize("classes", [False, True])
def test_scaling_gives_every_column_a_pull_of_one(name, classes):
    X, y, P = toy(name)
    training = training_set(X, y)
    P = 1.0 * same_class(y) if classes else P
    pull = np.ones(len(SIZES)) if classes else Edge(device_targets(P))
    found = scale_pull(training.kernels, training.points, pull)
    varying = np.ptp(X, axis=0) > 0
    scatter = found.matrix.T @ pull_scatter(X, P) @ found.matrix
    np.testing.assert_allclose(np.diag(scatter), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(found.pull, 1.0)
    np.testing.assert_allclose(found.matrix @ found.inverse, np.diag(1.0 * varying), atol=1e-12)
    distances = squared_distances(found.points.data)
    expected = squared_distances(X[:, varying], np.diag(found.matrix.sum(axis=1)[varying]))
    np.testing.assert_allclose(distances, expected, rtol=1e-6, atol=1e-9 * expected.max())
