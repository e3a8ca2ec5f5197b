"""The solver of hinge problems: its history, saddles and low rank."""

import numpy as np
import pytest
from oracles import lmnn_objective, nearest_targets, squared_distances
from toy_data import blobs, device_targets, in_class_order, small_dataset, training_set

from lnml import LMNN
from lnml.core.monitor import Monitor
from lnml.objectives.lmnn import LMNNObjective
from lnml.solvers.problem import ObjectiveProblem
from lnml.solvers.saddles import leave_saddle

pytestmark = pytest.mark.usefixtures("device")

DATASETS = ["balance_scale", "ionosphere", "iris", "sonar", "wine"]
ROUNDING = 1e-9


def column(history, name):
    return np.array([record[name] for record in history])


def assert_sound_history(history, rounding=ROUNDING):
    """Objectives never rise, bounds never fall, and no bound is above any objective."""
    objectives, bounds = column(history, "objective"), column(history, "bound")
    assert (np.diff(objectives) <= 0.0).all()
    assert (np.diff(bounds) >= 0.0).all()
    assert bounds[-1] <= objectives[-1] * (1.0 + rounding)
    np.testing.assert_array_equal(column(history, "iteration"), 1 + np.arange(len(history)))
    assert (column(history, "n_evaluations") >= 1).all()


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("push_weight", [0.5, 0.9])
def test_history_of_real_data(name, push_weight):
    X, y = small_dataset(name, n_rows=90)
    model = LMNN(push_weight=push_weight, max_iter=200).fit(X, y)
    assert_sound_history(model.history_)
    assert model.converged_
    last = model.history_[-1]
    assert model.duality_gap_ == pytest.approx(last["gap"], abs=1e-7)
    assert model.duality_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(last["objective"], rel=1e-9)
    P = model.target_neighbors_.toarray()
    exact = lmnn_objective(X, y, P, model.components_, push_weight)
    assert model.objective_ == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("name", ["ionosphere", "sonar"])
def test_bound_keeps_up_with_objective(name):
    X, y = small_dataset(name, n_rows=400)
    model = LMNN().fit(X, y)
    assert model.converged_
    assert column(model.history_, "n_evaluations").sum() <= 350


def test_history_of_float32_data():
    X, y = small_dataset("wine")
    model = LMNN().fit(X.astype(np.float32), y)
    assert_sound_history(model.history_, rounding=1e-5)
    P = model.target_neighbors_.toarray()
    exact = lmnn_objective(X.astype(np.float32), y, P, model.components_, 0.5)
    assert model.objective_ == pytest.approx(exact, rel=1e-4)


def toy_problem(seed=0, max_iter=200, push_weight=0.5):
    X, y = blobs(seed, [16, 15, 14], 4)
    P = nearest_targets(squared_distances(X), y, 3)
    problem = ObjectiveProblem(LMNNObjective(training_set(X, y), push_weight), max_iter)
    return problem, device_targets(in_class_order(P, y))


def assert_same_optimum(first, second, tol):
    """Certified intervals overlap, and are as short as promised."""
    assert first.bound <= second.objective * (1.0 + ROUNDING)
    assert second.bound <= first.objective * (1.0 + ROUNDING)
    assert first.objective == pytest.approx(second.objective, rel=1.01 * tol)


@pytest.mark.parametrize("rows_left", [1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_start_with_zero_rows_reaches_the_same_optimum(rows_left, scale):
    problem, targets = toy_problem()
    start = np.zeros((4, 4))
    start[:rows_left] = scale * np.random.default_rng(1).standard_normal((rows_left, 4))
    found = problem.solve(targets, start, tol=1e-3)
    assert found.converged
    assert_sound_history(found.history)
    assert_same_optimum(found, problem.solve(targets, np.eye(4), tol=1e-3), 1e-3)


def test_escape_adds_the_missing_directions_only():
    components = np.diag([2.0, 0.0, 0.0])
    directions = np.eye(3)[:, [0, 2]]
    left = leave_saddle(components, directions, scale=1.0)
    metric = left.T @ left
    assert metric[2, 2] > 0.0
    np.testing.assert_allclose(metric - np.diag(metric.diagonal()), 0.0, atol=1e-12)
    np.testing.assert_allclose(metric.diagonal()[:2], [4.0, 0.0], atol=1e-12)


def test_escape_by_the_part_that_is_missing():
    """Near a saddle a direction may lie in part where the metric is large already."""
    components = np.diag([2.0, 1.0, 0.0])
    left = leave_saddle(components, np.array([[0.6], [0.0], [0.8]]), scale=1.0)
    metric = left.T @ left
    assert metric[2, 2] > 0.0
    metric[2, 2] = 0.0
    np.testing.assert_allclose(metric, np.diag([4.0, 1.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize("directions", [np.zeros((2, 0)), np.eye(2)])
def test_no_escape_where_nothing_is_missing(directions):
    components = np.array([[1.0, 2.0], [0.0, 3.0]])
    assert leave_saddle(components, directions, scale=1.0) is components


@pytest.mark.parametrize("rank", [1, 3])
def test_escape_from_nothing(rank):
    """A collapsed metric comes back at the scale of the start, of any rank."""
    left = leave_saddle(np.zeros((rank, 3)), np.eye(3)[:, [0, 2]], scale=4.0)
    assert left.shape == (rank, 3)
    assert np.trace(left.T @ left) > 1e-4
    np.testing.assert_allclose(left[:, 1], 0.0, atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_low_rank(n_components):
    """Monotone, of that rank, and above the optimum of any rank."""
    problem, targets = toy_problem(2)
    start = np.random.default_rng(2).standard_normal((n_components, 4))
    found = problem.solve(targets, start, tol=1e-3)
    assert_sound_history(found.history)
    assert found.converged
    assert found.components.shape == (n_components, 4)
    best = problem.solve(targets, np.eye(4), tol=1e-3)
    assert found.bound <= best.objective * (1.0 + ROUNDING)
    assert best.bound <= found.objective * (1.0 + ROUNDING)


def test_warm_start_with_multipliers():
    """The state of a solve shortens the next one and leads to the same optimum."""
    problem, targets = toy_problem(3)
    loose = problem.solve(targets, np.eye(4), tol=3e-2)
    tight = problem.solve(targets, loose.components, tol=1e-4, state=loose.state)
    assert tight.converged
    assert tight.objective <= loose.objective * (1.0 + ROUNDING)
    cold = problem.solve(targets, np.eye(4), tol=1e-4)
    assert_same_optimum(tight, cold, 1e-4)
    again = problem.solve(targets, tight.components, tol=1e-2, state=tight.state)
    assert len(again.history) == 1


def test_few_iterations_are_not_convergence():
    problem, targets = toy_problem(4, max_iter=1)
    found = problem.solve(targets, np.eye(4), tol=1e-6)
    assert not found.converged
    assert found.gap > 1e-6
    assert len(found.history) == 1


@pytest.mark.parametrize("push_weight", [0.5, 0.9])
def test_no_worse_than_the_start(push_weight):
    """However few iterations are allowed, as the contract of a problem asks."""
    X, y = small_dataset("letter", n_rows=250)
    codes = np.unique(y, return_inverse=True)[1]
    P = nearest_targets(squared_distances(X), y, 3)
    targets = device_targets(in_class_order(P, codes))
    problem = ObjectiveProblem(LMNNObjective(training_set(X, codes), push_weight), 100)
    good = problem.solve(targets, np.eye(16), tol=1e-3)
    problem.max_iter = 1
    again = problem.solve(targets, good.components, tol=1e-6)
    assert again.objective <= good.objective * (1.0 + ROUNDING)


def test_a_callback_sees_the_metric_in_the_coordinates_of_the_data():
    problem, targets = toy_problem(5)
    states = []
    monitor = Monitor("LMNN", callback=lambda state: states.append(state) or len(states) == 3)
    found = problem.solve(targets, np.eye(4), tol=1e-9, monitor=monitor)
    assert found.stopped
    assert len(found.history) == 3
    np.testing.assert_array_equal(states[-1].components, found.components)
    points = problem.objective.training.points
    P = targets.to_graph().toarray()
    exact = lmnn_objective(points.data, points.row_class, P, states[0].components, 0.5)
    assert states[0].record["objective"] == pytest.approx(exact, rel=1e-9)
