"""MMC as an estimator: rows, pairs, bad input, and inside LNML."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import mmc_ratio, root_sum, same_class, squared_distances
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from toy_data import blobs

from lnml import LMNN, LNML, MMC, estimate_memory
from lnml.datasets import load_dataset

SMALL = ["iris", "wine", "balance_scale", "ionosphere", "sonar"]


def load(name):
    data = load_dataset(name)
    return data.data, data.target


def all_pairs(X, y):
    """Every ordered pair of two rows, and whether it is similar."""
    rows, columns = np.nonzero(~np.eye(len(y), dtype=bool))
    return X[np.c_[rows, columns]], np.where(y[rows] == y[columns], 1, -1)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("diagonal", [False, True])
def test_small_data_are_solved(name, diagonal):
    X, y = load(name)
    varying = X.min(axis=0) < X.max(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MMC(diagonal=diagonal).fit(X, y)
    assert model.converged_ and model.duality_gap_ <= 1e-3
    exact = mmc_ratio(X, y, same_class(y), model.components_)
    assert model.objective_ == pytest.approx(exact, rel=1e-7)
    assert_array_equal(model.components_[:, ~varying], 0.0)
    if diagonal:
        assert_array_equal(model.components_, np.diag(np.diag(model.components_)))


@pytest.mark.parametrize("diagonal", [False, True])
def test_pairs_are_the_same_problem_as_rows(diagonal):
    X, y = blobs(0, [12, 10, 8], 3)
    rows = MMC(diagonal=diagonal, tol=1e-5).fit(X, y)
    pairs = MMC(diagonal=diagonal, tol=1e-5).fit_pairs(*all_pairs(X, y))
    assert_allclose(pairs.objective_, rows.objective_, rtol=1e-5)
    expected, found = rows.get_mahalanobis_matrix(), pairs.get_mahalanobis_matrix()
    assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


def test_attributes_after_rows_and_pairs():
    X, y = blobs(1, [12, 10], 3)
    model = MMC(n_neighbors=2).fit(X, y)
    assert_array_equal(model.n_target_neighbors_, 2)
    assert_array_equal(model.classes_, [0, 1])
    model.set_params(n_neighbors=None).fit(X, y)
    assert not hasattr(model, "target_neighbors_")
    model.fit_pairs(*all_pairs(X, y))
    assert not hasattr(model, "classes_")
    assert model.n_features_in_ == 3
    assert model.transform(X).shape == X.shape
    assert root_sum(squared_distances(X, model.components_), y) == pytest.approx(1.0)


def test_given_targets_are_the_similar_pairs():
    X, y = blobs(2, [12, 10], 3)
    graph = LMNN(n_neighbors=2).fit(X, y).target_neighbors_
    given = MMC().fit(X, y, target_neighbors=graph)
    assert_array_equal(given.components_, MMC(n_neighbors=2).fit(X, y).components_)
    assert given.objective_ == pytest.approx(mmc_ratio(X, y, graph.toarray(), given.components_))


def test_pairs_in_float32():
    X, y = blobs(3, [10, 10], 3)
    pairs, labels = all_pairs(X.astype(np.float32), y)
    assert MMC().fit_pairs(pairs, labels).components_.dtype == np.float32


def test_warm_start_goes_on():
    X, y = load("wine")
    model = MMC(warm_start=True, tol=1e-4).fit(X, y)
    first = model.objective_
    model.fit(X, y)
    assert model.n_iter_ == 1
    assert model.objective_ <= first * (1 + 1e-9)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_squares_of_sums_of_roots_need_not_be_numbers(diagonal, scale):
    """The ratio has no unit: it is the same in any."""
    iris = load_dataset("iris")
    usual, other = (MMC(diagonal=diagonal).fit(iris.data * s, iris.target) for s in (1.0, scale))
    assert other.converged_
    assert other.objective_ == pytest.approx(usual.objective_, rel=1e-3)


def test_running_out_of_iterations_is_told():
    X, y = load("sonar")
    with pytest.warns(ConvergenceWarning, match="max_iter=1 with a relative duality gap"):
        model = MMC(max_iter=1, tol=1e-9).fit(X, y)
    assert not model.converged_
    exact = mmc_ratio(X, y, same_class(y), model.components_)
    assert model.objective_ == pytest.approx(exact, rel=1e-7)


def test_callback_may_stop_a_fit_of_pairs(recwarn):
    X, y = blobs(4, [20, 20], 5)
    states = []
    model = MMC(tol=1e-12, callback=lambda state: states.append(state) or True)
    model.fit_pairs(*all_pairs(X, y))
    assert len(states) == 1
    assert states[0].components.shape == (5, 5)
    assert not model.converged_
    assert not recwarn.list


def awkward_data():
    """Duplicates within and across classes, constant and repeated columns."""
    X, y = blobs(5, [20, 20, 20], 3)
    X = np.c_[X, np.full(60, 7.3), X[:, 0], np.full(60, 1e9 + 0.1)]
    return np.vstack([X, X, X]), np.r_[y, y, (y + 1) % 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [MMC(), MMC(diagonal=True), MMC(n_neighbors=5), LNML(MMC(), k_min=3, k_av=5, k_max=9)],
    ids=repr,
)
def test_awkward_data(model, dtype):
    X, y = awkward_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = clone(model).fit(X.astype(dtype), y)
    assert np.isfinite(fitted.components_).all()
    assert fitted.converged_
    assert fitted.objective_ > 0
    assert_array_equal(fitted.components_[:, [3, 5]], 0.0)


@pytest.mark.parametrize("model", [MMC(), LNML(MMC())], ids=repr)
def test_fewer_rows_than_features(model):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 80)), np.repeat(np.arange(3), 10)
    with pytest.warns(UserWarning, match="sklearn.decomposition.PCA"):
        fitted = clone(model).fit(X, y)
    assert np.isfinite(fitted.transform(X)).all()
    assert fitted.objective_ < 1e-20
    assert fitted.converged_


@pytest.mark.filterwarnings("ignore:similar pairs do not differ")
@pytest.mark.parametrize("name", ["wine", "balance_scale", "iris"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_lnml_never_rises(name, diagonal):
    X, y = load(name)
    model = LNML(MMC(diagonal=diagonal), k_min=5, k_av=10, k_max=15).fit(X, y)
    steps = np.array(
        [r[key] for r in model.history_ for key in ("objective_assigned", "objective")]
    )
    assert (np.diff(steps) <= 1e-9 * steps[:-1]).all()
    assert steps[-1] < 0.9 * steps[0]
    assert model.converged_ and model.duality_gap_ <= 1e-3
    targets = model.target_neighbors_.toarray()
    assert model.objective_ == pytest.approx(mmc_ratio(X, y, targets, model.components_), rel=1e-7)
    assert root_sum(squared_distances(X, model.components_), y) == pytest.approx(1.0, rel=1e-7)
    assert targets.sum() == 10 * len(y)


def test_lnml_may_choose_neighbors_that_agree():
    """Five levels a column: three neighbours that have one column in common can be found."""
    X, y = load("balance_scale")
    with pytest.warns(UserWarning, match="more target neighbours"):
        model = LNML(MMC(), k_min=1, k_av=3, k_max=5).fit(X, y)
    assert model.converged_
    assert model.objective_ < 1e-20
    assert mmc_ratio(X, y, model.target_neighbors_.toarray(), model.components_) < 1e-20


X, Y = blobs(6, [8, 8, 8], 3)
PAIRS, LABELS = all_pairs(X, Y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (MMC(n_neighbors=0), "n_neighbors must be a whole number >= 1"),
        (MMC(diagonal="yes"), "diagonal must be True or False"),
        (MMC(diagonal=True, n_components=2), "n_components=None"),
        (MMC(n_components=4), "exceeds the 3 features"),
        (MMC(tol=0), "tol must be a number above 0"),
        (MMC(max_iter=0), "max_iter must be a whole number >= 1"),
        (MMC(init="best"), "init must be"),
    ],
    ids=repr,
)
def test_bad_parameter(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y)
    if "n_neighbors" not in message:
        with pytest.raises(ValueError, match=message):
            estimator.fit_pairs(PAIRS, LABELS)


@pytest.mark.parametrize(
    ("pairs", "labels", "message"),
    [
        (X, Y, r"shape \(m, 2, d\)"),
        (PAIRS[:, :1], LABELS, r"shape \(m, 2, d\)"),
        (PAIRS, LABELS[:-1], "one label for each pair"),
        (PAIRS, np.maximum(LABELS, 0), r"1 \(similar\) or -1"),
        (PAIRS, np.where(LABELS > 0, "same", "other"), "labels must be 1"),
        (PAIRS, np.ones(len(PAIRS)), "some of both"),
        (PAIRS[:, [0, 0]], LABELS, "identical points"),
        (np.where(PAIRS == PAIRS[0, 0, 0], np.nan, PAIRS), LABELS, "NaN"),
        (1e200 * PAIRS, LABELS, "rescale"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_pairs(pairs, labels, message):
    model = MMC()
    with pytest.raises(ValueError, match=message):
        model.fit_pairs(pairs, labels)
    assert not hasattr(model, "components_")


def test_pairs_with_a_low_rank_start_that_sees_no_dissimilar_pair():
    pairs = np.stack([np.zeros((40, 3)), np.random.default_rng(0).standard_normal((40, 3))], axis=1)
    labels = np.repeat([1, -1], 20)
    pairs[labels < 0, 1, 0] = 0.0
    model = MMC(n_components=1).fit_pairs(pairs, labels)
    lengths = model.pair_distance(pairs)
    assert lengths[labels < 0].sum() == pytest.approx(1.0)
    assert (lengths[labels > 0] ** 2).sum() == pytest.approx(model.objective_)


def test_lda_needs_classes():
    with pytest.raises(ValueError, match="needs classes"):
        MMC(init="lda").fit_pairs(PAIRS, LABELS)


@pytest.mark.parametrize("model", [MMC(), LNML(MMC())], ids=repr)
def test_memory_estimate(model):
    small = estimate_memory(model, 1000, 20)
    assert estimate_memory(model, 2000, 20) > small
    assert estimate_memory(model, 1000, 40) > small
    assert estimate_memory(model, 1000, 20, np.float32) < small
