"""Algorithm 1 of the paper: neighbourhoods and metric in turn.

Neither step can raise the objective: the assignment is exact, and the metric
step keeps the metric it was given where it finds no better one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.solution import Solution
from lnml.learning.targets import Assignment
from lnml.solvers.path import certified
from lnml.solvers.problem import ResumableProblem
from lnml.solvers.stopping import LittleGain

# A round is solved to half of what the last assignment gained, but at most this loosely.
LOOSEST_TOL = 5e-2
TOL_PER_GAIN = 0.5
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


def alternate(
    problem: ResumableProblem,
    assign: Callable[[np.ndarray, Any], Assignment],
    components: np.ndarray,
    *,
    tol: float,
    max_rounds: int,
    monitor: Monitor,
) -> Solution:
    """Alternate until nothing changes: the neighbourhoods repeat, or a round gains too little.

    Both count only after a metric solved to ``tol``. The solution has the history of the
    rounds and the last neighbourhoods.

    Parameters
    ----------
    problem : ResumableProblem
        The metric learner.
    assign : callable
        Maps components, and what the last step handed over, to the neighbourhoods of
        least cost at that metric.
    components : ndarray of shape (r, d)
        M0 of the paper, as components.
    tol : float
        Tolerance of the last metric; earlier rounds are solved as loosely as pays.
    max_rounds : int
        Most rounds.
    monitor : Monitor
        Receives one record per round.
    """
    assigned = assign(components, None)
    targets, changed = assigned.targets, assigned.targets.size
    solution, pace = Solution(components, assigned.objective), _Pace(tol)
    for number in range(1, max_rounds + 1):
        if number == max_rounds:
            pace.tighten()
        last = solution.objective
        part = monitor.within(f"round {number}", pace.rule(assigned.objective))
        solution = _metric_step(problem, assigned, solution.components, pace.tol, part)
        record = _record(number, assigned, solution, changed, pace.tol)
        if monitor.step(record, solution.components.copy):
            break
        too_little = last - solution.objective <= LEAST_GAIN * tol * abs(last)
        if too_little:
            solution = pace.proved(solution)
            if pace.is_tight(solution):
                return _ended(solution, targets, solution.converged, tol, monitor)
        if number == max_rounds:
            break
        assigned = assign(solution.components, solution.state)
        solution = replace(solution, state=assigned.state)
        gain = (solution.objective - assigned.objective) / max(abs(solution.objective), 1e-300)
        changed = assigned.targets.n_changed(targets)
        repeated = changed == 0 or gain <= ROUNDING
        if repeated:
            solution = pace.proved(solution)
            if pace.is_tight(solution):
                return _ended(solution, targets, solution.converged, tol, monitor)
        # The last task is let go of: its proof is not asked for any more.
        solution = replace(solution, prove=None)
        if repeated:
            # The metric was solved loosely: tighten before believing the repetition.
            pace.tighten()
            assigned, changed = Assignment(targets, solution.objective, assigned.state), 0
            continue
        targets = assigned.targets
        pace.follow(gain, too_little)
    return _ended(solution, targets, False, tol, monitor)


class _Pace:
    """How exactly the next round is solved: as loosely as pays, and to ``goal`` in the end."""

    def __init__(self, goal: float) -> None:
        self.goal = goal
        self.tol = max(goal, LOOSEST_TOL)
        self.loose = True

    def tighten(self) -> None:
        """Solve all rounds from now on to the goal."""
        self.loose, self.tol = False, self.goal

    def follow(self, gain: float, too_little: bool) -> None:
        """Solve the next round in proportion to what the last assignment gained."""
        if too_little:
            self.tighten()
        self.tol = min(max(TOL_PER_GAIN * gain, self.goal), LOOSEST_TOL, self.tol)

    def rule(self, objective: float) -> LittleGain | None:
        """Return the rule that ends a loose round early: the next assignment changes it anyway."""
        return LittleGain(objective) if self.loose else None

    def proved(self, solution: Solution) -> Solution:
        """Return a round's metric with its proof, if it may be the last one."""
        return certified(solution, self.goal) if self.is_tight(solution) else solution

    def is_tight(self, solution: Solution) -> bool:
        """Whether a round's metric is as exact as the last one must be."""
        return not self.loose or (solution.gap is not None and solution.gap <= self.goal)


def _ended(
    solution: Solution, targets: Neighborhoods, converged: bool, tol: float, monitor: Monitor
) -> Solution:
    """Return the last metric, proved, with what is known about all rounds."""
    proved = certified(solution, tol)
    return replace(
        proved,
        targets=targets,
        converged=converged and proved.converged,
        history=monitor.history,
        stopped=monitor.stopped,
    )


def _metric_step(
    problem: ResumableProblem,
    assigned: Assignment,
    components: np.ndarray,
    tol: float,
    monitor: Monitor,
) -> Solution:
    """Solve for the metric; keep the last one where the solver does not improve on it."""
    found = problem.solve(
        assigned.targets, components, tol=tol, state=assigned.state, monitor=monitor
    )
    if found.objective == 0.0:
        # That may be rounding alone, and the next one would be higher.
        found = certified(found, tol)
    if found.objective > assigned.objective:
        # What the dual point proves holds for the old metric, too.
        return replace(found, components=components, objective=assigned.objective, proof=None)
    return found


def _record(
    number: int, assigned: Assignment, solution: Solution, changed: int, tol: float
) -> RoundRecord:
    return {
        "round": number,
        "objective_assigned": assigned.objective,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "n_changed": changed,
        "neighborhood_sizes": assigned.targets.size_counts(),
        "n_iter": len(solution.history),
        "tol": tol,
    }
