"""Costs of target pairs against dense formulas, and the ranking made of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

import lnml
from lnml import LMNN, LNML, LNMLCV, MCML, AveragedMetric, least_trusted
from lnml.datasets import load_dataset


def shuffled(name):
    """Rows in random order: the library sorts them by class inside."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.data))
    return data.data[order], data.target[order]


def squared_distances(model, X):
    Z = X @ model.components_.T
    return ((Z[:, None] - Z) ** 2).sum(axis=2)


def lmnn_cost(D, y, i, j, mu):
    return (1 - mu) * D[i, j] + mu * np.maximum(0, 1 + D[i, j] - D[i, y != y[i]]).sum()


def mcml_cost(D, i, j, k):
    return (D[i, j] + logsumexp(-np.delete(D[i], i)) - np.log(k)) / k


@pytest.mark.parametrize("name", ["wine", "balance_scale"])
def test_costs_of_lmnn(name):
    X, y = shuffled(name)
    model = LNML(LMNN(push_weight=0.3), k_min=1, k_av=3, k_max=5).fit(X, y)
    D = squared_distances(model, X)
    rows, columns = model.target_neighbors_.nonzero()
    expected = [lmnn_cost(D, y, i, j, 0.3) for i, j in zip(rows, columns, strict=True)]
    assert_array_equal(model.target_costs_.indptr, model.target_neighbors_.indptr)
    assert_array_equal(model.target_costs_.indices, model.target_neighbors_.indices)
    assert_allclose(model.target_costs_.data, expected, rtol=1e-6, atol=1e-9)
    assert_allclose(model.target_costs_.sum(), model.objective_, rtol=1e-6)


def test_costs_of_mcml():
    X, y = shuffled("iris")
    X = X[:, :2]
    model = LNML(MCML(), k_min=4, k_av=4, k_max=4, tol=1e-2).fit(X, y)
    D = squared_distances(model, X)
    rows, columns = model.target_neighbors_.nonzero()
    expected = [mcml_cost(D, i, j, 4) for i, j in zip(rows, columns, strict=True)]
    assert_allclose(model.target_costs_.data, expected, rtol=1e-5, atol=1e-8)
    assert_allclose(model.target_costs_.sum(), model.objective_, rtol=1e-5)


def test_costs_after_a_fit_that_ended_early():
    X, y = shuffled("wine")
    model = LNML(k_min=1, k_av=3, k_max=5, callback=lambda state: True).fit(X, y)
    assert_allclose(model.target_costs_.sum(), model.objective_, rtol=1e-6)


def model_with(costs):
    """Return a model of which only the costs are known."""
    model = LNML()
    model.target_costs_, model.n_target_neighbors_ = costs, np.diff(costs.indptr)
    return model


def test_few_neighbors_first_then_costly_ones():
    costs = sparse.csr_array(
        np.array([[0, 1, 5, 0], [2, 0, 0, 0], [7, 0, 0, 0], [1, 1, 2, 0]], dtype=float)
    )
    model = model_with(costs)
    assert_array_equal(least_trusted(model, None), [2, 1, 0, 3])
    assert_array_equal(least_trusted(model, 2), [2, 1])
    assert_array_equal(least_trusted(model, 99), [2, 1, 0, 3])


def test_stored_zeros_count_as_neighbors():
    zeros = sparse.csr_array((np.zeros(3), ([0, 0, 1], [1, 2, 0])), shape=(3, 3))
    assert_array_equal(least_trusted(model_with(zeros), None), [2, 1, 0])


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_one_wrong_label_is_found(name):
    X, y = shuffled(name)
    row = int(np.flatnonzero(y == np.unique(y)[0])[0])
    y[row] = np.unique(y)[-1]
    model = LNML(k_min=1, k_av=3, k_max=5).fit(X, y)
    assert row in least_trusted(model, n=len(y) // 20)


def test_through_lnml_cv():
    X, y = shuffled("iris")
    model = LNMLCV(grid=[(1, 3, 5)]).fit(X, y)
    assert_array_equal(least_trusted(model), least_trusted(model.best_estimator_))


def test_bad_input():
    X, y = shuffled("iris")
    with pytest.raises(NotFittedError):
        least_trusted(LNML())
    with pytest.raises(TypeError, match=r"LNML\(LMNN\(\)\)"):
        least_trusted(LMNN().fit(X, y))
    for source, got in ((np.eye(3), "ndarray"), (LNML, r"the class LNML \(write LNML\(\)")):
        with pytest.raises(TypeError, match=f"a fitted LNML.*, got {got}"):
            least_trusted(source)
    for n in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="n must be a whole number"):
            least_trusted(LNML().fit(X[:, :2], y), n)


@pytest.mark.parametrize(("name", "other"), [("NCA", "LMNN"), ("ITML", "LMNN"), ("MCML", "MCML")])
def test_advice_for_a_model_without_neighbourhoods_works(name, other):
    """The same before a fit, which would not help, and after it."""
    X, y = shuffled("iris")
    for model in (getattr(lnml, name)(), getattr(lnml, name)(tol=0.1).fit(X, y)):
        with pytest.raises(TypeError, match=rf"{name} learns no .*: fit LNML\({other}\(\)\)"):
            least_trusted(model)
    least_trusted(LNML(getattr(lnml, other)(tol=0.1)).fit(X, y))


def test_ten_rows_by_default():
    costs = sparse.csr_array(np.diag(np.arange(12.0, 0.0, -1.0), k=1))
    assert_array_equal(least_trusted(model_with(costs)), [12, *range(9)])


def test_an_average_ranks_by_means_over_the_fits_that_saw_a_row():
    X, y = shuffled("iris")
    fits = LNML(k_min=1, k_av=3, k_max=5, max_rounds=2, tol=1e-2)
    model = AveragedMetric(fits, n_subsamples=3, subsample=0.5).fit(X, y)
    sizes, costs, seen = np.zeros(150), np.zeros(150), np.zeros(150)
    for fit, rows in zip(model.estimators_, model.subsamples_, strict=True):
        for place, row in enumerate(rows):
            seen[row] += 1
            sizes[row] += fit.n_target_neighbors_[place]
            costs[row] += fit.target_costs_[[place]].sum() / fit.n_target_neighbors_[place]
    order = least_trusted(model, None)
    assert sorted(order) == list(range(150))
    known = order[: int((seen > 0).sum())]
    assert (seen[known] > 0).all(), "rows that no fit saw come last"
    means = np.round(sizes[known] / seen[known], 9)
    assert (np.diff(means) >= 0).all()
    same = np.diff(means) == 0
    assert (np.diff(costs[known] / seen[known])[same] <= 1e-9).all()


def test_an_average_without_learned_neighbourhoods_trusts_all_rows_alike():
    X, y = shuffled("iris")
    model = AveragedMetric(LMNN(tol=0.1), n_subsamples=2).fit(X, y)
    with pytest.raises(TypeError, match="LMNN learns no neighbourhoods"):
        least_trusted(model)
