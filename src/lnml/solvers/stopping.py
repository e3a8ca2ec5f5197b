"""Stopping rules: the relative duality gap, stalled progress, and little gain in a loose round."""

from __future__ import annotations

from typing import Any

from lnml.objectives.base import FLOOR_SHARE

STALL_ITERATIONS = 5
STALL_SHARE = 0.1
# An iteration that adds less than this share to what was gained before it adds little.
LEAST_SHARE = 0.2


def relative_gap(objective: float, bound: float, objective_at_zero: float) -> float:
    """Gap relative to the objective, or to a millionth of its value at M = 0."""
    scale = max(objective, FLOOR_SHARE * objective_at_zero)
    return max(objective - bound, 0.0) / scale if scale > 0 else 0.0


def stalled(objectives: list[float], tol: float) -> bool:
    """Return whether five iterations gained less than tol / 10 of the objective.

    This rule ends fits whose gap may never close: those of a metric of low rank,
    whose optimum may lie above the bound (which holds for any rank), and those
    for which no feasible dual point was found.
    """
    if len(objectives) <= STALL_ITERATIONS:
        return False
    before, now = objectives[-1 - STALL_ITERATIONS], objectives[-1]
    return before - now <= STALL_SHARE * tol * abs(now)


class LittleGain:
    """Stopping rule: the last iteration added little to what was gained since the start.

    For a solve whose problem will change anyway; see :class:`lnml.core.monitor.Monitor`.

    Parameters
    ----------
    objective : float
        The objective at the start.
    """

    def __init__(self, objective: float) -> None:
        self.first = self.last = objective

    def __call__(self, record: Any) -> bool:
        """Take a record; return True if the solve should end."""
        now = min(record["objective"], self.last)
        step, self.last = self.last - now, now
        return 0.0 < step <= LEAST_SHARE * (self.first - now)
