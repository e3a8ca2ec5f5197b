"""Certificates of fitted estimators, and what is said where little can be proved."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from lnml import ITML, LMNN, LNML, LNMLCV, MCML, MMC, NCA
from lnml.certificates import verify
from lnml.datasets import load_dataset
from lnml.estimators.certification import warn_of_little_proof
from lnml.estimators.tuned import TunedMetric

IRIS = load_dataset("iris")
X, y = IRIS.data[::2], IRIS.target[::2]


def warning_of(data, names=None):
    with pytest.warns(UserWarning) as caught:
        warn_of_little_proof("LMNN", 0.7, data, names)
    (warning,) = caught
    return str(warning.message)


def normal(columns=3):
    return np.random.default_rng(0).standard_normal((50, columns))


def test_a_code_is_named():
    data = normal()
    data[::3, 1] = -9999999.0
    assert "column 1 holds -1e+07" in warning_of(data).lower()
    assert "Age holds -1e+07, far from most of its values" in warning_of(data, ["a", "Age", "c"])
    assert "missing value" in warning_of(data)


def test_near_copies_are_named():
    data = normal()
    data[:, 2] = data[:, 0] + 1e-6 * data[:, 1]
    told = warning_of(data, ["start", "size", "end"])
    assert "start and end are nearly equal: give their difference as a column" in told.lower()


def test_dependent_columns_are_named():
    data = normal(4)
    data[:, 3] = data[:, 0] + data[:, 1] + 1e-9 * normal(1)[:, 0]
    told = warning_of(data, ["a", "b", "c", "total"])
    assert "a, b, total depend on each other up to rounding: leave one of them out" in told.lower()


def test_scales_are_named():
    told = warning_of(normal(2) * [1e7, 1.0])
    assert "Column 0 varies 9e+06 times as much as column 1" in told
    assert "StandardScaler" in told


def test_columns_of_rounded_values_are_named():
    """Seconds since 1970 in float32, which holds every 128th of them."""
    data = normal(2)
    data[:, 1] = 1.6e9 + 128.0 * np.round(data[:, 1])
    told = warning_of(data.astype(np.float32), ["a", "time"])
    assert "The values of time differ by little more than their rounding to float32" in told
    assert "subtract the smallest of them first" in told
    assert "differ by little" not in warning_of(data)


def test_a_column_of_rounded_values_less_its_smallest_is_learned():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    time = 1.6e9 + 128.0 * (np.round(rng.standard_normal(200)) + 3 * labels)
    rows = np.stack([rng.standard_normal(200), time], axis=1).astype(np.float32)
    with pytest.warns(UserWarning, match="column 1 differ by little more than their rounding"):
        assert LMNN().fit(rows, labels).duality_gap_ > 0.5
    rows[:, 1] -= rows[:, 1].min()
    assert LMNN().fit(rows, labels).duality_gap_ <= 1e-3


def test_without_a_cause_there_may_be_too_few_rows():
    assert "too few rows" in warning_of(normal(20))
    assert "may be separable" in warning_of(normal(3))


def test_constant_columns_do_not_confuse():
    data = np.c_[normal(2), np.full(50, 3.0)]
    assert "may be separable" in warning_of(data)


@pytest.mark.parametrize("model", [LMNN(), LNML(), MCML(), MMC(), ITML(random_state=0)], ids=repr)
def test_certificates_can_be_kept_and_checked(model, tmp_path):
    fitted = clone(model).fit(X, y)
    certificate = fitted.certificate(X, y)
    assert certificate.objective == fitted.objective_
    assert certificate.gap == fitted.duality_gap_
    certificate.save(tmp_path / "proof.npz")
    assert verify(type(certificate).load(tmp_path / "proof.npz"), X, y).holds
    again = pickle.loads(pickle.dumps(fitted))
    assert verify(again.certificate_, X, y).holds


def test_chosen_models_have_the_certificate_of_their_last_fit():
    searched = LNMLCV(grid=[(1, 1, 1), (3, 3, 3)], cv=2).fit(X, y)
    assert searched.certificate_ is searched.best_estimator_.certificate_
    assert verify(searched.certificate(X, y), X, y).holds
    tuned = TunedMetric(ITML(random_state=0), {"gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert verify(tuned.certificate(X, y), X, y).holds


def test_there_may_be_no_certificate():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nca = NCA(max_iter=5).fit(X, y)
    assert nca.certificate_ is None
    with pytest.raises(ValueError, match="nothing can be proved"):
        nca.certificate(X, y)
    pairs = np.stack([X[:20], X[20:40]], axis=1)
    model = MMC().fit_pairs(pairs, np.where(np.arange(20) % 2, 1, -1))
    with pytest.raises(ValueError, match="fitted to pairs"):
        model.certificate(X, y)


def test_other_data_are_refused():
    model = LMNN().fit(X, y)
    with pytest.raises(ValueError, match="the fit was to 75 rows; X has 74"):
        model.certificate(X[1:], y[1:])


def test_constraints_can_be_looked_at():
    model = ITML(random_state=0).fit(X, y)
    assert model.pairs_.shape == (model.n_constraints_, 2)
    similar = y[model.pairs_[:, 0]] == y[model.pairs_[:, 1]]
    np.testing.assert_array_equal(model.certificate_.duals["similar"], similar)
    model.fit_pairs(np.stack([X[:20], X[20:40]], axis=1), np.where(np.arange(20) % 2, 1, -1))
    assert not hasattr(model, "pairs_")


def test_no_second_warning():
    """A fit that reached its limit says so, and nothing else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LMNN(max_iter=1, tol=1e-9).fit(X, y)
    assert len(caught) == 1
    assert "raise max_iter" in str(caught[0].message)
