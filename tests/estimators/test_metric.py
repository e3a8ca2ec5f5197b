"""The interface every fitted metric has."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from learners import ALL, short_name
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toy_data import small_dataset

from lnml import LMNN, LNML
from lnml.datasets import load_dataset

NAMES = load_dataset("iris").feature_names
X, Y = small_dataset("iris", n_rows=75)


@pytest.fixture(params=ALL, ids=short_name, scope="module")
def fitted(request):
    return clone(request.param).fit(X, Y)


def test_transform_makes_the_distance_euclidean(fitted):
    Z = fitted.transform(X)
    difference = X[3] - X[37]
    expected = difference @ fitted.get_mahalanobis_matrix() @ difference
    assert_allclose(np.sum((Z[3] - Z[37]) ** 2), expected, rtol=1e-9)


def test_pair_distance_score_and_metric_agree(fitted):
    pairs = np.stack([X[:5], X[60:65]], axis=1)
    distances = fitted.pair_distance(pairs)
    metric = fitted.get_metric()
    assert_allclose(distances, [metric(a, b) for a, b in pairs])
    assert_allclose(distances**2, [metric(a, b, squared=True) for a, b in pairs])
    assert_allclose(fitted.pair_score(pairs), -distances)
    with pytest.raises(ValueError, match=r"shape \(m, 2, 4\)"):
        fitted.pair_distance(X)


def test_get_metric_serves_scikit_learn(fitted):
    by_metric = KNeighborsClassifier(3, metric=fitted.get_metric(), algorithm="brute")
    by_transform = KNeighborsClassifier(3, algorithm="brute")
    by_metric.fit(X[::2], Y[::2])
    by_transform.fit(fitted.transform(X[::2]), Y[::2])
    ours = by_metric.predict_proba(X[1::2])
    assert_allclose(ours, by_transform.predict_proba(fitted.transform(X[1::2])))


def test_pickle_and_clone(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.transform(X), fitted.transform(X))
    assert not hasattr(clone(fitted), "components_")


def test_frames_in_and_out(fitted):
    names = list(NAMES)
    frame = pd.DataFrame(X, columns=names)
    model = clone(fitted).set_output(transform="pandas").fit(frame, Y)
    # Sums depend on where in memory the rows are, by rounding that a fit may amplify.
    largest = np.abs(fitted.components_).max()
    assert_allclose(model.components_, fitted.components_, atol=1e-5 * largest)
    assert list(model.feature_names_in_) == names
    out = model.transform(frame)
    prefix = type(fitted).__name__.lower()
    assert list(out.columns) == [f"{prefix}{i}" for i in range(4)]
    assert list(fitted.get_feature_names_out()) == list(out.columns)


def test_polars_frame():
    model = LMNN().fit(pl.DataFrame(X, schema=list(NAMES)), Y)
    assert_allclose(model.components_, LMNN().fit(X, Y).components_)
    assert list(model.feature_names_in_) == list(NAMES)


def test_in_a_pipeline(fitted):
    pipeline = make_pipeline(StandardScaler(), clone(fitted), KNeighborsClassifier(1))
    assert cross_val_score(pipeline, X, Y, cv=2).mean() > 0.85


def test_grid_search_over_a_pipeline():
    pipeline = make_pipeline(LNML(LMNN()), KNeighborsClassifier(1))
    grid = {"lnml__k_min": [1, 3], "lnml__estimator__push_weight": [0.3, 0.5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("estimator", ALL, ids=short_name)
def test_dtype_is_kept(estimator, dtype):
    model = clone(estimator).fit(X.astype(dtype), Y)
    assert model.components_.dtype == dtype
    assert model.transform(X.astype(dtype)).dtype == dtype


def test_float32_finds_the_float64_optimum():
    wine = load_dataset("wine")
    targets = LMNN().fit(wine.data, wine.target).target_neighbors_
    objectives = [
        LMNN().fit(wine.data.astype(dtype), wine.target, target_neighbors=targets).objective_
        for dtype in (np.float32, np.float64)
    ]
    assert_allclose(objectives[0], objectives[1], rtol=2e-3)
