"""Algorithm 1 of the paper: neighbourhoods and metric in turn.

Neither step can raise the objective: the assignment is exact, and the metric
step keeps the metric it was given where it finds no better one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from lnml.neighborhoods.graph import Neighborhoods
from lnml.neighborhoods.learned import Assignment
from lnml.objectives.contract import MetricProblem, Solution
from lnml.solvers.monitor import FitState, Monitor

# A round is solved to half of what the last assignment gained, but at most this loosely.
LOOSEST_TOL = 5e-2
TOL_PER_GAIN = 0.5
# A loose round also ends once an iteration adds less than this share to what the round gained.
LEAST_SHARE = 0.2
# Relative differences below this are rounding, not progress.
ROUNDING = 1e-10
# A round solved to tol that lowers the objective by less than this share of tol is the last.
LEAST_GAIN = 0.1


class RoundRecord(TypedDict, total=False):
    """One round: neighbourhoods first, then the metric."""

    round: int
    objective_assigned: float
    objective: float
    bound: float | None
    gap: float | None
    n_changed: int
    neighborhood_sizes: dict[int, int]
    n_iter: int
    tol: float
    seconds: float


@dataclass
class Alternation:
    """Result of Algorithm 1: the last metric and the neighbourhoods it was learned from."""

    solution: Solution
    targets: Neighborhoods
    converged: bool
    history: list[RoundRecord] = field(default_factory=list)


def alternate(
    problem: MetricProblem,
    assign: Callable[[np.ndarray], Assignment],
    components: np.ndarray,
    *,
    tol: float,
    max_rounds: int,
    monitor: Monitor,
) -> Alternation:
    """Alternate until nothing changes: the neighbourhoods repeat, or a round gains too little.

    Both count only after a metric solved to ``tol``.

    Parameters
    ----------
    problem : MetricProblem
        The metric learner.
    assign : callable
        Maps components to the neighbourhoods of least cost at that metric.
    components : ndarray of shape (r, d)
        M0 of the paper, as components.
    tol : float
        Tolerance of the last metric; earlier rounds are solved as loosely as pays.
    max_rounds : int
        Most rounds.
    monitor : Monitor
        Receives one record per round.
    """
    assigned = assign(components)
    targets, changed = assigned.targets, assigned.targets.size
    solution = Solution(components, assigned.objective)
    state: Any = None
    loose, round_tol = True, max(tol, LOOSEST_TOL)
    for number in range(1, max_rounds + 1):
        if number == max_rounds:
            loose = False
        if not loose:
            round_tol = tol
        before, last = assigned.objective, solution.objective
        part = monitor.within(f"round {number}")
        if loose:
            part.callback = _Patience(before)
        solution = _metric_step(problem, targets, solution, before, round_tol, state, part)
        state = solution.state
        record = _record(number, before, solution, changed, targets, round_tol)
        if monitor.step(record, solution.components.copy):
            return Alternation(solution, targets, False, monitor.history)
        tight = not loose or (solution.gap is not None and solution.gap <= tol)
        too_little = last - solution.objective <= LEAST_GAIN * tol * abs(last)
        if too_little and tight:
            return Alternation(solution, targets, solution.converged, monitor.history)
        if number == max_rounds:
            break
        assigned = assign(solution.components)
        gain = (solution.objective - assigned.objective) / max(abs(solution.objective), 1e-300)
        changed = assigned.targets.n_changed(targets)
        if changed == 0 or gain <= ROUNDING:
            if tight:
                return Alternation(solution, targets, solution.converged, monitor.history)
            # The metric was solved loosely: tighten before believing the repetition.
            assigned, changed, loose = Assignment(targets, solution.objective), 0, False
            continue
        targets = assigned.targets
        loose = loose and not too_little
        round_tol = min(max(TOL_PER_GAIN * gain, tol), LOOSEST_TOL, round_tol)
    return Alternation(solution, targets, False, monitor.history)


class _Patience:
    """Callback that ends a round whose iterations no longer add much to its gain.

    The next assignment changes the problem anyway; the last rounds are solved to the end.
    """

    def __init__(self, objective: float) -> None:
        self.first = self.last = objective

    def __call__(self, state: FitState) -> bool:
        now = min(state.record["objective"], self.last)
        step, self.last = self.last - now, now
        return 0.0 < step <= LEAST_SHARE * (self.first - now)


def _metric_step(
    problem: MetricProblem,
    targets: Neighborhoods,
    last: Solution,
    objective: float,
    tol: float,
    state: Any,
    monitor: Monitor,
) -> Solution:
    """Solve for the metric; keep the last one where the solver does not improve on it."""
    found = problem.solve(targets, last.components, tol=tol, state=state, monitor=monitor)
    if not np.isfinite(found.objective):
        raise FloatingPointError(
            f"{type(problem).__name__}.solve returned an objective of {found.objective}: "
            f"check the scale of the data, or the problem's solver"
        )
    if found.objective > objective:
        found.components, found.objective = last.components, objective
    return found


def _record(
    number: int,
    before: float,
    solution: Solution,
    changed: int,
    targets: Neighborhoods,
    tol: float,
) -> RoundRecord:
    return {
        "round": number,
        "objective_assigned": before,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "n_changed": changed,
        "neighborhood_sizes": targets.size_counts(),
        "n_iter": len(solution.history),
        "tol": tol,
    }
