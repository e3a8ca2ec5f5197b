"""Neighbourhoods and metric in turn: the objective never rises."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import least_assignment_cost, lmnn_pair_costs, squared_distances
from toy_data import neighborhoods, small_dataset

from lnml import LMNN, LNML, MCML
from lnml.core.monitor import Monitor
from lnml.core.solution import Proof, Solution
from lnml.learning.alternation import alternate
from lnml.learning.targets import Assignment

pytestmark = pytest.mark.usefixtures("device")

SLACK = 1e-9
SIZES = {"k_min": 1, "k_av": 3, "k_max": 5}


def half_steps(history):
    """Objective after every assignment and after every metric, in their order."""
    return np.array([[r["objective_assigned"], r["objective"]] for r in history]).ravel()


def assert_never_rises(history):
    objectives = half_steps(history)
    assert (np.diff(objectives) <= SLACK * np.abs(objectives[:-1])).all()
    assert [record["round"] for record in history] == list(range(1, len(history) + 1))


@pytest.mark.parametrize("name", ["iris", "balance_scale"])
def test_converged_neighborhoods_are_the_best_at_the_metric(name):
    """No other neighbourhoods have a lower cost at the learned metric, says the LP."""
    X, y = small_dataset(name, n_rows=60)
    model = LNML(**SIZES).fit(X, y)
    assert model.converged_
    costs = lmnn_pair_costs(squared_distances(X, model.components_), y, 0.5)
    least = least_assignment_cost(costs, y, **SIZES)
    assert model.objective_ == pytest.approx(least, rel=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_first_neighborhoods_are_those_of_the_start():
    X, y = small_dataset("wine", n_rows=60)
    model = LNML(**SIZES, max_rounds=1, tol=0.5).fit(X, y)
    costs = lmnn_pair_costs(squared_distances(X), y, 0.5)
    least = least_assignment_cost(costs, y, **SIZES)
    assert model.history_[0]["objective_assigned"] == pytest.approx(least, rel=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("base", [LMNN(n_components=2), MCML(n_components=2)])
def test_low_rank_never_rises(base):
    X, y = small_dataset("wine", n_rows=60)
    model = LNML(base, tol=1e-2, max_rounds=10).fit(X, y)
    assert_never_rises(model.history_)
    assert model.components_.shape == (2, 13)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_inner_iteration_never_rises():
    X, y = small_dataset("wine")
    model = LNML(LMNN(max_iter=1), **SIZES, max_rounds=8).fit(X, y)
    assert_never_rises(model.history_)


FIRST, SECOND = (
    neighborhoods([[0, 1, 0], [1, 0, 0], [1, 0, 0]]),
    neighborhoods([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
)


class Scripted:
    """A problem whose solutions are given; it remembers how it was asked."""

    def __init__(self, objectives):
        self.objectives = list(objectives)
        self.calls = []
        self.within = {}  # call number -> objectives told to the monitor before the last

    def solve(self, targets, components, *, tol, state=None, monitor=None):
        self.calls.append({"targets": targets, "tol": tol, "state": state})
        number = len(self.calls)
        self.calls[-1]["told"] = 0
        for objective in self.within.get(number, []):
            self.calls[-1]["told"] += 1
            if monitor.step({"objective": objective}, lambda: components):
                break
        return Solution(
            np.full((1, 1), float(number)), self.objectives[number - 1], gap=tol, state=number
        )


def run(problem, assignments, tol=1e-3, max_rounds=10, callback=None):
    remaining = iter(assignments)
    return alternate(
        problem,
        lambda components, state: next(remaining)._replace(state=state),
        np.zeros((1, 1)),
        tol=tol,
        max_rounds=max_rounds,
        monitor=Monitor(callback=callback),
    )


def test_a_repetition_after_a_loose_metric_is_not_the_end():
    """The metric is solved again, to the tolerance, before the repetition is believed."""
    problem = Scripted([8.0, 7.0])
    found = run(problem, [Assignment(FIRST, 10.0), Assignment(FIRST, 8.0), Assignment(FIRST, 7.0)])
    assert [call["tol"] for call in problem.calls] == [5e-2, 1e-3]
    assert problem.calls[1]["state"] == 1
    assert found.converged
    assert found.targets == FIRST
    assert half_steps(found.history).tolist() == [10.0, 8.0, 8.0, 7.0]
    assert [record["n_changed"] for record in found.history] == [3, 0]


def test_new_neighborhoods_after_tightening_go_on():
    problem = Scripted([8.0, 7.0, 5.0])
    assignments = [(FIRST, 10.0), (FIRST, 8.0), (SECOND, 6.0), (SECOND, 5.0)]
    found = run(problem, [Assignment(*pair) for pair in assignments])
    assert [call["targets"] for call in problem.calls] == [FIRST, FIRST, SECOND]
    assert found.converged
    assert found.targets == SECOND
    assert half_steps(found.history).tolist() == [10.0, 8.0, 8.0, 7.0, 6.0, 5.0]


def test_the_tolerance_follows_the_gain_of_the_assignment():
    problem = Scripted([100.0, 89.0, 88.0])
    assignments = [(FIRST, 200.0), (SECOND, 98.0), (FIRST, 88.911), (FIRST, 88.0)]
    run(problem, [Assignment(*pair) for pair in assignments])
    assert [call["tol"] for call in problem.calls] == pytest.approx([0.05, 0.01, 1e-3])


def test_a_loose_round_ends_when_iterations_add_little():
    """The third iteration adds 0.5 to a gain of 6: less than a fifth."""
    problem = Scripted([3.5, 3.0])
    problem.within = {1: [10.0, 4.0, 3.5, 3.4], 2: [3.1, 3.05, 3.01, 3.0]}
    run(problem, [Assignment(FIRST, 10.0), Assignment(FIRST, 3.5), Assignment(FIRST, 3.0)])
    assert [call["told"] for call in problem.calls] == [3, 4]


def test_the_last_round_is_never_ended_early():
    """It may be the first or a later one: nothing follows that would make up for it."""
    told = [10.0, 4.0, 3.5, 3.4, 3.39]
    alone = Scripted([3.39])
    alone.within = {1: told}
    run(alone, [Assignment(FIRST, 10.0)], max_rounds=1)
    assert alone.calls[0]["told"] == 5
    second = Scripted([9.0, 3.39])
    second.within = {2: told}
    run(second, [Assignment(FIRST, 12.0), Assignment(SECOND, 8.0)], max_rounds=2)
    assert [call["tol"] for call in second.calls] == [5e-2, 1e-3]
    assert second.calls[1]["told"] == 5


def test_a_round_that_ends_early_is_not_stopped_by_the_user():
    problem = Scripted([3.5, 3.0])
    problem.within = {1: [10.0, 4.0, 3.5, 3.4]}
    monitors = []
    plain = problem.solve

    def solve(targets, components, *, tol, state=None, monitor=None):
        monitors.append(monitor)
        return plain(targets, components, tol=tol, state=state, monitor=monitor)

    problem.solve = solve
    found = run(problem, [Assignment(FIRST, 10.0), Assignment(FIRST, 3.5), Assignment(FIRST, 3.0)])
    assert problem.calls[0]["told"] == 3
    assert not any(monitor.stopped for monitor in monitors)
    assert not found.stopped


class Proving(Scripted):
    """Its gaps close to ``tol``, as its solver sees them; proofs say something else."""

    def __init__(self, objectives, proved_gaps):
        super().__init__(objectives)
        self.proved_gaps = proved_gaps
        self.proofs = []

    def solve(self, targets, components, **options):
        found = super().solve(targets, components, **options)
        number = len(self.calls)

        def prove(metric, care):
            self.proofs.append(number)
            bound = found.objective * (1.0 - self.proved_gaps[number - 1])
            return Proof(found.objective, 0.0, bound=bound, work=np.inf)

        return replace(found, gap=1e-3, converged=True, prove=prove)


def test_only_a_metric_that_may_be_the_last_is_proved():
    problem = Proving([8.0, 6.0, 5.0], [1e-4] * 3)
    found = run(
        problem,
        [
            Assignment(FIRST, 10.0),
            Assignment(SECOND, 7.0),
            Assignment(FIRST, 5.5),
            Assignment(FIRST, 5.0),
        ],
    )
    assert problem.proofs == [3]
    assert found.converged
    assert found.gap == pytest.approx(1e-4)


def test_a_repetition_is_not_the_end_where_less_is_proved_than_was_seen():
    problem = Proving([8.0, 7.0], [0.5, 1e-4])
    found = run(problem, [Assignment(FIRST, 10.0), Assignment(FIRST, 8.0), Assignment(FIRST, 7.0)])
    assert problem.proofs == [1, 2]
    assert [call["tol"] for call in problem.calls] == [5e-2, 1e-3]
    assert found.converged and found.objective == 7.0


def test_an_objective_of_zero_is_replaced_by_what_is_proved():
    """A solver whose rounding is larger than the objective sees zero."""
    problem = Scripted([0.0, 2.0])
    solve = problem.solve

    def rounded(*args, **options):
        found = solve(*args, **options)
        return replace(found, prove=lambda metric, care: Proof(3.0 - len(problem.calls), 0.0))

    problem.solve = rounded
    found = run(problem, [Assignment(FIRST, 10.0), Assignment(FIRST, 2.0), Assignment(FIRST, 1.0)])
    assert half_steps(found.history)[:2].tolist() == [10.0, 2.0]
    assert_never_rises(found.history)


def test_a_worse_metric_is_not_taken():
    problem = Scripted([8.0, 9.0])
    found = run(problem, [Assignment(FIRST, 10.0), Assignment(SECOND, 7.0)], max_rounds=2)
    assert found.objective == 7.0
    np.testing.assert_array_equal(found.components, [[1.0]])
    assert half_steps(found.history).tolist() == [10.0, 8.0, 7.0, 7.0]


def test_the_last_round_is_solved_to_the_tolerance():
    problem = Scripted([8.0])
    found = run(problem, [Assignment(FIRST, 10.0)], max_rounds=1)
    assert problem.calls[0]["tol"] == 1e-3
    assert not found.converged


def test_other_neighborhoods_of_the_same_cost_are_a_repetition():
    """Ties: without a gain there is nothing to learn anew."""
    problem = Scripted([8.0, 8.0])
    found = run(
        problem, [Assignment(FIRST, 10.0), Assignment(SECOND, 8.0), Assignment(SECOND, 8.0)]
    )
    assert found.converged
    assert found.targets == FIRST


def test_a_callback_ends_the_rounds():
    problem = Scripted([8.0, 7.0])
    found = run(problem, [Assignment(FIRST, 10.0)], callback=lambda state: True)
    assert len(problem.calls) == 1
    assert not found.converged
    assert found.stopped
    assert found.objective == 8.0
