"""When workers watch their parent; tests/cli/test_compare.py kills it."""

import os
import threading

import pytest
from joblib import parallel_config
from sklearn.utils.parallel import Parallel, delayed

from lnml.evaluation import workers
from lnml.evaluation.workers import end_with, make_parallel


def test_only_a_worker_watches():
    before = threading.active_count()
    for parent in (os.getpid(), 2**30):
        end_with.__wrapped__(parent)
    assert threading.active_count() == before


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing", "sequential"])
def test_every_backend_works(backend):
    with parallel_config(backend=backend):
        assert make_parallel(2)(delayed(abs)(-i) for i in range(3)) == [0, 1, 2]


def test_joblib_that_takes_no_initializer(monkeypatch):
    monkeypatch.setattr(workers, "Parallel", lambda n_jobs: Parallel(n_jobs=n_jobs))
    assert make_parallel(1)(delayed(abs)(-i) for i in range(2)) == [0, 1]
