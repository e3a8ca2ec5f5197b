"""AutoMetric and AveragedMetric on a cluster give what they give on one machine."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from joblib import parallel_config
from learners import AUTO
from sklearn.base import clone
from toy_data import blobs

from cluster import start
from lnml import LMNN, LNML, LNMLCV, MMC, NCA, AutoMetric, AveragedMetric
from lnml.certificates import verify
from lnml.estimators import auto_search
from lnml.estimators.validation import check_training_data
from lnml.kernels.dask_rows import settled

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore:.*classes too small")]


def auto(estimator=None, **parameters):
    """A small search on 36 of the rows."""
    return clone(AUTO).set_params(estimator=estimator, **{"search_rows": 36, **parameters})


@pytest.fixture(scope="module")
def data():
    """Three classes and one of two rows, in random order."""
    X, y = blobs(6, [30, 25, 25, 2], 3)
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


@pytest.fixture(scope="module")
def local(data):
    """The choice on one machine."""
    return auto().fit(*data)


def same_choice(found, wanted):
    """Both saw the same sample and chose the same metric for the same reason."""
    assert found.reason_ == wanted.reason_
    assert np.array_equal(found.search_sample_, wanted.search_sample_)
    for name in ("mean_test_score", "gain", "gain_error"):
        np.testing.assert_array_equal(found.cv_results_[name], wanted.cv_results_[name])
    assert found.n_neighbors_ == wanted.n_neighbors_ and found.best_score_ == wanted.best_score_


def unknown(X, chunks):
    """Rows in chunks of unknown sizes, some of them empty."""
    more = da.from_array(np.vstack([X, X]), chunks=(chunks, 2))
    return more[da.from_array(np.arange(2 * len(X)) < len(X), chunks=chunks)]


@pytest.mark.parametrize("chunks", [15, pytest.param(60, marks=pytest.mark.extras)])
def test_the_choice_is_that_of_one_machine(client, data, local, chunks):
    X, y = data
    found = auto().fit(unknown(X, chunks), da.from_array(y, chunks=7))
    same_choice(found, local)
    assert "36 of the 82 rows" in found.reason_ or "37 of the 82 rows" in found.reason_
    assert set(y[found.search_sample_]) == set(y)
    for one, other in zip(found.subsamples_, local.subsamples_, strict=True):
        assert np.array_equal(one, other)
    metric = found.components_.T @ found.components_
    wanted = local.components_.T @ local.components_
    np.testing.assert_allclose(metric, wanted, rtol=0.1, atol=0.02 * np.abs(wanted).max())
    assert isinstance(found.components_, np.ndarray) and isinstance(found.history_[0], dict)
    assert found.target_shares_.shape == (len(y), len(y))
    rows = found.subsamples_[0]
    report = verify(found.estimators_[0].certificate(X[rows], y[rows]), X[rows], y[rows])
    assert report.holds, report.reason
    np.testing.assert_allclose(found.transform(X.tolist()), X @ found.components_.T)


@pytest.mark.extras
def test_same_bits_for_any_number_of_workers(data):
    X, y = data
    found = []
    for n_workers, chunks in ((1, 15), (2, 40), (4, 15)):
        with start(n_workers) as cluster, distributed.Client(cluster):
            found.append(auto().fit(da.from_array(X, chunks=(chunks, 3)), y))
    for other in found[1:]:
        same_choice(other, found[0])
        assert np.array_equal(found[0].components_, other.components_)


def test_few_rows_are_all_brought_here(client, data):
    X, y = data
    wanted = auto(search_rows=1000, n_neighbors=1).fit(X, y)
    found = auto(search_rows=1000, n_neighbors=1).fit(unknown(X, 15), y)
    assert found.search_sample_ is None and "compared on" not in found.reason_
    np.testing.assert_allclose(found.components_, wanted.components_, rtol=1e-9, atol=1e-12)


def test_none_stands_for_a_number(client, data, local, monkeypatch):
    """All rows would have to fit into the memory of one machine."""
    monkeypatch.setattr(auto_search, "CLUSTER_ROWS", 36)
    rows = check_training_data(LMNN(), *data)
    settings = {"n_subsamples": 2, "n_neighbors": 1, "n_jobs": None, "random_state": 0}
    search = auto_search.CandidateSearch(rows, search_rows=None, **settings)
    assert not search.is_sample
    rows = rows._replace(X=settled(unknown(data[0], 15), len(data[1])))
    search = auto_search.CandidateSearch(rows, search_rows=None, **settings)
    assert np.array_equal(search.sampled, local.search_sample_)
    np.testing.assert_array_equal(search.sample.X, data[0][local.search_sample_])


def test_euclidean(client):
    X = np.random.default_rng(0).standard_normal((80, 3))
    y = np.arange(80) % 2
    X = X / np.linalg.norm(X, axis=1)[:, None] * (1 + 3 * y)[:, None]
    model = auto(LMNN(n_components=1, device="cluster"), search_rows=40, device="cluster")
    model.fit(da.from_array(X, chunks=(30, 2)), y)
    assert model.best_params_ == {"method": "Euclidean"} and model.estimators_ == []
    metric = model.components_.T @ model.components_
    np.testing.assert_allclose(metric, np.eye(3) / np.trace(np.cov(X.T, bias=True)), atol=1e-12)


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_another_learner_and_processes(client, data):
    X, y = data
    wanted = auto(NCA(max_iter=5), sizes=None).fit(X, y)
    found = auto(NCA(max_iter=5), sizes=None, n_jobs=2).fit(da.from_array(X, chunks=(30, 3)), y)
    same_choice(found, wanted)
    np.testing.assert_allclose(found.components_, wanted.components_, rtol=1e-6, atol=1e-9)


def test_a_mean_on_a_cluster(client, data):
    X, y = data
    model = AveragedMetric(LMNN(tol=0.1, trace_penalty=0.1), n_subsamples=2, n_jobs=2)
    wanted = clone(model).set_params(n_jobs=None).fit(X, y)
    seen = []
    found = model.set_params(callback=seen.append).fit(unknown(X, 15), y)
    np.testing.assert_allclose(found.gaps_, wanted.gaps_, atol=0.01)
    metric = found.components_.T @ found.components_
    np.testing.assert_allclose(metric, wanted.components_.T @ wanted.components_, atol=0.02)
    assert [state.record["subsample"] for state in seen] == [0, 1]


def test_bad_rows_are_refused_before_the_search(client, data):
    X, y = data
    X = X.copy()
    X[auto_row(data), 1] = np.nan

    def never(state):
        raise AssertionError("no candidate should be fitted")

    model = auto(callback=never)
    before = dict(vars(model))
    for rows, labels, message in (
        (X, y, "NaN or infinity"),
        (np.nan_to_num(X)[1:], y, "X has 81 rows and y has 82"),
        (np.where(np.isnan(X), 1e200, X), y, "overflow"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(da.from_array(rows, chunks=(30, 3)), labels)
    with pytest.raises(ValueError, match="max_rounds"):
        auto(max_rounds=0, callback=never).fit(da.from_array(X, chunks=(30, 3)), y)
    assert vars(model) == before


def auto_row(data):
    """A row that is not in the sample."""
    sample = auto().fit(*data).search_sample_
    return np.setdiff1d(np.arange(len(data[1])), sample)[0]


@pytest.mark.parametrize(
    "model",
    [AutoMetric(MMC()), AveragedMetric(MMC()), AveragedMetric(LNML(MMC())), LNMLCV()],
    ids=lambda model: f"{type(model).__name__}-{type(model.estimator).__name__}",
)
def test_others_refuse(client, data, model):
    X, y = data
    with pytest.raises(TypeError, match=r"(?s)cannot be fitted to a Dask array.*AutoMetric.* can"):
        model.fit(da.from_array(X, chunks=(30, 3)), y)


def test_an_interrupt_leaves_no_trace(client, data):
    def interrupt(state):
        raise KeyboardInterrupt

    X, y = data
    model = auto(callback=interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(da.from_array(X, chunks=(30, 3)), y)
    assert vars(model) == before


@pytest.mark.extras
def test_frames(client, data, local):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = data
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=3)
    found = auto().fit(frame.clear_divisions(), dd.from_pandas(pd.Series(y), npartitions=2))
    same_choice(found, local)
    assert list(found.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.extras
def test_a_worker_dies_during_the_search(data, local):
    """What it held of the rows is computed again; joblib may run the search on the workers."""
    X, y = data
    with start(2, processes=True) as cluster, distributed.Client(cluster) as client:
        victims = list(client.run(os.getpid).values())[:1]

        def kill_once(state):
            if victims:
                os.kill(victims.pop(), signal.SIGKILL)

        model = auto(callback=kill_once)
        with parallel_config(backend="dask"):
            model.fit(da.from_array(X, chunks=(30, 3)), y)
    assert not victims
    same_choice(model, local)
