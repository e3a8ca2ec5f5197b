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
from lnml.core.trail import Trail
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
    ``n_evaluations`` counts passes over all pairs; the last one is remembered.
    """

    objective_at_zero: float
    n_evaluations: int
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


class _Progress:
    """The best metric so far, what is proved about it, and what to report."""

    def __init__(self, task: SoftmaxTask, components: np.ndarray, run: Run) -> None:
        self.task, self.run = task, run
        self.seen = task.n_evaluations
        self.best = components
        self.objective = max(task.value_and_gradient(components)[0], 0.0)
        self.dual = _DualBound(task.keep_dual, task.ideal)
        self.bound, self.gap = 0.0, np.inf
        self.iteration = 0
        # Whether somebody asked to stop.
        self.stopped = False
        # After each iteration that the stall rule looks at.
        self.objectives = [self.objective]

    def take(self, components: np.ndarray) -> bool:
        """Take the metric that an iteration ended at; return whether its own point is feasible."""
        value = max(self.task.value_and_gradient(components)[0], 0.0)
        if value < self.objective:
            self.best, self.objective = components, value
        self.objectives.append(self.objective)
        return self.prove(components)

    def prove(self, components: np.ndarray) -> bool:
        """Raise the bound by what a metric proves; return whether its own point is feasible."""
        feasible = self.dual.add(self.task.dual_point(components), components)
        # Above the objective there is only rounding.
        self.bound = min(self.dual.bound, self.objective)
        self.gap = relative_gap(self.objective, self.bound, self.task.objective_at_zero)
        return feasible

    def report(self) -> bool:
        """Report an iteration; return whether it is the last one."""
        self.iteration += 1
        record = Record(
            iteration=self.iteration,
            objective=self.objective,
            bound=self.bound,
            gap=self.gap,
            n_evaluations=self.task.n_evaluations - self.seen,
        )
        self.seen = self.task.n_evaluations
        self.stopped = self.run.report(self.best, record)
        return self.stopped or self.closed or self.at_rest or self.iteration >= self.run.max_iter

    @property
    def closed(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self.gap <= self.run.tol

    @property
    def at_rest(self) -> bool:
        """Whether the last iterations gained too little."""
        return stalled(self.objectives, self.run.tol)

    def first_barrier(self) -> float:
        """Barrier at the beginning of a path; none for a metric of low rank."""
        rank, dimension = self.best.shape
        return FIRST_BARRIER * self.objective / dimension if rank == dimension else 0.0

    def last_barrier(self) -> float:
        """Barrier whose own gap (barrier * dimension) is a share of the tolerated one."""
        objective = max(self.objective, 1e-6 * self.task.objective_at_zero)
        return BARRIER_SHARE * self.run.tol * objective / self.best.shape[1]

    def solution(self) -> Solution:
        """Return what was found."""
        converged = self.closed or self.at_rest
        return Solution(self.best, self.objective, self.bound, self.gap, converged)


def solve_softmax(task: SoftmaxTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise a softmax objective to a relative duality gap of ``run.tol``.

    An iteration is a descent by L-BFGS at one barrier. A warm start begins at the
    end of the path.
    """
    if components.shape[0] == components.shape[1]:
        components = _well_posed(components)
    progress = _Progress(task, components, run)
    barrier = progress.first_barrier()
    if run.warm:
        _walk(progress, min(barrier, progress.last_barrier()))
        return _walked_from_the_start(progress)
    _walk(progress, barrier)
    return progress.solution()


def follow_softmax(task: SoftmaxTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise the next softmax objective of a path to a relative duality gap of ``run.tol``.

    ``run.trail`` holds metric and curvature of the objective before. The barrier is the last
    one throughout. While nothing is proved, iterations get longer, except where a rule ends
    the solve early.
    """
    trail, steps, loose = run.trail, PATH_STEPS, run.monitor.rule is not None
    assert trail is not None
    trail.move_to(_well_posed(components))
    progress = _Progress(task, trail.components, run)
    progress.prove(trail.components)
    while True:
        if not progress.closed:
            _follow(progress, trail, steps)
            progress.take(trail.components)
        if progress.report():
            break
        if progress.bound == 0.0 and not loose and steps < MOST_STEPS:
            steps *= 2
            # Only the longest iterations can tell that there is nothing to gain.
            progress.objectives = [progress.objective]
    # Where the longest iterations prove nothing, the whole path does not either, as measured in
    # docs/performance.md.
    hopeless = loose or progress.bound == 0.0
    found = progress.solution() if hopeless else _walked_from_the_start(progress)
    trail.move_to(progress.best)
    return found


def _walked_from_the_start(progress: _Progress) -> Solution:
    """Walk the whole path once where its end proved nothing."""
    unproved = progress.at_rest and not (progress.closed or progress.stopped)
    if unproved and progress.iteration < progress.run.max_iter:
        progress.objectives = [progress.objective]
        _walk(progress, progress.first_barrier())
    return progress.solution()


def _walk(progress: _Progress, barrier: float) -> None:
    """Walk the barrier path from the best metric."""
    components, steps = progress.best, STEPS
    full_rank = components.shape[0] == components.shape[1]
    while True:
        components = _descend(progress, components, barrier, steps)
        on_path = progress.take(components)
        if progress.report():
            return
        if not on_path and full_rank and steps < MOST_STEPS:
            # Not yet at this barrier's minimum: lowering it now would lose the path.
            steps *= 2
            continue
        barrier = min(barrier, max(BARRIER_DECREASE * barrier, progress.last_barrier()))


def _descend(progress: _Progress, components: np.ndarray, barrier: float, steps: int) -> np.ndarray:
    """Run L-BFGS at one barrier; return where it ended."""
    try:
        minimum = minimize_over_components(
            partial(_with_barrier, progress.task, barrier, progress.run.tol),
            components,
            max_iter=steps,
            value_tol=0.1 * progress.task.precision,
            memory=MEMORY,
        )
    except _NearZero as found:
        return found.components
    return minimum.components


def _follow(progress: _Progress, trail: Trail, steps: int) -> None:
    """Move a trail at the last barrier."""
    task, tol = progress.task, progress.run.tol
    function = partial(_with_barrier, task, progress.last_barrier(), tol)
    try:
        descend(function, trail, max_iter=steps, value_tol=0.1 * task.precision)
    except _NearZero as found:
        trail.move_to(found.components)


def _with_barrier(
    task: SoftmaxTask, barrier: float, tol: float, components: np.ndarray
) -> tuple[float, np.ndarray]:
    """Value and gradient of an objective with its barrier.

    Separable data have an infimum of zero at an infinite metric: stop on the way.
    """
    value, gradient = task.value_and_gradient(components)
    if value <= 0.5 * tol * 1e-6 * task.objective_at_zero:
        raise _NearZero(components.copy())
    return _add_barrier(value, gradient, barrier, components, task.ceiling)


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
