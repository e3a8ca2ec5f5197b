"""Folds and fits run on the workers if joblib is told so; rows are then on this machine."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from toy_data import blobs

from cluster import start
from lnml import LMNN, LNMLCV, NCA, AutoMetric, AveragedMetric
from lnml.evaluation import compare

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
DATA = blobs(6, [16, 14, 12], 3)


def number_of(address):
    """The last number in the address of a worker, such as its port."""
    return int(re.findall(r"\d+", address)[-1])


def recording(base):
    """A learner that remembers the worker and the process of its fit."""

    # Its class is made here, so that it travels to other processes.
    class Recording(base):
        def fit(self, X, y):
            super().fit(X, y)
            try:
                self.worker_ = number_of(distributed.get_worker().address)
            except ValueError:
                self.worker_ = -1
            self.process_ = os.getpid()
            return self

    return Recording


def check_places(client, learner):
    """All kinds of searches fit on the workers, and none elsewhere."""

    def score(model, X, y):
        return float(model.worker_)

    with parallel_config(backend="dask"):
        folds = cross_val_score(learner, *DATA, cv=3, scoring=score)
        grid = GridSearchCV(learner, {"tol": [0.1, 0.2]}, cv=2, scoring=score, refit=False)
        results = grid.fit(*DATA).cv_results_
        mean = AveragedMetric(learner).fit(*DATA)
        chosen = AutoMetric(learner, n_subsamples=2).fit(*DATA)
    known = {number_of(each) for each in client.nthreads()}
    assert set(folds) <= known
    assert {score for i in range(2) for score in results[f"split{i}_test_score"]} <= known
    assert len(mean.estimators_) == 4 and len(chosen.estimators_) == 2
    models = [*mean.estimators_, *chosen.estimators_]
    assert {model.worker_ for model in models} <= known
    return {model.process_ for model in models}


def test_fits_run_on_workers(client):
    learner = recording(NCA)(max_iter=2)
    assert learner.fit(*DATA).worker_ == -1
    check_places(client, learner)


@pytest.mark.extras
def test_fits_run_in_other_processes():
    with start(2, processes=True) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        others = set(client.run(os.getpid).values())
        assert check_places(client, recording(NCA)(max_iter=2)) == others
        assert len(others) == 2 and os.getpid() not in others


def test_inner_folds_and_comparisons(client):
    """What LNMLCV and compare find does not depend on where their folds run."""
    model = LNMLCV(grid=[(1, 1, 1), (2, 2, 2)], cv=2, max_rounds=1, tol=0.1)
    methods = {"Euclidean": None, "LMNN": LMNN(tol=0.1)}
    wanted = model.fit(*DATA).cv_results_, compare(*DATA, methods, n_folds=2)
    before = len(client.get_task_stream())
    with parallel_config(backend="dask"):
        found = model.fit(*DATA).cv_results_, compare(*DATA, methods, n_folds=2)
    assert len(client.get_task_stream()) > before
    np.testing.assert_array_equal(found[0]["mean_test_score"], wanted[0]["mean_test_score"])
    for name in methods:
        np.testing.assert_array_equal(found[1].correct(name), wanted[1].correct(name))


@pytest.mark.extras
def test_searches_within_searches(client):
    """The fits of AutoMetric are tasks of their own, started by those of the outer folds."""
    inner = AutoMetric(sizes=[(1, 1, 1)], n_subsamples=2, max_rounds=1, tol=0.1)
    pipeline = make_pipeline(inner, KNeighborsClassifier(1))
    wanted = cross_val_score(pipeline, *DATA, cv=2)
    with parallel_config(backend="dask"):
        np.testing.assert_array_equal(cross_val_score(pipeline, *DATA, cv=2), wanted)
