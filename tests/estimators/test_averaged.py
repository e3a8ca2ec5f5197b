"""AveragedMetric: a mean that anyone can take, of fits that anyone can check."""

import pickle

import numpy as np
import pytest
from learners import AVERAGED
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from toy_data import blobs

from lnml import LMNN, LNML, MCML, NCA, AveragedMetric, SupportVectorMetric
from lnml.certificates import verify


@pytest.fixture(scope="module")
def data():
    return blobs(3, [16, 14, 12], 3)


@pytest.fixture(scope="module")
def fitted(data):
    return AveragedMetric(AVERAGED.estimator, n_subsamples=4).fit(*data)


def test_metric_is_the_mean_of_the_fits(data, fitted):
    covariance = np.cov(data[0].T, bias=True)
    mean = np.zeros((3, 3))
    for model in fitted.estimators_:
        metric = model.components_.T @ model.components_
        mean += metric / np.sum(metric * covariance) / 4
    assert_allclose(fitted.components_.T @ fitted.components_, mean, rtol=1e-9, atol=1e-12)


def test_components_are_orthogonal_and_the_longest_comes_first(fitted):
    products = fitted.components_ @ fitted.components_.T
    lengths = np.diag(products)
    assert_allclose(products, np.diag(lengths), atol=1e-12 * lengths[0])
    assert (np.diff(lengths) <= 0.0).all()


def test_every_fit_has_a_proof(data, fitted):
    X, y = data
    for model, rows, gap in zip(fitted.estimators_, fitted.subsamples_, fitted.gaps_, strict=True):
        checked = verify(model.certificate(X[rows], y[rows]), X[rows], y[rows])
        assert checked.gap <= 0.1 and checked.gap == pytest.approx(gap, abs=1e-6)


def test_rows_are_used_equally_often(data, fitted):
    used = np.bincount(np.concatenate(fitted.subsamples_), minlength=len(data[1]))
    assert set(used) <= {2, 3, 4} and used.mean() == pytest.approx(3.0, abs=0.1)


def test_shares_of_target_pairs(data, fitted):
    n = len(data[1])
    counts, together = np.zeros((n, n)), np.zeros((n, n))
    for model, rows in zip(fitted.estimators_, fitted.subsamples_, strict=True):
        counts[np.ix_(rows, rows)] += model.target_neighbors_.toarray() != 0
        together[np.ix_(rows, rows)] += 1
    expected = counts / np.maximum(together, 1)
    assert_allclose(fitted.target_shares_.toarray(), expected, rtol=1e-12)
    assert 0.0 < expected.max() <= 1.0


def test_the_mean_has_no_certificate(data, fitted):
    assert fitted.objective_ is None and fitted.duality_gap_ is None
    with pytest.raises(ValueError, match=r"is a mean of metrics.*estimators_\[0\].certificate"):
        fitted.certificate(*data)


def test_refit_without_targets_forgets_the_shares(data):
    model = clone(AVERAGED).fit(*data)
    assert hasattr(model, "target_shares_")
    model.set_params(estimator=NCA()).fit(*data)
    assert not hasattr(model, "target_shares_")
    assert np.isnan(model.gaps_).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_stops_after_the_first_fit(data, n_jobs):
    # The answer to the first record counts, although another fit may be ready.
    model = clone(AVERAGED).set_params(
        n_jobs=n_jobs, callback=lambda state: state.record["subsample"] == 0
    )
    model.fit(*data)
    assert len(model.estimators_) == len(model.subsamples_) == len(model.gaps_) == 1
    assert model.n_iter_ == 1


def test_interrupted_fit_leaves_no_trace(data):
    def interrupt(state):
        raise KeyboardInterrupt

    model = clone(AVERAGED).set_params(callback=interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert vars(model) == before


def test_given_estimator_is_not_changed(data):
    base = LMNN(tol=0.1)
    before = dict(vars(base))
    AveragedMetric(base, n_subsamples=2, device="cpu").fit(*data)
    assert vars(base) == before


def test_seeds(data):
    one = clone(AVERAGED).set_params(random_state=5).fit(*data)
    same = clone(AVERAGED).set_params(random_state=np.random.RandomState(5)).fit(*data)
    other = clone(AVERAGED).set_params(random_state=6).fit(*data)
    assert_array_equal(one.components_, same.components_)
    assert not np.array_equal(one.subsamples_[0], other.subsamples_[0])


def test_pickle_and_search(data):
    X, y = data
    model = pickle.loads(pickle.dumps(clone(AVERAGED).fit(X, y)))
    assert_array_equal(model.transform(X), clone(AVERAGED).fit(X, y).transform(X))
    pipeline = make_pipeline(AveragedMetric(LMNN(tol=0.1), n_subsamples=2), KNeighborsClassifier(1))
    grid = {"averagedmetric__estimator__push_weight": [0.2, 0.5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert 0.0 < search.best_score_ <= 1.0


@pytest.mark.parametrize(
    "base",
    [MCML(tol=0.1), SupportVectorMetric(tol=0.1), AveragedMetric(LMNN(tol=0.1), n_subsamples=2)],
    ids=lambda base: type(base).__name__,
)
def test_other_learners(data, base, capsys):
    model = AveragedMetric(base, n_subsamples=2, verbose=1).fit(*data)
    assert len(model.estimators_) == 2
    assert "subsample 1" in capsys.readouterr().err


def test_warnings_of_fits_are_told_once():
    X, y = blobs(0, [2, 9], 2)
    with pytest.warns(UserWarning, match="of the 4 fits to subsamples warned: classes") as told:
        AveragedMetric(LNML(LMNN(), tol=0.1)).fit(X, y)
    assert len(told) == 1 and told[0].filename == __file__


def test_fits_without_proof_are_told(data):
    with pytest.warns(ConvergenceWarning, match="2 of the 2 fits did not meet their tolerance"):
        model = AveragedMetric(LMNN(max_iter=1, tol=1e-9), n_subsamples=2).fit(*data)
    assert not model.converged_


@pytest.mark.parametrize(
    "base",
    [NeighborhoodComponentsAnalysis(), KMeans(), make_pipeline(LMNN()), LMNN, "lmnn"],
    ids=lambda base: getattr(base, "__name__", type(base).__name__),
)
def test_what_is_no_metric_learner_is_refused(data, base):
    with pytest.raises(TypeError, match="AveragedMetric cannot use"):
        AveragedMetric(base).fit(*data)


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("n_subsamples", n) for n in (0, 2.0, "a")), *(("subsample", s) for s in (0, 1, 2, "a"))],
)
def test_bad_parameters_are_refused(data, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        AveragedMetric(**{name: value}).fit(*data)
