"""Ratio problems, the same at every scale of the metric, with a duality gap.

L-BFGS lowers the ratio; the slopes of the concave sum in its denominator give a
lower bound that holds for all metrics, and the directions in which the metric
lacks something. The derivation is in docs/mmc.md.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lnml.core.monitor import Record
from lnml.core.solution import Certificate, Solution
from lnml.solvers.descent import begin, take_step
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.run import Run
from lnml.solvers.saddles import beside, leave_saddle
from lnml.solvers.stopping import relative_gap, stalled

STEPS = 10
# Relative decrease of the objective that is rounding.
ROUNDING = 2e-15
# On a path of problems the start is good. Chosen on the data sets of benchmarks/trace_path.py.
PATH_STEPS = 5
PATH_ESCAPE = 1e-2


class RatioTask(Protocol):
    """What the solver asks of an objective in float64, in conditioned coordinates.

    ``collapsed`` says that the start has a ratio of zero, the least there is.
    """

    @property
    def collapsed(self) -> bool:
        """Whether the start is an optimum."""

    def admissible(self, components: np.ndarray) -> np.ndarray:
        """Return components of the same metric, in the form the task works with."""

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient (r x d)."""

    def keep_dual(self, components: np.ndarray) -> None:
        """Keep a metric whose tangents prove the best bound so far."""

    def certify(self, components: np.ndarray) -> Certificate:
        """Objective and a lower bound over all metrics."""


def solve_ratio(task: RatioTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise a ratio to a relative duality gap of ``run.tol``.

    An iteration is a descent by L-BFGS and a certificate. A warm start is like any
    other.
    """
    if task.collapsed:
        record = Record(iteration=1, objective=0.0, bound=0.0, gap=0.0, n_evaluations=1)
        run.report(components, record)
        return Solution(components, 0.0, 0.0, 0.0, True)
    full_rank = components.shape[0] >= components.shape[1]
    seen = task.certify(components)
    best, objective, bound = components, seen.objective, seen.bound
    task.keep_dual(components)
    gap, n_evaluations = relative_gap(objective, bound, 0.0), 1
    objectives, converged = [objective], gap <= run.tol
    for iteration in range(1, run.max_iter + 1):
        if not converged:
            components = task.admissible(leave_saddle(components, seen.directions(), 0.0))
            minimum = minimize_over_components(
                task.value_and_gradient,
                components,
                max_iter=STEPS,
                value_tol=ROUNDING,
            )
            components, n_evaluations = minimum.components, minimum.n_evaluations + 1
            seen = task.certify(components)
            if seen.objective < objective:
                best, objective = components, seen.objective
            if seen.bound > bound:
                bound = seen.bound
                task.keep_dual(components)
            gap = relative_gap(objective, bound, 0.0)
            objectives.append(objective)
            converged = gap <= run.tol or (not full_rank and stalled(objectives, run.tol))
        record = Record(
            iteration=iteration,
            objective=objective,
            bound=bound,
            gap=gap,
            n_evaluations=n_evaluations,
        )
        if run.report(best, record) or converged:
            break
    return Solution(best, objective, bound, gap, converged)


def follow_ratio(task: RatioTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise the next ratio of a path to a relative duality gap of ``run.tol``.

    ``run.trail`` holds metric and curvature of the ratio before. A certificate needs no more
    than a gradient, so that every step is certified.
    """
    trail, best = run.trail, components
    assert trail is not None
    trail.move_to(components)
    value = begin(task.value_and_gradient, trail)
    seen = task.certify(components)
    objective, bound, n_evaluations = seen.objective, seen.bound, 1
    task.keep_dual(components)
    gap = relative_gap(objective, bound, 0.0)
    for iteration in range(1, run.max_iter + 1):
        for _ in range(PATH_STEPS):
            if gap <= run.tol:
                break
            reached = take_step(task.value_and_gradient, trail, value)
            value = reached.value
            n_evaluations += reached.n_evaluations
            seen = task.certify(trail.components)
            if seen.objective < objective:
                best, objective = trail.components, seen.objective
            if seen.bound > bound:
                bound = seen.bound
                task.keep_dual(trail.components)
            gap = relative_gap(objective, bound, 0.0)
        record = Record(
            iteration=iteration,
            objective=objective,
            bound=bound,
            gap=gap,
            n_evaluations=n_evaluations,
        )
        if run.report(best, record) or gap <= run.tol:
            break
        n_evaluations, at = 0, trail.components
        moved = leave_saddle(at, seen.directions(), 0.0, share=PATH_ESCAPE)
        if moved is not at:
            trail.move_to(beside(at, task.admissible(moved)))
            value, n_evaluations = begin(task.value_and_gradient, trail), 1
    trail.move_to(best)
    return Solution(best, objective, bound, gap, gap <= run.tol)
