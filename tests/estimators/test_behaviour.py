"""Progress, interruption, warm starts, repeatability."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from lnml import ITML, LMNN, LNML, MCML, NCA
from lnml.datasets import load_dataset

LEARNERS = [LMNN(tol=1e-5), MCML(tol=1e-5), NCA(), LNML(LMNN()), ITML(tol=1e-5, random_state=0)]


@pytest.fixture
def wine():
    data = load_dataset("wine")
    return data.data, data.target


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_callback_sees_progress_and_may_stop(learner, wine, recwarn):
    states = []

    def stop_at_second(state):
        states.append(state)
        return len(states) == 2

    model = clone(learner).set_params(callback=stop_at_second).fit(*wine)
    assert len(states) == 2
    assert states[0].method == type(learner).__name__
    assert states[0].components.shape == (13, 13)
    assert states[1].record["seconds"] > 0
    assert model.n_iter_ == 2
    assert not model.converged_
    assert np.isfinite(model.transform(wine[0])).all()
    assert not recwarn.list, "stopping on request is not a convergence failure"


def test_only_true_stops(wine):
    model = LMNN(callback=lambda state: "go on").fit(*wine)
    assert model.converged_


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_verbose_is_one_live_line(learner, wine, capsys):
    clone(learner).set_params(verbose=1).fit(*wine)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.endswith("\n")
    assert shown.err.count("\r") >= 2
    assert type(learner).__name__ in shown.err and "objective" in shown.err
    clone(learner).fit(*wine)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_interrupt_leaves_data_and_estimator_untouched(learner, wine):
    X, y = wine
    fitted = clone(learner).fit(X[:, :5], y)
    before = fitted.components_.copy()

    def interrupt(state):
        raise KeyboardInterrupt

    data = X.copy()
    fitted.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(data, y)
    assert_array_equal(data, X)
    assert_array_equal(fitted.components_, before)
    assert fitted.n_features_in_ == 5
    assert fitted.transform(X[:, :5]).shape == (178, 5)


def test_warm_start_goes_on(wine):
    model = LMNN(warm_start=True).fit(*wine)
    first = model.objective_
    model.set_params(tol=1e-4).fit(*wine)
    assert model.objective_ <= first * (1 + 1e-9)
    cold = LMNN(tol=1e-4).fit(*wine)
    assert model.n_iter_ <= cold.n_iter_


def test_warm_start_of_lnml(wine):
    model = LNML(LMNN(), warm_start=True).fit(*wine)
    first, rounds = model.objective_, model.n_iter_
    model.fit(*wine)
    assert model.objective_ <= first * (1 + 1e-9)
    assert model.n_iter_ < rounds


@pytest.mark.parametrize("learner", [*LEARNERS, LMNN(init="random", random_state=3)], ids=repr)
def test_same_input_same_result(learner, wine):
    first, second = (clone(learner).fit(*wine) for _ in range(2))
    assert_array_equal(first.components_, second.components_)


@pytest.mark.slow
def test_same_result_with_any_number_of_threads():
    """Bitwise: tiles, and the order of their sums, do not depend on the threads."""
    code = (
        "from lnml import LNML, LMNN; from lnml.datasets import load_dataset;"
        "d = load_dataset('letter');"
        "m = LNML(LMNN(), max_rounds=2, tol=1e-2).fit(d.data[:3000], d.target[:3000]);"
        "print(m.components_.tobytes().hex())"
    )
    results = set()
    for threads in ("1", "2", "3"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=environment,
            capture_output=True,
            check=True,
        )
        results.add(done.stdout)
    assert len(results) == 1


def test_order_of_rows_comes_back(wine):
    X, y = wine
    model = LNML(LMNN()).fit(X, y)
    rows, columns = model.target_neighbors_.nonzero()
    assert (y[rows] == y[columns]).all()
    assert (rows != columns).all()
    assert_allclose(np.bincount(rows, minlength=len(y)), model.n_target_neighbors_)
