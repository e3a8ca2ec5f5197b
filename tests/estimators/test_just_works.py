"""Awkward data that must simply work, certified and without NaN."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from lnml import ITML, LMNN, LNML, MCML


def blobs(n_features=4):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    X = rng.standard_normal((60, n_features))
    X[:, 0] += 1.5 * y
    return X, y


def duplicates_of_equal_label():
    X, y = blobs()
    return np.vstack([X, X]), np.r_[y, y]


def duplicates_of_different_label():
    X, y = blobs()
    return np.vstack([X, X]), np.r_[y, (y + 1) % 3]


def constant_columns():
    X, y = blobs()
    return np.c_[X, np.full(60, 7.3), np.full(60, 1e9 + 0.1), np.zeros(60)], y


def collinear_columns():
    X, y = blobs()
    return np.c_[X, 2 * X[:, 0] - X[:, 1], X[:, 0]], y


def fewer_rows_than_features():
    rng = np.random.default_rng(1)
    return rng.standard_normal((30, 80)), np.repeat(np.arange(3), 10)


def singleton_class():
    X, y = blobs()
    return np.vstack([X, X[0] + 0.1]), np.r_[y, 9]


def no_impostor():
    X, y = blobs()
    X[:, 0] = 1e6 * y
    return X, y


def extreme_scales():
    X, y = blobs()
    return X * [1e-8, 1e8, 1.0, 1e4], y


def tiny_values():
    X, y = blobs()
    return 1e-8 * X, y


def huge_offset():
    X, y = blobs()
    return X + 1e6, y


def one_feature():
    X, y = blobs()
    return X[:, :1], y


def string_classes():
    X, y = blobs()
    return X, np.array(["no", "yes", "perhaps"])[y]


def only_duplicates():
    return np.repeat(np.eye(3), 4, axis=0), np.repeat(np.arange(3), 4)


CASES = [
    duplicates_of_equal_label,
    duplicates_of_different_label,
    constant_columns,
    collinear_columns,
    fewer_rows_than_features,
    singleton_class,
    no_impostor,
    extreme_scales,
    tiny_values,
    huge_offset,
    one_feature,
    string_classes,
    only_duplicates,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lmnn_certifies(case, dtype):
    X, y = case()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="classes too small")
        model = LMNN().fit(X.astype(dtype), y)
    assert np.isfinite(model.components_).all()
    assert model.converged_
    assert model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize(
    "estimator",
    [
        MCML(),
        LNML(LMNN(), k_min=1, k_av=3, k_max=5),
        LNML(MCML()),
        LMNN(n_components=1),
        ITML(random_state=0),
    ],
    ids=repr,
)
def test_others_converge(case, estimator):
    X, y = case()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="classes too small")
        warnings.filterwarnings("ignore", message=".* between identical points")
        model = clone(estimator).fit(X, y)
    assert np.isfinite(model.components_).all()
    assert model.converged_
    assert model.objective_ >= 0
    assert np.isfinite(model.transform(X)).all()


def test_fewer_rows_than_features_separate_for_free():
    X, y = fewer_rows_than_features()
    assert LMNN().fit(X, y).objective_ < 1e-6


def test_small_class_is_named():
    X, y = singleton_class()
    with pytest.warns(UserWarning, match=r"9 \(1 rows\)"):
        model = LMNN().fit(X, y)
    assert model.n_target_neighbors_[-1] == 0
    assert (model.n_target_neighbors_[:-1] == 3).all()


def test_useless_columns_change_nothing():
    X, y = blobs()
    padded, _ = constant_columns()
    plain, more = LMNN(tol=1e-4).fit(X, y), LMNN(tol=1e-4).fit(padded, y)
    assert_allclose(more.objective_, plain.objective_, rtol=2e-4)
    assert_allclose(more.components_[:, 4:], 0.0)
