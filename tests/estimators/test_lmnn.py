"""LMNN on real data, judged by code that shares nothing with the library."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from lnml import LMNN, Neighborhoods
from lnml.datasets import load_dataset


def lmnn_objective(components, X, y, targets, push_weight):
    """The objective in float64, row by row from differences: also for 4,000 rows."""
    total = 0.0
    Z = X @ components.T
    for i in range(len(y)):
        D = ((Z[i] - Z) ** 2).sum(axis=1)
        own = D[targets[[i]].nonzero()[1]]
        hinge = np.maximum(0.0, 1.0 + own[:, None] - D[y != y[i]])
        total += (1.0 - push_weight) * own.sum() + push_weight * hinge.sum()
    return total


def rows_of(name):
    data = load_dataset(name)
    return data.data[:4000], data.target[:4000]


@pytest.mark.parametrize("name", ["sonar", "ionosphere", "wine", "iris", "balance_scale", "letter"])
def test_certified_on_raw_features(name):
    X, y = rows_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LMNN().fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-3
    targets = model.target_neighbors_
    exact = lmnn_objective(model.components_, X, y, targets, push_weight=0.5)
    assert_allclose(model.objective_, exact, rtol=1e-6)


def test_target_neighbors_are_nearest_with_ties_by_index():
    balance = load_dataset("balance_scale")
    X, y = balance.data, balance.target
    found = LMNN(max_iter=1, tol=0.5).fit(X, y).target_neighbors_.toarray()
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    distances[y[:, None] != y] = np.inf
    np.fill_diagonal(distances, np.inf)
    expected = np.zeros_like(distances)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :3]
    np.put_along_axis(expected, nearest, 1, axis=1)
    assert_allclose(found, expected)


def test_given_target_neighbors_are_used():
    X, y = rows_of("iris")
    graph = LMNN(n_neighbors=5).fit(X, y).target_neighbors_
    for given in (graph, graph.toarray(), Neighborhoods.from_graph(graph)):
        model = LMNN().fit(X, y, target_neighbors=given)
        assert (model.target_neighbors_ != graph).nnz == 0
        assert (model.n_target_neighbors_ == 5).all()


def test_history_explains_the_fit():
    X, y = rows_of("wine")
    model = LMNN().fit(X, y)
    assert len(model.history_) == model.n_iter_
    last = model.history_[-1]
    assert last["objective"] == pytest.approx(model.objective_, rel=1e-9)
    assert last["gap"] == pytest.approx(model.duality_gap_, abs=1e-7)
    assert last["bound"] <= last["objective"]
    seconds = [record["seconds"] for record in model.history_]
    assert seconds == sorted(seconds)
    assert last["n_active"] > 0


@pytest.mark.parametrize("init", ["identity", "pca", "lda", "random"])
def test_every_start_leads_to_the_optimum(init):
    X, y = rows_of("wine")
    reference = LMNN(tol=1e-4).fit(X, y)
    model = LMNN(init=init, random_state=0).fit(X, y)
    assert model.converged_
    assert model.objective_ * (1 - 1e-3) <= reference.objective_ <= model.objective_ * (1 + 1e-4)


@pytest.mark.parametrize("init", ["identity", "pca", "lda", "random"])
def test_low_rank(init):
    X, y = rows_of("wine")
    full = LMNN().fit(X, y)
    model = LMNN(n_components=2, init=init, random_state=0).fit(X, y)
    assert model.components_.shape == (2, 13)
    assert model.transform(X).shape == (178, 2)
    assert model.objective_ >= full.objective_ * (1 - 1e-3)
    assert model.converged_


def test_running_out_of_iterations_is_told():
    X, y = rows_of("sonar")
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 with a relative duality gap"):
        model = LMNN(max_iter=1).fit(X, y)
    assert not model.converged_
    assert model.duality_gap_ > 1e-3
