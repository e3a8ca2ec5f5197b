"""SupportVectorMetric and RelativeComparisons on real data, and inside LNML."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lnml import LNML, RelativeComparisons, SupportVectorMetric, estimate_memory
from lnml.certificates import verify
from lnml.datasets import load_dataset

SMALL = ["sonar", "ionosphere", "wine", "iris", "balance_scale"]
LEARNERS = [SupportVectorMetric(), RelativeComparisons()]


@pytest.fixture(params=LEARNERS, ids=repr)
def learner(request):
    return clone(request.param)


@pytest.fixture
def wine():
    data = load_dataset("wine")
    return data.data, data.target


def objective(components, X, y, targets, C):
    """The objective in float64, row by row from differences."""
    M = components.T @ components
    total = 0.5 * (M**2).sum()
    Z = X @ components.T
    for i in range(len(y)):
        D = ((Z[i] - Z) ** 2).sum(axis=1)
        own = D[targets[[i]].nonzero()[1]]
        total += C * np.maximum(0.0, 1.0 + own[:, None] - D[y != y[i]]).sum()
    return total


@pytest.mark.parametrize("name", SMALL)
def test_certified_on_raw_features(learner, name):
    data = load_dataset(name)
    X, y = data.data, data.target
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = learner.fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-3
    exact = objective(model.components_, X, y, model.target_neighbors_, C=1.0)
    assert_allclose(model.objective_, exact, rtol=1e-6)
    bounds = [record["bound"] for record in model.history_]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("C", [1e-3, 100.0])
def test_standardised_features(learner, wine, C):
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = learner.set_params(C=C).fit(X, y)
    assert model.converged_
    exact = objective(model.components_, X, y, model.target_neighbors_, C)
    assert_allclose(model.objective_, exact, rtol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_more_features_than_rows(learner, C):
    sonar = load_dataset("sonar")
    assert learner.set_params(C=C).fit(sonar.data[::5], sonar.target[::5]).converged_


@pytest.mark.parametrize("name", ["wine", "balance_scale"])
@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 3, 5)])
def test_lnml_never_rises(learner, name, sizes):
    data = load_dataset(name)
    rows = np.random.default_rng(0).permutation(len(data.target))[:150]
    X, y = data.data[rows], data.target[rows]
    model = LNML(learner, k_min=sizes[0], k_av=sizes[1], k_max=sizes[2]).fit(X, y)
    steps = np.array(
        [r[key] for r in model.history_ for key in ("objective_assigned", "objective")]
    )
    assert (np.diff(steps) <= 1e-9 * np.abs(steps[:-1])).all()
    assert model.converged_
    exact = objective(model.components_, X, y, model.target_neighbors_, C=1.0)
    assert_allclose(model.objective_, exact, rtol=1e-6)
    assert model.n_target_neighbors_.sum() == 3 * len(y)


def test_weights_of_features(wine):
    X, y = wine
    model = RelativeComparisons().fit(X, y)
    assert model.weights_.shape == (13,)
    assert (model.weights_ >= 0).all() and model.weights_.any()
    assert_allclose(model.get_mahalanobis_matrix(), np.diag(model.weights_), atol=1e-15)


def test_weights_of_a_basis(wine):
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    basis = np.random.default_rng(0).standard_normal((13, 20))
    model = RelativeComparisons(basis=basis).fit(X, y)
    assert model.components_.shape == (20, 13)
    assert model.transform(X).shape == (178, 20)
    assert_allclose(model.get_mahalanobis_matrix(), (basis * model.weights_) @ basis.T, atol=1e-12)


def test_a_diagonal_metric_is_no_better_than_a_full_one(wine):
    X, y = wine
    full = SupportVectorMetric(C=0.1).fit(X, y)
    diagonal = RelativeComparisons(C=0.1).fit(X, y)
    assert full.history_[-1]["bound"] <= diagonal.objective_


@pytest.mark.parametrize("seed", range(4))
def test_pairs_that_do_not_differ_along_a_column_leave_a_check_some_slack(seed):
    """On a grid the slopes can ask for nothing at all, and for nothing less."""
    rng = np.random.default_rng(seed)
    for width in (1, 2):
        X, y = rng.integers(0, 4, (60, width)).astype(float), rng.integers(0, 2, 60)
        model = RelativeComparisons().fit(X, y)
        checked = verify(model.certificate(X, y), X, y)
        assert checked.holds, checked.reason
        assert checked.gap <= model.duality_gap_ * (1.0 + 1e-6) + 1e-12


def test_given_targets_as_triplets(learner):
    """Target neighbours and impostors written out as triplets are the same problem."""
    iris = load_dataset("iris")
    X, y = iris.data[::4], iris.target[::4]
    model = learner.set_params(n_neighbors=2).fit(X, y)
    i, j = model.target_neighbors_.nonzero()
    triplets = [
        (X[a], X[b], X[l]) for a, b in zip(i, j, strict=True) for l in np.flatnonzero(y != y[a])
    ]
    same = clone(learner).fit_triplets(triplets)
    assert_allclose(same.objective_, model.objective_, rtol=2e-3)
    again = clone(learner).fit(X, y, target_neighbors=model.target_neighbors_)
    assert again.objective_ == model.objective_


def test_float32(learner, wine):
    X, y = wine[0].astype(np.float32), wine[1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = learner.fit(X, y)
    assert model.converged_
    assert model.components_.dtype == model.transform(X).dtype == np.float32
    exact = objective(
        model.components_.astype(float), X.astype(float), y, model.target_neighbors_, 1.0
    )
    assert_allclose(model.objective_, exact, rtol=1e-3)


def test_triplets_have_no_feature_names(learner, wine):
    frame = pd.DataFrame(wine[0], columns=[f"f{k}" for k in range(13)])
    model = learner.fit(frame, wine[1]).fit_triplets(wine[0][:6].reshape(2, 3, 13))
    assert not hasattr(model, "feature_names_in_")


def test_estimated_memory_grows(learner):
    for estimator in (learner, LNML(learner)):
        assert estimate_memory(estimator, 2000, 20) > estimate_memory(estimator, 1000, 20) > 0


def test_running_out_of_iterations_is_told(learner, wine):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 with a relative duality gap"):
        learner.set_params(max_iter=1, tol=1e-9).fit(*wine)
    triplets = np.random.default_rng(0).standard_normal((50, 3, 4))
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        learner.fit_triplets(triplets)


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_bad_weight(learner, wine, C):
    with pytest.raises(ValueError, match="C must be a number above 0"):
        learner.set_params(C=C).fit(*wine)
    assert not hasattr(learner, "components_")


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        (np.zeros((5, 2, 3)), r"shape \(m, 3, d\).*got \(5, 2, 3\)"),
        (np.zeros((5, 3)), r"shape \(m, 3, d\)"),
        (np.zeros((5, 3, 0)), r"shape \(m, 3, d\)"),
        (np.zeros((0, 3, 2)), "0 sample"),
        (np.full((5, 3, 2), np.nan), "contains NaN"),
        (np.full((5, 3, 2), 1e200), "rescale"),
        (np.ones((5, 3, 2)), "no distance to learn"),
        ([[["a", "b"]] * 3], "could not convert|numeric"),
    ],
)
def test_bad_triplets(learner, triplets, message):
    with pytest.raises(ValueError, match=message):
        learner.fit_triplets(triplets)
    assert not hasattr(learner, "components_") and not hasattr(learner, "n_features_in_")


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (np.eye(12), r"pass an array of shape \(13, m\)"),
        (np.ones(13), r"shape \(13,\)"),
        (np.zeros((13, 0)), r"shape \(13, 0\)"),
        (np.full((13, 2), np.nan), "NaN"),
        (np.eye(13) * (np.arange(13) != 4), "column 4 of basis is all zero"),
    ],
)
def test_bad_basis(wine, basis, message):
    with pytest.raises(ValueError, match=message):
        RelativeComparisons(basis=basis).fit(*wine)


def test_lda_needs_classes():
    triplets = np.random.default_rng(0).standard_normal((5, 3, 4))
    with pytest.raises(ValueError, match="needs classes"):
        SupportVectorMetric(init="lda").fit_triplets(triplets)
    assert SupportVectorMetric(init="pca").fit_triplets(triplets).converged_
