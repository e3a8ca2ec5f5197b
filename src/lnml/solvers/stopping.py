"""When to stop: the relative duality gap, and a rule for where it cannot close."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

STALL_ITERATIONS = 5
STALL_SHARE = 0.1


class Found(NamedTuple):
    """What a solver returns: the best metric found and the best bound proved."""

    components: np.ndarray
    objective: float
    bound: float
    gap: float
    converged: bool


def relative_gap(objective: float, bound: float, objective_at_zero: float) -> float:
    """Gap relative to the objective, or to a millionth of its value at M = 0.

    Separable data have an optimum near zero, where a plain ratio means nothing.
    """
    scale = max(objective, 1e-6 * objective_at_zero)
    return max(objective - bound, 0.0) / scale if scale > 0 else 0.0


def stalled(objectives: list[float], tol: float) -> bool:
    """Return whether five iterations gained less than tol / 10: the rule where no gap can close.

    That is so for a metric of low rank, whose optimum may lie above the bound
    (which holds for any rank), and where no dual point could be shown feasible.
    """
    if len(objectives) <= STALL_ITERATIONS:
        return False
    before, now = objectives[-1 - STALL_ITERATIONS], objectives[-1]
    return before - now <= STALL_SHARE * tol * abs(now)
