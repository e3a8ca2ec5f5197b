"""Awkward data that must simply work, certified and without NaN."""

import warnings

import numpy as np
import pytest
from learners import MEANS, METHODS, WITH_OBJECTIVE, short_name
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from lnml import LMNN, MMC, RelativeComparisons, SupportVectorMetric, registry

pytestmark = pytest.mark.sampled(4)


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


LEARNERS = [
    *(
        (learner, np.float64)
        for learner in [*WITH_OBJECTIVE, LMNN(n_components=1), MMC(n_components=1)]
    ),
    *((learner, np.float32) for learner in METHODS),
]
# Their norm is that of the features as given; features of 1e8 beside 1e-8 may be too much.
BOUND_TO_UNITS = (RelativeComparisons, SupportVectorMetric)
# Methods that could make use of the rounding of float32 columns that depend on each other.
SEES_ROUNDING = ("LMNN", "MCML", "MMC", "SupportVectorMetric")
EXPECTED_WARNINGS = [
    # docs/mcml.md says when MCML's gap stays open.
    "(LNML|MCML) cannot show .* too few rows",
    "MCML cannot show .* scale the columns first",
    "classes too small",
    "similar pairs do not differ",
    ".* between identical points",
    "The least populated class in y",
]
# NCA is not convex; docs/mcml.md says when MCML's gap stays open.
WITHOUT_PROOF = tuple(e.estimator_class for e in registry.LEARNERS if e.proof != "duality gap")


def learner_id(value):
    return short_name(value) if hasattr(value, "fit") else value.__name__


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize(("learner", "dtype"), LEARNERS, ids=learner_id)
def test_converges(case, learner, dtype):
    base = getattr(learner, "estimator", learner)
    if case is collinear_columns and dtype is np.float32 and learner_id(learner) in SEES_ROUNDING:
        pytest.skip("see test_columns_that_float32_rounding_parts_are_told")
    if case is only_duplicates and getattr(learner, "n_components", None) == 1:
        pytest.skip("on a line, two of the three points coincide at the start: rounding decides")
    if case is extreme_scales and isinstance(base, BOUND_TO_UNITS):
        pytest.skip("see test_features_beyond_reach_are_told")
    X, y = case()
    X = X.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        model = clone(learner).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.objective_)
    assert model.components_.dtype == dtype
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()
    if not isinstance(base, WITHOUT_PROOF) and getattr(base, "n_components", None) is None:
        assert model.duality_gap_ <= learner.tol


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("learner", MEANS, ids=short_name)
def test_means_of_hard_data(case, learner):
    X, y = case()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        model = clone(learner).fit(X, y)
    assert model.converged_ and (model.gaps_ <= 0.1).all()
    assert np.isfinite(model.components_).all() and model.components_.any()
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("learner", [cls() for cls in BOUND_TO_UNITS], ids=short_name)
def test_features_beyond_reach_are_told(learner, device):
    X, y = extreme_scales()
    with pytest.warns(UserWarning, match=r"gap.*(raise max_iter|scale the columns)"):
        model = clone(learner).fit(X.astype(np.float32), y)
    assert model.duality_gap_ > learner.tol
    assert clone(learner).fit(StandardScaler().fit_transform(X), y).converged_
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exact = clone(learner).fit(X, y)
    if device.startswith("torch") and isinstance(learner, RelativeComparisons) and told:
        # On some CPUs the rounding of torch's sums leaves the bound behind, which the fit says.
        assert not exact.converged_ and exact.duality_gap_ < 0.02
        pytest.xfail("a gap of 1 % is left in columns from 1e-9 to 1e7")
    assert exact.converged_


@pytest.mark.parametrize("learner", [m for m in METHODS if learner_id(m) in SEES_ROUNDING])
def test_columns_that_float32_rounding_parts_are_told(learner):
    """The fit does not look at rounding; a bound over all metrics must, and says so."""
    X, y = collinear_columns()
    with pytest.warns(UserWarning, match="depend on each other up to rounding"):
        model = clone(learner).fit(X.astype(np.float32), y)
    assert 1e-3 < model.duality_gap_ <= 1.0
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clone(learner).fit(X, y).duality_gap_ <= 1e-3


def test_fewer_rows_than_features_separate_for_free():
    X, y = fewer_rows_than_features()
    assert LMNN().fit(X, y).objective_ < 1e-6


def test_small_class_is_named():
    X, y = singleton_class()
    with pytest.warns(UserWarning, match=r"9 \(1 row\)"):
        model = LMNN().fit(X, y)
    assert model.n_target_neighbors_[-1] == 0
    assert (model.n_target_neighbors_[:-1] == 3).all()


def test_useless_columns_change_nothing():
    X, y = blobs()
    padded, _ = constant_columns()
    plain, more = LMNN(tol=1e-4).fit(X, y), LMNN(tol=1e-4).fit(padded, y)
    assert_allclose(more.objective_, plain.objective_, rtol=2e-4)
    assert_allclose(more.components_[:, 4:], 0.0)
