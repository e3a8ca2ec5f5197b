"""Smooth problems that are not convex: L-BFGS to a stationary point, without a proof."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lnml.core.monitor import Record
from lnml.core.solution import Solution
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.run import Run

# Past steps that L-BFGS keeps.
MEMORY = 20


class SmoothTask(Protocol):
    """What the solver asks of an objective, in conditioned coordinates.

    ``precision`` is the relative accuracy of its values; a value of ``rounding`` or
    less is the least there can be.
    """

    precision: float
    rounding: float

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient (r x d)."""


def solve_smooth(task: SmoothTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise until a step gains less than ``run.tol`` of the objective at the start.

    An iteration is a step of L-BFGS. A warm start is like any other.
    """

    def on_step(found: np.ndarray, value: float) -> bool:
        iteration = len(run.monitor.history) + 1
        # Below its rounding a value has no slope that a step could follow.
        return run.report(found, Record(iteration=iteration, objective=value)) or (
            value <= task.rounding
        )

    start = task.value_and_gradient(components)[0]
    if start <= task.rounding:
        on_step(components, start)
        return Solution(components, start, converged=True)

    descent = minimize_over_components(
        task.value_and_gradient,
        components,
        max_iter=run.max_iter,
        value_tol=max(run.tol, task.precision),
        memory=MEMORY,
        on_step=on_step,
    )
    converged = descent.converged or descent.value <= task.rounding
    return Solution(descent.components, descent.value, converged=converged)
