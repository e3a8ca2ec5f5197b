"""Softmax problems solved along a barrier path, with a duality gap.

A small barrier -eps log det M keeps the gradient matrix G = eps M^-1 positive
definite at each minimum, and a positive semidefinite G is exactly what makes
the model's own distribution dual feasible. The derivation is in docs/mcml.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from lnml.core.monitor import Record
from lnml.core.solution import DualPoint, Solution
from lnml.solvers.descent import descend
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.run import Run
from lnml.solvers.stopping import relative_gap, stalled

STEPS = 40
MOST_STEPS = 160
MEMORY = 40
FIRST_BARRIER = 0.1
BARRIER_DECREASE = 0.1
# Share of the tolerated gap that the barrier itself may take.
BARRIER_SHARE = 0.3
# Steps of an iteration on a path of problems, where the start is good.
PATH_STEPS = 10


class SoftmaxTask(Protocol):
    """What the solver asks of an objective, in conditioned coordinates.

    ``ceiling`` is the inverse of the largest metric whose distances can still be
    computed, d x d. ``ideal`` is a dual point that is strictly feasible, if one is known.
    """

    objective_at_zero: float
    precision: float
    ceiling: np.ndarray
    ideal: DualPoint | None

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective (its rounding counted in) and its gradient."""

    def dual_point(self, components: np.ndarray) -> DualPoint:
        """Return the model's own distribution over partners as a dual point.

        Its value is a bound if its matrix (d x d) is positive semidefinite.
        """

    def keep_dual(self, components: list[np.ndarray | None], share: float) -> None:
        """Keep the metrics of one dual point, or of a mixture with a share of the second.

        None stands for the ideal point.
        """


class _NearZero(Exception):
    """The objective, never negative, is as near zero as was asked for."""

    def __init__(self, components: np.ndarray) -> None:
        self.components = components


class _DualBound:
    """The best bound so far, and the last dual point that proved its own value.

    ``keep`` receives metrics and the share of the second one's point whenever the bound rises.
    ``ideal`` is a point that is known to be strictly feasible, or None.
    """

    def __init__(
        self, keep: Callable[[list[np.ndarray | None], float], None], ideal: DualPoint | None
    ) -> None:
        self.bound = 0.0
        self.keep = keep
        self.ideal = ideal
        self.feasible: tuple[DualPoint, np.ndarray] | None = None

    def add(self, point: DualPoint, components: np.ndarray) -> bool:
        """Raise the bound; return whether the point is feasible itself."""
        if float(np.linalg.eigvalsh(point.matrix)[0]) > 0.0:
            self.feasible = point, components
            self._raise(point.value, [components], 0.0)
            return True
        if self.feasible is not None:
            known, at = self.feasible
            value, share = _mixed_bound(point, known)
            self._raise(value, [components, at], share)
        if self.ideal is not None:
            value, share = _mixed_bound(point, self.ideal)
            self._raise(value, [components, None], share)
        return False

    def _raise(self, value: float, components: list[np.ndarray | None], share: float) -> None:
        if value > self.bound:
            self.bound = value
            self.keep(components, share)


def _mixed_bound(point: DualPoint, feasible: DualPoint) -> tuple[float, float]:
    """Bound of a dual point that is not feasible, mixed with one that is, and the share.

    Entropy is concave and the constraint linear, so a share of a strictly
    feasible distribution that makes the mixture feasible also gives a bound.
    """
    shortfall = -float(eigh(point.matrix, feasible.matrix, eigvals_only=True)[0])
    share = shortfall / (1.0 + shortfall)
    # A strict excess over the share absorbs the rounding of the eigenvalue.
    share = min(1.0, share * (1.0 + 1e-6) + 1e-12)
    return (1.0 - share) * point.value + share * feasible.value, share


def solve_softmax(task: SoftmaxTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise a softmax objective to a relative duality gap of ``run.tol``.

    An iteration is a descent by L-BFGS at one barrier. A warm start begins at the
    end of the path.
    """
    rank, dimension = components.shape
    full_rank, tol, warm = rank == dimension, run.tol, run.warm
    if full_rank:
        components = _well_posed(components)
    objective = max(task.value_and_gradient(components)[0], 0.0)
    best, dual = components, _DualBound(task.keep_dual, task.ideal)
    barrier = FIRST_BARRIER * objective / dimension if full_rank else 0.0
    if warm:
        barrier = min(barrier, _last_barrier(task, objective, tol, dimension))
    objectives, steps = [objective], STEPS
    bound, gap, converged = 0.0, np.inf, False
    for iteration in range(1, run.max_iter + 1):
        components, n_evaluations = _descend(task, components, barrier, steps, tol)
        value = max(task.value_and_gradient(components)[0], 0.0)
        if value < objective:
            best, objective = components, value
        on_path = dual.add(task.dual_point(components), components)
        # Above the objective there is only rounding.
        bound = min(dual.bound, objective)
        gap = relative_gap(objective, bound, task.objective_at_zero)
        objectives.append(objective)
        at_rest = stalled(objectives, tol)
        converged = gap <= tol or (at_rest and not warm)
        record = Record(
            iteration=iteration,
            objective=objective,
            bound=bound,
            gap=gap,
            n_evaluations=n_evaluations + 1,
        )
        if run.report(best, record) or converged:
            break
        if at_rest:
            # The end of the path proved nothing: walk it from the start, once.
            warm, steps, objectives = False, STEPS, [objective]
            barrier = FIRST_BARRIER * objective / dimension if full_rank else 0.0
            continue
        if not on_path and full_rank and steps < MOST_STEPS:
            # Not yet at this barrier's minimum: lowering it now would lose the path.
            steps *= 2
            continue
        last = _last_barrier(task, objective, tol, dimension)
        barrier = min(barrier, max(BARRIER_DECREASE * barrier, last))
    return Solution(best, objective, bound, gap, converged)


def follow_softmax(task: SoftmaxTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise the next softmax objective of a path to a relative duality gap of ``run.tol``.

    ``run.trail`` holds metric and curvature of the objective before. The barrier is the last
    one throughout. If five iterations gain nothing, the solve ends without a proof.
    """
    trail, dual = run.trail, _DualBound(task.keep_dual, task.ideal)
    assert trail is not None
    best = trail.components = _well_posed(components)
    objective = max(task.value_and_gradient(best)[0], 0.0)
    dual.add(task.dual_point(best), best)
    bound = min(dual.bound, objective)
    gap = relative_gap(objective, bound, task.objective_at_zero)
    objectives, n_evaluations = [objective], 2
    for iteration in range(1, run.max_iter + 1):
        if gap > run.tol:
            barrier = _last_barrier(task, objective, run.tol, components.shape[1])
            function = partial(_with_barrier, task, barrier)
            _, more = descend(function, trail, max_iter=PATH_STEPS, value_tol=0.1 * task.precision)
            value = max(task.value_and_gradient(trail.components)[0], 0.0)
            n_evaluations += more + 1
            if value < objective:
                best, objective = trail.components, value
            dual.add(task.dual_point(trail.components), trail.components)
            bound = min(dual.bound, objective)
            gap = relative_gap(objective, bound, task.objective_at_zero)
            objectives.append(objective)
        record = Record(
            iteration=iteration,
            objective=objective,
            bound=bound,
            gap=gap,
            n_evaluations=n_evaluations,
        )
        n_evaluations = 0
        if run.report(best, record) or gap <= run.tol or stalled(objectives, run.tol):
            break
    trail.components = best
    return Solution(best, objective, bound, gap, gap <= run.tol)


def _with_barrier(
    task: SoftmaxTask, barrier: float, components: np.ndarray
) -> tuple[float, np.ndarray]:
    """Value and gradient of an objective with its barrier."""
    value, gradient = task.value_and_gradient(components)
    return _add_barrier(value, gradient, barrier, components, task.ceiling)


def _descend(
    task: SoftmaxTask, components: np.ndarray, barrier: float, steps: int, tol: float
) -> tuple[np.ndarray, int]:
    """Run L-BFGS at one barrier; return components and number of evaluations.

    Separable data have an infimum of zero at an infinite metric: stop on the way.
    """
    enough = 0.5 * tol * 1e-6 * task.objective_at_zero
    n_evaluations = 0

    def function(trial: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal n_evaluations
        n_evaluations += 1
        value, gradient = task.value_and_gradient(trial)
        if value <= enough:
            raise _NearZero(trial.copy())
        return _add_barrier(value, gradient, barrier, trial, task.ceiling)

    try:
        minimum = minimize_over_components(
            function,
            components,
            max_iter=steps,
            value_tol=0.1 * task.precision,
            memory=MEMORY,
        )
    except _NearZero as found:
        return found.components, n_evaluations
    return minimum.components, n_evaluations


def _last_barrier(task: SoftmaxTask, objective: float, tol: float, dimension: int) -> float:
    """Barrier whose own gap (barrier * dimension) is a share of the tolerated one."""
    return BARRIER_SHARE * tol * max(objective, 1e-6 * task.objective_at_zero) / dimension


def _add_barrier(
    value: float,
    gradient: np.ndarray,
    barrier: float,
    components: np.ndarray,
    ceiling: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Subtract barrier * (log det M - <ceiling, M>) from a value, and its gradient.

    The second term matters where nothing else holds the metric back: there it
    ends at the inverse of the ceiling and not at infinity.
    """
    if barrier == 0.0:
        return value, gradient
    sign, log_determinant = np.linalg.slogdet(components)
    if sign == 0:
        return np.inf, gradient
    capped = components @ ceiling
    value += barrier * (float(np.vdot(capped, components)) - 2.0 * log_determinant)
    return value, gradient + 2.0 * barrier * (capped - np.linalg.inv(components).T)


def _well_posed(components: np.ndarray) -> np.ndarray:
    """Return square components with no zero singular value, so that log det exists."""
    left, values, right = np.linalg.svd(components)
    return (left * np.maximum(values, 1e-6 * max(values[0], 1e-300))) @ right
