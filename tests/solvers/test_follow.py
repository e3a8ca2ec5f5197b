"""Solvers of the next problem of a path: what they carry over, and that they find the optimum."""

from types import SimpleNamespace

import numpy as np
import pytest
from toy_data import FlatSoftmax, blobs, training_set

from lnml.core import trail as trails
from lnml.core.monitor import Monitor
from lnml.core.solution import Solution
from lnml.core.trail import Trail
from lnml.core.warm_start import WarmStart
from lnml.learning.targets import nearest_neighborhoods
from lnml.objectives.base import Form
from lnml.objectives.lmnn import LMNNObjective
from lnml.objectives.mcml import MCMLObjective
from lnml.objectives.mmc import MMCObjective
from lnml.solvers import barrier, path
from lnml.solvers.descent import MOST_TRIALS, begin, descend, take_step
from lnml.solvers.problem import ObjectiveProblem
from lnml.solvers.run import Run
from lnml.solvers.saddles import beside
from lnml.solvers.stopping import LittleGain

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.sampled(3)]

MAKERS = {
    "lmnn": lambda training, rho: LMNNObjective(training, 0.5, rho),
    "mcml": lambda training, rho: MCMLObjective(training, rho),
    "mmc": lambda training, rho: MMCObjective(training, False, rho),
    "diagonal mmc": lambda training, rho: MMCObjective(training, True, rho),
}


def quadratic(seed, size=6):
    """A convex quadratic over 2 x 3 matrices, with its Hessian and its minimum."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    hessian, target = root @ root.T + np.eye(size), rng.standard_normal((2, 3))

    def function(components):
        gradient = hessian @ (components - target).ravel()
        value = 1.0 + 0.5 * float(gradient @ (components - target).ravel())
        return value, gradient.reshape(2, 3)

    return function, hessian, target


def add(trail, step, change):
    """Go one step, along which the gradient changes."""
    trail.start(np.zeros_like(step))
    assert trail.look(trail.at + step, 3.0, change) == 3.0
    trail.advance()


def test_the_model_of_the_curvature_is_that_of_bfgs():
    """The inverse Hessian by its recursion, from the same pairs."""
    _, hessian, _ = quadratic(0)
    rng, trail, n = np.random.default_rng(1), Trail(np.zeros((2, 3))), 6
    pairs = []
    for _ in range(4):
        step = rng.standard_normal(n)
        pairs.append((step, hessian @ step))
        add(trail, *(each.reshape(2, 3) for each in pairs[-1]))
    np.testing.assert_allclose(trail.components.ravel(), sum(step for step, _ in pairs))
    step, change = pairs[-1]
    inverse = np.eye(n) * (step @ change) / (change @ change)
    for step, change in pairs:
        left = np.eye(n) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    gradient = rng.standard_normal((2, 3))
    kept = gradient.copy()
    trail.start(gradient)
    direction, slope = trail.downhill()
    np.testing.assert_allclose(direction.ravel(), -inverse @ kept.ravel())
    assert slope == pytest.approx(-kept.ravel() @ inverse @ kept.ravel())
    np.testing.assert_array_equal(gradient, kept)


def test_pairs_of_no_curvature_are_not_taken_and_old_ones_go(monkeypatch):
    monkeypatch.setattr(trails, "MOST_PAIRS", 2)
    trail, step = Trail(np.zeros((2, 3))), np.ones((2, 3))
    add(trail, step, -step)
    assert not trail.steps
    for factor in (1.0, 2.0, 3.0):
        add(trail, factor * step, step)
    assert [each[0, 0] for each in trail.steps] == [2.0, 3.0]
    assert list(trail.products) == [12.0, 18.0]
    trail.forget()
    assert not trail.steps and not trail.changes and not trail.products


def test_few_pairs_of_large_metrics(monkeypatch):
    monkeypatch.setattr(trails, "MOST_BYTES", 16 * 6 * 30)
    assert Trail(np.zeros((2, 3))).steps.maxlen == 30
    assert Trail(np.zeros((20, 30))).steps.maxlen == trails.LEAST_PAIRS


def test_a_trail_in_other_coordinates_and_back():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((3, 3))
    coordinates = SimpleNamespace(matrix=matrix, inverse=np.linalg.inv(matrix), pull=np.ones(3))
    trail = Trail(rng.standard_normal((3, 3)))
    step = rng.standard_normal((3, 3))
    add(trail, step, step + 0.1 * rng.standard_normal((3, 3)))
    inside = trail.inside(coordinates)
    # Distances, and the products of steps and changes, are the same.
    np.testing.assert_allclose(inside.components @ matrix.T, trail.components)
    assert np.vdot(inside.steps[0], inside.changes[0]) == pytest.approx(trail.products[0])
    back = inside.outside(coordinates)
    np.testing.assert_allclose(back.components, trail.components)
    np.testing.assert_allclose(back.steps[0], trail.steps[0])
    np.testing.assert_allclose(back.changes[0], trail.changes[0])


def test_no_trail_into_coordinates_of_another_kind():
    fewer = SimpleNamespace(matrix=np.ones((3, 2)), inverse=np.ones((2, 3)), pull=np.ones(2))
    free = SimpleNamespace(matrix=np.eye(3), inverse=np.eye(3), pull=np.array([1.0, 1.0, 0.0]))
    assert Trail(np.eye(3)).inside(fewer) is None
    assert Trail(np.eye(3)).inside(free) is None


def test_descent_and_what_a_second_one_gains():
    function, _, target = quadratic(3)
    trail = Trail(np.ones((2, 3)))
    cold = descend(function, trail, max_iter=100, value_tol=1e-14)
    np.testing.assert_allclose(trail.components, target, atol=1e-5)
    trail.move_to(np.ones((2, 3)))
    assert descend(function, trail, max_iter=100, value_tol=1e-14) <= cold / 2
    np.testing.assert_allclose(trail.components, target, atol=1e-5)


def test_values_fall_and_are_counted():
    function, _, _ = quadratic(4)
    seen = []

    def counted(components):
        seen.append(components)
        return function(components)

    trail = Trail(np.ones((2, 3)))
    value = begin(counted, trail)
    for _ in range(5):
        before, at = len(seen), trail.components
        reached = take_step(counted, trail, value)
        assert reached.n_evaluations == len(seen) - before
        assert reached.value < value
        assert trail.components is not at
        value = reached.value


@pytest.mark.parametrize("value", [1.0, np.inf, np.nan])
def test_where_no_step_is_lower_a_trail_stays_and_forgets(value):
    trail = Trail(np.ones((2, 3)))
    add(trail, np.ones((2, 3)), np.ones((2, 3)))
    at, slope = trail.components, np.ones((2, 3))
    reached = take_step(lambda components: (value, slope), trail, 0.0)
    assert (reached.value, reached.n_evaluations) == (0.0, MOST_TRIALS)
    assert trail.components is at and not trail.steps


def test_no_step_without_a_slope():
    flat = np.zeros((2, 3))
    trail = Trail(np.ones((2, 3)))
    trail.start(flat)
    reached = take_step(lambda components: (0.0, flat), trail, 0.0)
    assert reached.n_evaluations == 0
    trail = Trail(np.ones((2, 3)))
    assert descend(lambda c: (0.0, flat), trail, max_iter=9, value_tol=0.0) == 1


def test_components_beside_others():
    rng = np.random.default_rng(5)
    components = rng.standard_normal((3, 3))
    turned = np.linalg.qr(rng.standard_normal((3, 3)))[0] @ components
    np.testing.assert_allclose(beside(components, turned), components, atol=1e-12)
    assert beside(components, components) is components


def toy(method, rho, seed=0):
    training = training_set(*blobs(seed, [25, 20, 15], 4))
    targets = nearest_neighborhoods(training, np.eye(4), 3)
    if method == "mcml":
        targets = None
    return ObjectiveProblem(MAKERS[method](training, rho), 100), targets


@pytest.mark.parametrize("method", MAKERS)
@pytest.mark.parametrize("rhos", [(0.3, 0.2, 0.1), (0.1, 0.3), (0.1, 0.0)])
def test_the_optimum_of_every_problem_of_a_path(method, rhos):
    found, components = None, np.eye(4)
    for rho in rhos:
        problem, targets = toy(method, rho)
        state = None if found is None else found.state
        found = problem.solve(targets, components, tol=1e-4, state=state, on_path=True)
        components = found.components
        alone = problem.solve(targets, np.eye(4), tol=1e-4)
        assert found.gap <= 1e-4
        assert found.bound <= alone.objective and alone.bound <= found.objective
        objectives = [record["objective"] for record in found.history]
        bounds = [record["bound"] for record in found.history]
        assert (np.diff(objectives) <= 0.0).all() and (np.diff(bounds) >= 0.0).all()


@pytest.mark.parametrize("method", MAKERS)
def test_the_same_problem_again_takes_next_to_nothing(method):
    problem, targets = toy(method, 0.1)
    found = problem.solve(targets, np.eye(4), tol=1e-3, on_path=True)
    counts = []
    for _ in range(2):
        monitor = Monitor()
        found = problem.solve(
            targets, found.components, tol=1e-3, state=found.state, monitor=monitor, on_path=True
        )
        assert found.gap <= 1e-3
        counts.append(sum(record["n_evaluations"] for record in monitor.history))
    # LMNN may need an iteration, since its multipliers have moved on.
    assert max(counts) <= (10 if method == "lmnn" else 2)


@pytest.mark.parametrize("method", MAKERS)
def test_a_state_has_a_trail_only_on_a_path(method):
    """Or for the rounds of LNML, shorter, where nothing else is handed over."""
    problem, targets = toy(method, 0.1)
    plain = problem.solve(targets, np.eye(4), tol=1e-2)
    if method == "mcml":
        assert plain.state.trail.steps.maxlen == path.ROUND_PAIRS[Form.SOFTMAX]
    else:
        assert plain.state is None or plain.state.trail is None
    trail = problem.solve(targets, np.eye(4), tol=1e-2, on_path=True).state.trail
    assert trail.steps.maxlen == trails.MOST_PAIRS


def loose_rounds(count, max_rounds=None):
    """Solve LMNN for nearest rows at its last metric, again and again; the problem comes, too."""
    training = training_set(*blobs(1, [60, 50, 40], 4))
    problem = ObjectiveProblem(MAKERS["lmnn"](training, 0.0), max_rounds or 100)
    found, rounds = Solution(np.eye(4), np.inf), []
    for _ in range(count):
        targets = nearest_neighborhoods(training, found.components, 3)
        start = float(problem.pair_costs(found.components, targets).sum())
        monitor = Monitor(rule=LittleGain(start))
        found = problem.solve(
            targets, found.components, tol=1e-9, state=found.state, monitor=monitor
        )
        rounds.append((start, found))
    return problem, targets, rounds


def test_a_loose_round_of_hinges_is_one_iteration_that_gains():
    _, _, rounds = loose_rounds(5)
    assert all(len(found.history) > 1 for _, found in rounds[:1])
    for start, found in rounds[1:]:
        *before, last = [record["objective"] for record in found.history]
        # As long as nothing is gained, the round goes on.
        assert last < start * (1.0 + 1e-12)
        assert all(each >= start * (1.0 - 1e-12) for each in before)
        assert found.bound <= found.objective
    # Each round took the trail of the one before.
    assert [found.state.trail is None for _, found in rounds] == [True] * 4 + [False]
    trail = rounds[-1][1].state.trail
    assert 0 < len(trail.steps) <= trail.steps.maxlen == path.ROUND_PAIRS[Form.HINGES]


def test_rounds_that_are_proved_begin_without_a_trail(monkeypatch):
    """What they need are multipliers, and hinges that are smoothed as much as pays."""
    problem, targets, rounds = loose_rounds(3)
    last = rounds[-1][1]

    def refuse(*_):
        raise AssertionError("a tight round was followed")

    monkeypatch.setitem(path.FOLLOWERS, Form.HINGES, refuse)
    found = problem.solve(targets, last.components, tol=1e-5, state=last.state)
    assert found.gap <= 1e-5 and found.state.trail is None
    alone = problem.solve(targets, np.eye(4), tol=1e-5)
    assert found.bound <= alone.objective and alone.bound <= found.objective


def test_a_loose_round_leaves_a_saddle_at_once():
    """At its start: there is no second iteration that could."""
    problem, targets, rounds = loose_rounds(2)
    flat = rounds[-1][1].components.copy()
    values, vectors = np.linalg.eigh(flat.T @ flat)
    flat = np.sqrt(np.where(values > values[-2], values, 0.0))[:, None] * vectors.T
    state = WarmStart(flat, targets, rounds[-1][1].state.multipliers)
    state.trail = Trail(flat, most_pairs=20)
    monitor = Monitor(rule=LittleGain(np.inf))
    found = problem.solve(targets, flat, tol=1e-9, state=state, monitor=monitor)
    assert np.linalg.matrix_rank(found.components, tol=1e-9) == 4


def test_a_trail_keeps_its_length_and_serves_where_it_ended():
    trail = Trail(np.eye(3), most_pairs=7)
    free = SimpleNamespace(matrix=np.eye(3), inverse=np.eye(3), pull=np.ones(3))
    assert trail.inside(free).steps.maxlen == trail.outside(free).steps.maxlen == 7
    for here in (np.eye(3), 2.0 * np.eye(3)):
        state, ended_here = WarmStart(np.eye(3), trail=trail), here[0, 0] == 1.0
        assert state.helps_at(here) == ended_here
        assert (state.take_trail(here) is trail) == ended_here
        assert state.take_trail(here) is None


@pytest.mark.parametrize("method", MAKERS)
def test_few_iterations_are_not_convergence(method):
    problem, targets = toy(method, 3.0 if "mmc" in method else 0.5)
    first = problem.solve(targets, np.eye(4), tol=1e-3, on_path=True)
    problem, targets = toy(method, 1e-3)
    problem.max_iter = 1
    found = problem.solve(targets, first.components, tol=1e-12, state=first.state, on_path=True)
    assert not found.converged
    assert found.bound <= found.objective


def test_every_convex_form_of_a_path_is_followed():
    assert set(path.FOLLOWERS) < set(path.MINIMIZERS)


def lengths_of_iterations(monkeypatch, rule):
    """Return the steps that each iteration of a solve may take, and what it found."""
    lengths = []
    monkeypatch.setattr(
        barrier, "descend", lambda function, trail, *, max_iter, value_tol: lengths.append(max_iter)
    )
    run = Run(1e-3, 50, Monitor(rule=rule), lambda c: c, True, Trail(np.eye(2)))
    return lengths, barrier.follow_softmax(FlatSoftmax(), np.eye(2), run)


def test_iterations_that_prove_nothing_get_longer_until_the_longest_rest(monkeypatch):
    lengths, found = lengths_of_iterations(monkeypatch, None)
    assert lengths == [10, 20, 40, 80, 160, 160, 160, 160, 160]
    assert found.converged and found.gap == 1.0


def test_iterations_of_a_loose_round_stay_short(monkeypatch):
    lengths, found = lengths_of_iterations(monkeypatch, lambda record: record["iteration"] == 3)
    assert lengths == [10, 10, 10]
    assert not found.converged


def test_a_trail_stops_on_its_way_to_an_infinite_metric():
    """Rows of a class coincide, so that ever larger metrics bring the objective to zero."""
    X, y = np.repeat(np.eye(3), 4, axis=0), np.repeat(np.arange(3), 4)
    X = X + 1e-3 * np.random.default_rng(0).standard_normal(X.shape)
    problem = ObjectiveProblem(MCMLObjective(training_set(X, y)), 100)
    first = problem.solve(None, np.eye(3), tol=0.5)
    found = problem.solve(None, first.components, tol=1e-3, state=first.state)
    assert found.converged
    assert found.objective <= 1e-6 * problem.objective.task(None).objective_at_zero
