"""Stopping rules."""

import pytest

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


def test_little_gain():
    """After a gain of 6 a step of 1.3 is more than a fifth of all, one of 0.5 is less."""
    rule = LittleGain(10.0)
    assert not rule({"objective": 10.0})
    assert not rule({"objective": 4.0})
    assert not rule({"objective": 2.0})
    assert rule({"objective": 1.0})
    assert not rule({"objective": 1.5})
