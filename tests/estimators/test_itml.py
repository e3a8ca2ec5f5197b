"""ITML: the protocol, its promises, and what it does for nearest neighbours."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import itml_objective
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from lnml import ITML
from lnml.datasets import load_dataset
from lnml.evaluation import compare


def some_pairs(n_pairs=150, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    X = rng.standard_normal((60, n_features))
    X[:, 0] += y
    first, second = rng.integers(0, 60, (2, n_pairs))
    keep = first != second
    labels = np.where(y[first] == y[second], 1, -1)[keep]
    return np.stack([X[first], X[second]], axis=1)[keep], labels


def test_defaults_follow_the_protocol():
    wine = load_dataset("wine")
    model = ITML(random_state=0).fit(wine.data, wine.target)
    assert model.n_constraints_ == 20 * 3**2
    assert_allclose(model.bounds_, np.percentile(pdist(wine.data) ** 2, [5, 95]), rtol=1e-12)
    assert model.components_.shape == (13, 13)
    assert_array_equal(model.classes_, np.unique(wine.target))


def test_percentiles_of_many_rows_are_estimated():
    balance = load_dataset("balance_scale")
    exact = np.percentile(pdist(balance.data) ** 2, [5, 95])
    model = ITML(random_state=0).fit(balance.data, balance.target)
    assert_allclose(model.bounds_, exact, rtol=0.35)


@pytest.mark.parametrize("name", ["sonar", "ionosphere", "wine", "iris", "balance_scale", "letter"])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
def test_certified_and_positive_definite_on_raw_features(name, gamma):
    data = load_dataset(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".* between identical points")
        model = ITML(gamma=gamma, random_state=0).fit(data.data[:3000], data.target[:3000])
    assert model.converged_ and model.duality_gap_ <= 1e-3
    assert np.linalg.eigvalsh(model.components_)[0] > 0
    assert model.objective_ >= model.history_[-1]["bound"]


@pytest.mark.parametrize("gamma", [0.1, 5.0])
def test_objective_is_what_it_says(gamma):
    pairs, labels = some_pairs()
    model = ITML(gamma=gamma, tol=1e-5).fit_pairs(pairs, labels)
    vectors = pairs[:, 0] - pairs[:, 1]
    bounds = np.where(labels == 1, *model.bounds_)
    M = model.get_mahalanobis_matrix()
    assert_allclose(
        model.objective_, itml_objective(M, vectors, labels == 1, bounds, gamma), rtol=1e-9
    )
    assert_allclose(model.bounds_, np.percentile((vectors**2).sum(axis=1), [5, 95]))


def test_more_weight_keeps_more_constraints():
    pairs, labels = some_pairs(n_pairs=8)
    loose, tight = (ITML(gamma=g).fit_pairs(pairs, labels) for g in (0.01, 1e3))
    upper, lower = tight.bounds_

    def excess(model):
        D = model.pair_distance(pairs) ** 2
        return np.maximum(np.where(labels == 1, D / upper, lower / D), 1.0).max()

    assert excess(tight) < 1.05 < excess(loose)


def test_scale_and_rotation_change_nothing():
    pairs, labels = some_pairs()
    rotation = ortho_group.rvs(5, random_state=0)
    plain = ITML(tol=1e-8).fit_pairs(pairs, labels)
    turned = ITML(tol=1e-8).fit_pairs(1e3 * pairs @ rotation, labels)
    M = plain.get_mahalanobis_matrix()
    assert_allclose(turned.objective_, plain.objective_, rtol=1e-7)
    assert_allclose(turned.get_mahalanobis_matrix(), rotation.T @ M @ rotation, atol=1e-6)


def test_identity_outside_the_span_of_the_pairs():
    pairs, labels = some_pairs(n_pairs=10, n_features=200)
    model = ITML().fit_pairs(pairs, labels)
    vectors = pairs[:, 0] - pairs[:, 1]
    outside = np.random.default_rng(1).standard_normal(200)
    outside -= vectors.T @ np.linalg.lstsq(vectors.T, outside)[0]
    assert_allclose(model.components_ @ outside, outside, atol=1e-10)
    assert model.objective_ > 0


def test_identical_points_of_different_classes_are_left_out_and_counted():
    pairs, labels = some_pairs()
    same = np.repeat(pairs[:3, :1], 2, axis=1)
    more = np.concatenate([pairs, same, same[:2]])
    with pytest.warns(UserWarning, match=rf"3 of {len(more)} constraints"):
        model = ITML().fit_pairs(more, np.concatenate([labels, [-1, -1, -1, 1, 1]]))
    assert model.n_constraints_ == len(pairs)
    assert_allclose(model.components_, ITML().fit_pairs(pairs, labels).components_)


def test_rows_that_agree_in_everything_but_the_class():
    balance = load_dataset("balance_scale")
    X, y = np.vstack([balance.data[::20]] * 3), np.repeat(["a", "b", "c"], 32)
    with pytest.warns(UserWarning, match="between identical points of different classes"):
        model = ITML(random_state=0).fit(X, y)
    assert np.isfinite(model.components_).all()


def test_only_identical_points():
    pairs = np.ones((4, 2, 3))
    with pytest.raises(ValueError, match="identical points"):
        ITML().fit_pairs(pairs, [1, 1, -1, -1])
    with pytest.raises(ValueError, match="identical points"):
        ITML(bounds=(1.0, 2.0)).fit_pairs(pairs, [1, 1, -1, -1])


def test_an_outlier_far_beyond_the_bounds():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.repeat([0, 1], 30)
    X[0, 0] = 1e9
    model = ITML(random_state=0).fit(X, y)
    assert model.converged_ and np.isfinite(model.components_).all()


def test_bounds_may_be_given():
    pairs, labels = some_pairs()
    model = ITML(bounds=(0.5, 20.0)).fit_pairs(pairs, labels)
    assert model.bounds_ == (0.5, 20.0)


def test_seed_chooses_the_pairs():
    iris = load_dataset("iris")
    one, again, other = (
        ITML(random_state=seed).fit(iris.data, iris.target).components_ for seed in (0, 0, 1)
    )
    assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3


def test_unfinished_fit_warns():
    pairs, labels = some_pairs()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 with a relative duality gap"):
        model = ITML(max_iter=1, tol=1e-9).fit_pairs(pairs, labels)
    assert not model.converged_ and model.n_iter_ == 1


@pytest.mark.parametrize(
    ("pairs", "labels", "message"),
    [
        (np.ones((4, 3)), np.ones(4), r"shape \(m, 2, d\)"),
        (np.ones((4, 3, 2)), np.ones(4), r"shape \(m, 2, d\)"),
        (np.full((4, 2, 3), np.nan), np.ones(4), "NaN"),
        (1e200 * some_pairs()[0], some_pairs()[1], "rescale"),
        (some_pairs()[0], some_pairs()[1][:-1], "labels has shape"),
        (some_pairs()[0], some_pairs()[1] > 0, "recode"),
        (some_pairs()[0], np.maximum(some_pairs()[1], 0), "2 \\* labels - 1"),
    ],
)
def test_bad_pairs(pairs, labels, message):
    model = ITML()
    with pytest.raises(ValueError, match=message):
        model.fit_pairs(pairs, labels)
    assert not hasattr(model, "components_")


def test_pairs_after_rows():
    iris = load_dataset("iris")
    pairs, labels = some_pairs(n_features=3)
    model = ITML(random_state=0).fit(iris.data, iris.target).fit_pairs(pairs, labels)
    assert model.n_features_in_ == 3 and not hasattr(model, "classes_")
    assert model.transform(pairs[:, 0]).shape == (len(pairs), 3)
    model.fit(iris.data, iris.target)
    assert model.n_features_in_ == 4


def test_float32_pairs():
    pairs, labels = some_pairs()
    model = ITML().fit_pairs(pairs.astype(np.float32), labels)
    assert model.components_.dtype == np.float32
    assert_allclose(model.components_, ITML().fit_pairs(pairs, labels).components_, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine", "balance_scale"])
def test_beats_euclidean_neighbours(name):
    data = load_dataset(name)
    pipeline = Pipeline([("metric", ITML(random_state=0)), ("nearest", KNeighborsClassifier(1))])
    # The rows of Balance stand in the order of their columns: folds of neighbours say little.
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"metric__gamma": [0.01, 0.1, 1, 10]}, cv=folds)
    search.fit(data.data, data.target)
    gamma = search.best_params_["metric__gamma"]
    methods = {"Euclidean": None, "ITML": ITML(gamma=gamma, random_state=0)}
    found = compare(data.data, data.target, methods)
    assert found.accuracy("ITML") > found.accuracy("Euclidean") + 0.04
