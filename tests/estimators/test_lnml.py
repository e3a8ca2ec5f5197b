"""Learning neighbourhoods, on real data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import assignment_limits, lmnn_objective, mcml_objective
from sklearn.exceptions import ConvergenceWarning
from toy_data import small_dataset

from lnml import LMNN, LNML, MCML
from lnml.datasets import load_dataset
from lnml.evaluation import compare

SMALL = ["sonar", "ionosphere", "wine", "iris", "balance_scale"]
LEARNERS = {
    "LN-LMNN (3,3,3)": LNML(LMNN()),
    "LN-LMNN (1,3,5)": LNML(LMNN(), k_min=1, k_av=3, k_max=5),
    "LN-MCML": LNML(MCML(), tol=1e-2),
}


def half_steps(model):
    return [
        value
        for record in model.history_
        for value in (record["objective_assigned"], record["objective"])
    ]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("learner", LEARNERS)
def test_never_rises_and_is_what_it_says(name, learner):
    X, y = small_dataset(name, n_rows=90)
    model = LEARNERS[learner].fit(X, y)
    assert model.converged_
    steps = np.array(half_steps(model))
    # Near zero there is only rounding.
    assert (np.diff(steps) <= 1e-9 * np.abs(steps[:-1]) + 1e-15 * steps[0]).all()
    targets = model.target_neighbors_
    if learner == "LN-MCML":
        exact = mcml_objective(X, targets.toarray(), model.components_)
    else:
        exact = lmnn_objective(X, y, targets.toarray(), model.components_, push_weight=0.5)
    assert_allclose(model.objective_, exact, rtol=1e-6, atol=1e-8)
    assert steps[-1] == pytest.approx(model.objective_, rel=1e-9)
    sizes = model.n_target_neighbors_
    floor, cap, budget = assignment_limits(y, model.k_min, model.k_av, model.k_max)
    assert targets.sum() == budget
    assert (sizes >= floor).all() and (sizes <= cap).all()
    assert model.history_[-1]["neighborhood_sizes"] == {
        size: int((sizes == size).sum()) for size in np.unique(sizes)
    }


@pytest.mark.slow
def test_balance_gains_eight_points():
    balance = load_dataset("balance_scale")
    methods = {"LMNN": LMNN(), "LN-LMNN": LNML(LMNN())}
    found = compare(balance.data, balance.target, methods)
    assert found.accuracy("LN-LMNN") - found.accuracy("LMNN") >= 0.08


def test_small_classes_keep_their_budget():
    iris = load_dataset("iris")
    X, y = iris.data[[*range(52), 100]], iris.target[[*range(52), 100]]
    with pytest.warns(UserWarning, match="virginica"):
        model = LNML(LMNN(), k_min=1, k_av=3, k_max=5).fit(X, y)
    assert model.target_neighbors_.sum() == 50 * 3 + 2 * 1
    assert_allclose(model.n_target_neighbors_[50:], [1, 1, 0])


def test_running_out_of_rounds_is_told():
    wine = load_dataset("wine")
    with pytest.warns(ConvergenceWarning, match="max_rounds=2"):
        model = LNML(LMNN(), max_rounds=2).fit(wine.data, wine.target)
    assert not model.converged_
    assert model.duality_gap_ <= 1e-3


def test_metric_given_up_is_told_from_rounds():
    wine = load_dataset("wine")
    with pytest.warns(ConvergenceWarning, match="estimator__max_iter=1 with a relative duality"):
        model = LNML(LMNN(max_iter=1), tol=1e-6).fit(wine.data, wine.target)
    assert model.n_iter_ < model.max_rounds


def test_low_rank_base():
    wine = load_dataset("wine")
    model = LNML(LMNN(n_components=2, init="pca")).fit(wine.data, wine.target)
    assert model.components_.shape == (2, 13)
    steps = np.array(half_steps(model))
    assert (np.diff(steps) <= 1e-9 * np.abs(steps[:-1])).all()
