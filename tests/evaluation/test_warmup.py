"""What a method needs once in a process is not charged to its first fit."""

import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from lnml.evaluation import compare
from lnml.evaluation.warmup import warm_up

RNG = np.random.default_rng(1)
y = np.repeat([0, 1], 12)
X = RNG.normal(size=(24, 30)) + y[:, None]


class Starting(BaseEstimator):
    """Its first fit in a process is slow and keeps memory, as if code were compiled for it."""

    fits = 0
    kept = None

    def __init__(self, callback=None, tag=""):
        self.callback = callback
        self.tag = tag

    def fit(self, X, y):
        if type(self).fits == 0:
            time.sleep(0.5)
            type(self).kept = np.ones(4_000_000)
        type(self).fits += 1
        type(self).shape, type(self).dtype = X.shape, X.dtype
        if self.callback is not None:
            self.callback(self)
        return self

    def transform(self, X):
        return X


@pytest.fixture
def starting(monkeypatch, request):
    monkeypatch.setattr(Starting, "fits", 0)
    monkeypatch.setattr(Starting, "kept", None)
    # Another name in each test: a process warms up once.
    return Starting(tag=request.node.name)


def test_the_first_fold_does_not_pay_for_the_start(starting):
    found = compare(X, y, {"Starting": starting}, n_folds=3)
    folds = found.of("Starting")
    assert Starting.fits == 4
    assert all(part.seconds < 0.25 for part in folds)
    assert all(part.peak_mb is None or part.peak_mb < 16 for part in folds)


def test_one_small_fit_in_a_process_and_type(starting):
    for _ in range(2):
        warm_up(starting, X)
    assert Starting.fits == 1 and Starting.shape[0] <= 20 and Starting.shape[1] <= 16
    warm_up(starting, X[:, :3].astype(np.float32))
    assert Starting.fits == 2 and Starting.shape[1] == 3 and Starting.dtype == np.float32


def test_nobody_hears_of_it(starting):
    heard = []
    warm_up(starting.set_params(callback=heard.append), X)
    assert Starting.fits == 1 and not heard
    assert starting.callback is not None


def test_a_toy_that_is_too_small_is_no_error(starting, monkeypatch):
    def refuse(self, X, y):
        raise ValueError("too few rows")

    monkeypatch.setattr(Starting, "fit", refuse)
    warm_up(starting, X)
    warm_up(None, X)
