"""The monitor: records, the live line, the user's callback and rules."""

import numpy as np
import pytest

from lnml.core.monitor import Monitor


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


@pytest.mark.parametrize("answer", [True, np.True_])
def test_truth_of_either_kind_stops(answer):
    monitor = Monitor(callback=lambda state: answer)
    assert monitor.step({}, lambda: np.eye(1))
    assert monitor.stopped is True
