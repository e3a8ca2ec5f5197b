"""AutoMetric: the rule of its choice, and fits on data whose answer is known."""

import pickle

import numpy as np
import pytest
from learners import AUTO
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from toy_data import blobs

from lnml import ITML, LMNN, LNML, MCML, MMC, NCA, AutoMetric, SupportVectorMetric
from lnml.certificates import verify
from lnml.estimators.auto_candidates import choose


def auto(estimator=None, **parameters):
    """A small search, with some parameters of its own."""
    return clone(AUTO).set_params(estimator=estimator, **parameters)


@pytest.fixture(scope="module")
def data():
    return blobs(6, [16, 14, 12], 3)


@pytest.fixture(scope="module")
def fitted(data):
    return auto(n_subsamples=4, trace_penalties=[0.01, 0.1]).fit(*data)


def spheres():
    """A sphere within another: distances tell them apart, and no single direction does."""
    X = np.random.default_rng(0).standard_normal((80, 3))
    y = np.arange(80) % 2
    return X / np.linalg.norm(X, axis=1)[:, None] * (1 + 3 * y)[:, None], y


def row(right, n=20):
    """Whether a candidate is right, on the first rows only."""
    return np.arange(n) < right


@pytest.mark.parametrize(
    ("correct", "best"),
    [
        pytest.param([row(10), row(10)], 0, id="equal"),
        pytest.param([row(10), row(5)], 0, id="worse"),
        # One more of 20: 0.05, and a standard error of sqrt(0.05 * 0.95 / 20) = 0.0487.
        pytest.param([row(10), row(11)], 1, id="just-clear"),
        # Three gained and one lost, 0.1 +- 0.0975; and two gained and one lost, 0.05 +- 0.0853.
        pytest.param([row(10), row(13) & (np.arange(20) > 0)], 1, id="clear"),
        pytest.param([row(10), row(12) & (np.arange(20) > 0)], 0, id="noise"),
        pytest.param([row(10), row(13), row(16)], 2, id="best-of-two"),
        pytest.param([row(10), row(13), row(13)], 1, id="first-of-equals"),
        pytest.param([row(10), None, row(13)], 2, id="not-fitted"),
        pytest.param([row(10), None], 0, id="only-the-default-fitted"),
        pytest.param([row(10), row(10, 10)], 0, id="half"),
        pytest.param([row(0, 0), row(0, 0)], 0, id="no-rows"),
        pytest.param([row(10)], 0, id="alone"),
    ],
)
def test_rule_of_choice(correct, best):
    names = ["default", "first rival", "second rival"][: len(correct)]
    choice = choose(names, correct)
    assert choice.best == best
    assert choice.reason.startswith(names[best])
    for right, gain, error in zip(correct, choice.gains, choice.errors, strict=True):
        if right is None or not right.size:
            assert np.isnan(gain) and np.isnan(error)
            continue
        difference = right.astype(int) - correct[0][: right.size].astype(int)
        assert gain == pytest.approx(difference.mean())
        assert error == pytest.approx(difference.std() / np.sqrt(right.size))


def test_results_agree_with_the_choice(fitted):
    results, index = fitted.cv_results_, fitted.best_index_
    assert results["params"][index] == fitted.best_params_
    assert fitted.n_iter_ == len(results["params"]) == len(fitted.history_) == 5
    assert results["gain"][0] == 0.0 and results["gain_error"][0] == 0.0
    assert fitted.reason_.startswith(fitted.best_params_["method"])
    assert results["mean_test_score"][index] == pytest.approx(fitted.best_score_, abs=0.02)


def test_race(fitted):
    """Who is behind on the first half is not fitted to the second, and cannot be chosen."""
    scores = np.array([fitted.cv_results_[f"split{i}_test_score"] for i in range(4)])
    sizes = len(fitted.cv_results_["params"])
    assert not np.isnan(scores[:2]).any() and not np.isnan(scores[:, 0]).any()
    out = np.isnan(scores[2:]).any(axis=0)
    assert 0 < out.sum() < sizes
    assert (fitted.cv_results_["gain"][out] <= 0.0).all()
    assert np.isnan(fitted.cv_results_["mean_test_score"][out]).all()


def test_metric_is_the_mean_of_certified_fits(data, fitted):
    X, y = data
    covariance = np.cov(X.T, bias=True)
    mean = np.zeros((3, 3))
    assert len(fitted.estimators_) == len(fitted.subsamples_) == 4
    for model, rows in zip(fitted.estimators_, fitted.subsamples_, strict=True):
        metric = model.components_.T @ model.components_
        mean += metric / np.sum(metric * covariance) / 4
        assert verify(model.certificate(X[rows], y[rows]), X[rows], y[rows]).gap <= 0.1
    assert_allclose(fitted.components_.T @ fitted.components_, mean, rtol=1e-9, atol=1e-12)
    assert fitted.target_shares_.shape == (len(y), len(y))
    with pytest.raises(ValueError, match="is a mean of metrics"):
        fitted.certificate(X, y)


def test_euclidean_where_learning_does_harm():
    X, y = spheres()
    model = auto(LMNN(n_components=1)).fit(X, y)
    assert model.best_params_ == {"method": "Euclidean"}
    assert model.reason_.startswith("Euclidean: on rows left out")
    assert model.estimators_ == [] and model.subsamples_ == [] and model.gaps_.size == 0
    assert not hasattr(model, "target_shares_")
    assert model.converged_
    metric = model.components_.T @ model.components_
    assert_allclose(metric, np.eye(3) / np.trace(np.cov(X.T, bias=True)), atol=1e-12)
    with pytest.raises(ValueError, match="the Euclidean metric was not learned"):
        model.certificate(X, y)


def test_more_voters_where_labels_are_noisy():
    X, y = blobs(0, [80, 80], 2, separation=4.0)
    clean = auto().fit(X, y)
    assert clean.n_neighbors_ == 1
    wrong = np.random.default_rng(0).random(y.size) < 0.25
    assert auto().fit(X, np.where(wrong, 1 - y, y)).n_neighbors_ > 1
    assert auto(n_neighbors=3).fit(X, y).n_neighbors_ == 3


def test_search_on_a_part_of_the_rows(data):
    X, y = data
    model = auto(search_rows=24).fit(X, y)
    assert sum(part.size for part in model.subsamples_) == pytest.approx(y.size, abs=3)
    assert model.target_shares_.shape == (y.size, y.size)
    # The judgement saw no more rows than asked for.
    assert model.best_score_ * 24 == pytest.approx(round(model.best_score_ * 24))


def test_callback_stops_after_the_first_candidate(data):
    model = auto(callback=lambda state: True).fit(*data)
    assert model.n_iter_ == 1 and model.best_index_ == 0
    assert model.reason_.endswith("the default: no other was fitted")


def test_interrupted_fit_leaves_no_trace(data):
    def interrupt(state):
        raise KeyboardInterrupt

    model = auto(callback=interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert vars(model) == before


def test_given_estimator_is_not_changed(data):
    base = LMNN(push_weight=0.4)
    before = dict(vars(base))
    model = auto(base, device="cpu").fit(*data)
    assert vars(base) == before
    assert all(fit.estimator.push_weight == 0.4 for fit in model.estimators_)


def test_seeds_and_processes(data):
    one = auto(random_state=5).fit(*data)
    same = auto(random_state=np.random.RandomState(5), n_jobs=2).fit(*data)
    # Other processes have other threads, and these may round in another order.
    assert_allclose(one.components_, same.components_, rtol=1e-4)
    assert one.reason_ == same.reason_


def test_pickle_and_search(data):
    X, y = data
    model = pickle.loads(pickle.dumps(auto().fit(X, y)))
    assert_array_equal(model.transform(X), auto().fit(X, y).transform(X))
    pipeline = make_pipeline(auto(LMNN()), KNeighborsClassifier(1))
    grid = {"autometric__estimator__push_weight": [0.2, 0.5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert 0.0 < search.best_score_ <= 1.0


@pytest.mark.parametrize(
    ("base", "default"),
    [
        (MCML(), {"method": "MCML"}),
        (NCA(), {"method": "NCA"}),
        (MMC(), {"method": "LN-MMC", "k_min": 1, "k_av": 3, "k_max": 5}),
    ],
    ids=["MCML", "NCA", "MMC"],
)
def test_default_of_other_learners(data, base, default, capsys):
    model = auto(base, sizes=None, verbose=1).fit(*data)
    assert model.cv_results_["params"][0] == {"trace_penalty": 0.01, **default}
    assert model.cv_results_["params"][-1] == {"method": "Euclidean"}
    assert "candidate 1" in capsys.readouterr().err


def test_refit_without_targets_forgets_the_shares(data):
    model = auto().fit(*data)
    model.set_params(estimator=NCA(), sizes=None).fit(*data)
    assert not hasattr(model, "target_shares_")


def test_rival_that_cannot_be_fitted_is_left_out(data):
    model = auto(trace_penalties=[0.01, 1e9]).fit(*data)
    lost = [p.get("trace_penalty") == 1e9 for p in model.cv_results_["params"]]
    assert_array_equal(np.isnan(model.cv_results_["gain"]), lost)


def test_default_that_cannot_be_fitted_is_told(data):
    with pytest.warns(UserWarning, match="default candidate could not be .* too large for these"):
        model = auto(trace_penalties=[1e9], callback=lambda state: True).fit(*data)
    assert model.best_params_ == {"method": "Euclidean"}
    assert model.reason_ == "Euclidean, the first that could be fitted: no other was fitted"
    with pytest.warns(UserWarning, match="could not be fitted"):
        model = auto(trace_penalties=[1e9, 0.01]).fit(*data)
    assert np.isnan(model.cv_results_["gain"][0]) and model.best_index_ > 0
    assert len(model.estimators_) in (0, 2)


@pytest.mark.parametrize("n_rows", [3, 4, 5, 7])
@pytest.mark.filterwarnings("ignore:.*classes too small", "ignore:.*could not be fitted")
def test_few_rows(n_rows):
    X, y = np.random.default_rng(0).standard_normal((n_rows, 2)), np.arange(n_rows) % 2
    model = AutoMetric(tol=0.1).fit(X, y.astype(bool))
    assert np.isfinite(model.components_).all()
    assert ("no rows could be left out" in model.reason_) == (n_rows <= 4)


@pytest.mark.parametrize(
    "base",
    [SupportVectorMetric(), ITML(), LNML(), KMeans(), make_pipeline(LMNN()), LMNN, "lmnn"],
    ids=lambda base: getattr(base, "__name__", type(base).__name__),
)
def test_learners_without_a_penalty_are_refused(data, base):
    model = AutoMetric(base)
    with pytest.raises(TypeError, match=r"AutoMetric cannot use .*with a trace_penalty"):
        model.fit(*data)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *(({"n_subsamples": n}, "n_subsamples must be a whole number >= 2") for n in (0, 1, "a")),
        *(({"sizes": s}, "sizes must be a list of") for s in ([], 5, (1, 2, 3), [(1, 2)], "abc")),
        ({"sizes": [(3, 2, 1)]}, "k_min <= k_av <= k_max"),
        ({"sizes": [(1, 2, 3)], "estimator": NCA()}, "sizes do not go with NCA"),
        ({"sizes": [(1, 2, 3)], "estimator": MCML()}, "MCML"),
        *(({"trace_penalties": p}, "trace_penalties must be a list") for p in ([], 0.1, "a")),
        *(({"trace_penalties": p}, "trace_penalty must be 0 or") for p in ([-1], ["a"], [np.nan])),
        *(({"n_neighbors": k}, "n_neighbors must be") for k in (0, "x", None)),
        ({"n_neighbors": 1000}, "n_neighbors=1000 exceeds"),
        *(({"search_rows": n}, "search_rows must be") for n in (0, 1, 10.0)),
        ({"max_rounds": 0}, "max_rounds must be"),
        ({"tol": 0}, "tol must be"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        AutoMetric(**parameters).fit(*data)
