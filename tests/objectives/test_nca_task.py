"""NCA's value and gradient against scikit-learn and dense NumPy."""

import numpy as np
import oracles
import pytest
from scipy.optimize import check_grad
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from toy_data import sorted_blobs, training_set

from lnml import NCA
from lnml.datasets import load_dataset
from lnml.objectives.conditioning import Conditioning
from lnml.objectives.nca import NCATask

pytestmark = pytest.mark.usefixtures("device")


def task_of(X, y):
    """NCA in the coordinates of the data."""
    training = training_set(X, np.unique(y, return_inverse=True)[1])
    d = X.shape[1]
    plain = Conditioning(
        points=training.points, pull=np.ones(d), matrix=np.eye(d), inverse=np.eye(d)
    )
    return NCATask(training.kernels, plain)


def scikit_learn_value(X, y, L):
    model = NeighborhoodComponentsAnalysis()
    model.n_iter_ = 0
    mask = y[:, None] == y
    loss, gradient = model._loss_grad_lbfgs(L.ravel(), X, mask, -1.0)
    return -float(loss), -gradient.reshape(L.shape)


@pytest.mark.parametrize("name", ["wine", "iris", "balance_scale", "sonar", "ionosphere"])
@pytest.mark.parametrize("rank", [2, None])
def test_value_and_gradient_of_scikit_learn(name, rank):
    data = load_dataset(name)
    X, y = data.data.astype(float), data.target
    X = X / (X.std(axis=0) + (X.std(axis=0) == 0))
    rng = np.random.default_rng(0)
    L = 0.5 * rng.standard_normal((rank or X.shape[1], X.shape[1]))
    expected, expected_gradient = scikit_learn_value(X, y, L)
    value, gradient = task_of(X, y).value_and_gradient(L)
    np.testing.assert_allclose(len(y) - value, expected, rtol=1e-8)
    largest = np.abs(expected_gradient).max()
    np.testing.assert_allclose(-gradient, expected_gradient, atol=1e-7 * largest)


def test_value_by_dense_numpy_with_a_class_of_one_row():
    X, y = sorted_blobs(0, [30, 1, 45], 3)
    L = np.random.default_rng(1).standard_normal((3, 3))
    P = oracles.neighbor_probabilities(oracles.squared_distances(X @ L.T))
    shares = (P * (y[:, None] == y)).sum(axis=1)
    value, _ = task_of(X, y).value_and_gradient(L)
    np.testing.assert_allclose(value, (1.0 - shares).sum(), rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_gradient(rank):
    X, y = sorted_blobs(2, [12, 9, 14], 4)
    task = task_of(X, y)
    L = np.random.default_rng(3).standard_normal((rank, 4))
    error = check_grad(
        lambda x: task.value_and_gradient(x.reshape(L.shape))[0],
        lambda x: task.value_and_gradient(x.reshape(L.shape))[1].ravel(),
        L.ravel(),
    )
    assert error <= 1e-5 * np.linalg.norm(task.value_and_gradient(L)[1])


def test_scale_of_a_start_that_is_out_of_range():
    X, y = sorted_blobs(2, [12, 9, 14], 4)
    task = task_of(X, y)
    within = np.vdot(np.eye(4), np.eye(4)) / len(y)
    assert task.best_scale(np.eye(4)) == 1.0
    for factor in (1e-4, 1e4):
        start = factor * np.eye(4)
        scale = task.best_scale(start)
        np.testing.assert_allclose(scale * factor**2 * within, 10.0)


@pytest.mark.parametrize("size", [1e-4, 1e3, 1e8])
def test_classes_that_are_apart_from_the_start(size):
    """The value is zero, and its gradient is next to nothing: no step may follow it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 10)
    X = size * (100.0 * y[:, None] + rng.standard_normal((20, 2)))
    model = NCA().fit(X, y)
    assert model.converged_
    assert 0.0 <= model.objective_ < 1e-12
    assert np.isfinite(model.components_).all()
