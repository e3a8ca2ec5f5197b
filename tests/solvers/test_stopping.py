"""Stopping rules, L-BFGS over a matrix, and the monitor."""

import numpy as np
import pytest

from lnml.core.monitor import Monitor
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.stopping import LittleGain, relative_gap, stalled


@pytest.mark.parametrize(
    "objective, bound, at_zero, gap",
    [
        (10.0, 9.0, 100.0, 0.1),
        (10.0, 10.5, 100.0, 0.0),
        (0.0, 0.0, 100.0, 0.0),
        (1e-5, 0.0, 100.0, 0.1),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_relative_gap(objective, bound, at_zero, gap):
    assert relative_gap(objective, bound, at_zero) == pytest.approx(gap)


def test_stalled_after_five_iterations_without_gain():
    assert not stalled([10.0] * 5, tol=1e-3)
    assert stalled([10.0] * 6, tol=1e-3)
    assert stalled([20.0] + [10.0] * 6, tol=1e-3)
    assert not stalled([10.002] + [10.0] * 5, tol=1e-3)
    assert stalled([10.0005] + [10.0] * 5, tol=1e-3)


def test_minimum_of_a_quadratic():
    target = np.arange(6.0).reshape(2, 3)
    shapes = []

    def function(components):
        shapes.append(components.shape)
        difference = components - target
        return float((difference**2).sum()), 2.0 * difference

    minimum = minimize_over_components(function, np.zeros((2, 3), dtype=np.float32), max_iter=50)
    np.testing.assert_allclose(minimum.components, target, atol=1e-8)
    assert minimum.value == pytest.approx(0.0, abs=1e-12)
    assert minimum.n_evaluations == len(shapes)
    assert set(shapes) == {(2, 3)}


def test_monitor_keeps_records_and_obeys_the_callback():
    seen = []

    def callback(state):
        seen.append(state)
        return state.record["iteration"] == 2

    monitor = Monitor("METHOD", callback=callback)
    components = np.eye(2)
    assert not monitor.step({"iteration": 1, "objective": 3.0}, lambda: components)
    assert not monitor.stopped
    assert monitor.step({"iteration": 2, "objective": 2.0}, lambda: components)
    assert monitor.stopped
    assert [record["iteration"] for record in monitor.history] == [1, 2]
    assert all(record["seconds"] >= 0.0 for record in monitor.history)
    assert seen[1].method == "METHOD"
    assert seen[1].components is components


def test_monitor_goes_on_unless_told_otherwise():
    for answer in (None, False, 1, "stop"):
        monitor = Monitor(callback=lambda state, answer=answer: answer)
        assert not monitor.step({}, lambda: np.eye(1))


def test_a_rule_ends_a_part_but_does_not_speak_for_the_user():
    monitor = Monitor(rule=lambda record: record["objective"] < 2.0)
    assert not monitor.step({"objective": 2.5}, lambda: np.eye(1))
    assert monitor.step({"objective": 1.5}, lambda: np.eye(1))
    assert not monitor.stopped


def test_little_gain():
    """After a gain of 6 a step of 1.3 is more than a fifth of all, one of 0.5 is less."""
    rule = LittleGain(10.0)
    assert not rule({"objective": 10.0})
    assert not rule({"objective": 4.0})
    assert not rule({"objective": 2.0})
    assert rule({"objective": 1.0})
    assert not rule({"objective": 1.5})


def test_nobody_looks_at_components_without_a_callback():
    assert not Monitor().step({"objective": 1.0}, lambda: pytest.fail("not asked for"))


def test_live_line(capsys):
    monitor = Monitor("METHOD", verbose=1)
    monitor.step({"iteration": 1, "objective": 3.25, "gap": None}, lambda: np.eye(1))
    part = monitor.within("round 2")
    part.step({"iteration": 7, "objective": 2.0, "gap": 0.01}, lambda: np.eye(1))
    monitor.close()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "METHOD · iteration 1 · objective 3.25 · " in shown.err
    assert "METHOD round 2 · iteration 7 · objective 2 · gap 1.0e-02" in shown.err
    assert shown.err.endswith("\n")
    assert len(monitor.history) == len(part.history) == 1
