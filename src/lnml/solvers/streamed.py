"""Hinge problems whose impostors do not fit into memory, with a duality gap.

There is no room for multipliers either, so the smoothing falls from iteration to iteration.
Each evaluation looks at all triplets. The derivation is in docs/lmnn.md.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np

from lnml.core.monitor import Record
from lnml.core.solution import Certificate, Solution
from lnml.objectives.triplet_task import Smoothed
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.run import Run
from lnml.solvers.saddles import leave_saddle
from lnml.solvers.stopping import relative_gap, stalled

# How the smoothing falls from iteration to iteration. The gap falls like its square.
FALL = 0.4
LEAST_SMOOTHING = 1e-4
WARM_SMOOTHING = 0.03
STEPS = 30
# L-BFGS stops where a step gains less than this times the square of the tolerance: what slopes
# prove is off by the root of what the metric is off.
VALUE_SHARE = 0.01
# If that proved nothing new, it goes on to a smaller gain.
TIGHTER = 0.01


class StreamedTask(Protocol):
    """What is asked of an objective, in conditioned coordinates.

    ``precision`` is the relative accuracy of its values.
    """

    objective_at_zero: float
    precision: float

    def smoothed(self, components: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """Value and gradient of the smoothed problem."""

    def sampled(self) -> Smoothed | None:
        """Return the same over a sample of rows; None if there are few rows."""

    def evaluate(self, components: np.ndarray, smoothing: float) -> Certificate:
        """Exact objective and dual bound."""

    def keep_dual(self, components: np.ndarray, smoothing: float, seen: Certificate) -> None:
        """Keep where the slopes of the bound were."""


def solve_streamed(
    task: StreamedTask, components: np.ndarray, run: Run, smoothing: float, done: int = 0
) -> Solution:
    """Minimise a hinge objective to a relative duality gap of ``run.tol``, without multipliers.

    Parameters
    ----------
    task : StreamedTask
        The problem.
    components : ndarray of shape (r, e)
        The start.
    run : Run
        Tolerance and limits.
    smoothing : float
        The first smoothing, if the start is not the end of a similar solve.
    done : int
        Iterations that were made before.
    """
    full_rank, scale = components.shape[0] >= components.shape[1], float(np.mean(components**2))
    value_tol = VALUE_SHARE * run.tol**2
    if run.warm:
        smoothing = WARM_SMOOTHING
    elif (sampled := task.sampled()) is not None:
        # Most of the way is made with a few rows, for all of which an evaluation takes long.
        coarse = minimize_over_components(
            lambda at: sampled(at, smoothing),
            components,
            max_iter=STEPS,
            value_tol=value_tol,
        )
        components, smoothing = coarse.components, FALL * smoothing
    seen = task.evaluate(components, smoothing)
    best, objective, bound = components, seen.objective, max(seen.bound, 0.0)
    task.keep_dual(components, smoothing, seen)
    gap, converged = relative_gap(objective, bound, task.objective_at_zero), False
    objectives = [objective]
    for iteration in range(done + 1, run.max_iter + 1):
        minimum = minimize_over_components(
            partial(task.smoothed, smoothing=smoothing),
            components,
            max_iter=STEPS,
            value_tol=max(0.1 * task.precision, value_tol),
        )
        components = minimum.components
        seen = task.evaluate(components, smoothing)
        if seen.objective < objective:
            best, objective = components, seen.objective
        better = seen.bound > bound
        if better:
            bound = seen.bound
            task.keep_dual(components, smoothing, seen)
        gap = relative_gap(objective, bound, task.objective_at_zero)
        objectives.append(objective)
        # Without multipliers a gap may stay open: then more iterations do not help.
        at_end = stalled(objectives, run.tol)
        converged = gap <= run.tol or (not full_rank and at_end)
        record = Record(
            iteration=iteration,
            objective=objective,
            bound=bound,
            gap=gap,
            n_active=seen.n_active,
            # The start of the fit was evaluated, too.
            n_evaluations=minimum.n_evaluations + 1 + (iteration == done + 1),
        )
        if run.report(best, record) or converged or at_end:
            break
        if better:
            smoothing = max(FALL * smoothing, LEAST_SMOOTHING)
        else:
            # The slopes are those of a metric that is not near enough to the minimum.
            value_tol *= TIGHTER
        components = leave_saddle(components, seen.directions(), scale, seen.room)
    return Solution(best, objective, bound, gap, converged, streamed=True)
