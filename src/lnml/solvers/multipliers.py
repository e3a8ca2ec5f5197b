"""Hinge problems solved by the method of multipliers, with a duality gap.

The hinge of every triplet is smoothed around its last slope; L-BFGS lowers the
smoothed problem over a working set; a full search then gives the exact
objective, the slopes give a dual bound and become the next multipliers. The
derivation is in docs/lmnn.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

from lnml.core.monitor import Record
from lnml.core.solution import Certificate, Solution
from lnml.core.trail import Trail
from lnml.objectives.triplet_task import MARGIN, SMOOTHING
from lnml.solvers.descent import descend
from lnml.solvers.run import Run
from lnml.solvers.saddles import beside, leave_saddle
from lnml.solvers.stopping import relative_gap, stalled
from lnml.solvers.streamed import StreamedTask, solve_streamed

# Where no curvature is kept, hinges are smoother at first: in a metric of low rank there are fewer
# minima that are not the best, and in columns of very different scales rounding says less.
FIRST_SMOOTHING = 0.3
# Steps of the first iterations, where the metric or the multipliers are far off, and of the others.
COARSE_STEPS = (16, 12, 12)
STEPS = 30
LEAST_SOFTNESS = 0.2
# Share of the tolerated gap that may be spent on slack of the dual point.
AIM_SHARE = 0.25
# A metric this much worse than the best one shows that the working set lacked
# impostors it met; further searches look further, so that this cannot go on.
MISSED = 1.1
WIDENING = 1.3
# What the model of the curvature may take in memory: 200 steps of up to 145 columns.
TRAIL_BYTES = 2**26
# On a path an iteration is short: the start is good. What a metric lacks is added at once.
# Chosen on the data sets of benchmarks/trace_path.py.
PATH_STEPS = 7
PATH_ESCAPE = 0.1
# In a loose round of LNML, whose problem changes next: docs/performance.md.
LOOSE_STEPS = 10


class HingeTask(StreamedTask, Protocol):
    """What the solver asks of an objective, in conditioned coordinates."""

    keeps_curvature: bool

    @property
    def first_margin(self) -> float:
        """How much further than it must the first search looks."""

    @property
    def streamed(self) -> bool:
        """Whether there was no room for impostors: then there are no multipliers."""

    def search(self, components: np.ndarray, smoothing: float, margin: float = MARGIN) -> None:
        """Find all impostors within ``margin`` times the reach of a metric: the working set."""

    def trail(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> Trail:
        """Return a trail without pairs, for descents of this task."""

    def smoothed(self, components: Any, smoothing: float) -> tuple[Any, Any]:
        """Value and gradient of the smoothed problem over the working set.

        Components are an array, or what a trail of the task has.
        """

    def evaluate(self, components: np.ndarray, smoothing: float, tol: float = 0.0) -> Certificate:
        """Exact objective and dual bound; exact only right after a search.

        A bound that leaves a relative gap of ``tol`` is good enough.
        """

    def aim(self, components: np.ndarray, worth: float) -> None:
        """Choose what the next steps aim at, if that may cost ``worth`` of the objective."""

    def keep_dual(self, components: np.ndarray, smoothing: float, seen: Certificate) -> None:
        """Keep slopes at a metric, the one evaluated last, in the dual point of the bound."""

    def update_multipliers(self, components: np.ndarray, smoothing: float) -> None:
        """Take the slopes at a metric as the new multipliers."""


def solve_hinge(task: HingeTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise a hinge objective to a relative duality gap of ``run.tol``.

    An iteration is a few steps of L-BFGS and a full search. A warm task already
    holds multipliers of a similar problem.
    """
    full_rank, tol, warm = components.shape[0] >= components.shape[1], run.tol, run.warm
    scale = float(np.mean(components**2))
    keeps_curvature = _keeps_curvature(task, components)
    smoothing = SMOOTHING if warm else first_smoothing(task, components)
    start = _look(task, components, smoothing, MARGIN if warm else task.first_margin, tol)
    if start is None:
        return solve_streamed(task, components, run, smoothing)
    best, objective = _times(components, start.multiple), start.objective
    bound = max(start.bound, 0.0)
    task.keep_dual(components, smoothing, start)
    gap = relative_gap(objective, bound, task.objective_at_zero)
    objectives, margin, softness, converged = [objective], MARGIN, 1.0, False
    if gap <= tol:
        run.report(best, _record(1, objective, bound, gap, start, 1))
        return Solution(best, objective, bound, gap, True)
    trail = task.trail(components, TRAIL_BYTES)
    for iteration in range(1, run.max_iter + 1):
        coarse = iteration <= len(COARSE_STEPS)
        n_evaluations = descend(
            partial(task.smoothed, smoothing=smoothing),
            trail,
            max_iter=COARSE_STEPS[iteration - 1] if coarse else STEPS,
            value_tol=0.1 * task.precision,
        )
        components = trail.components
        seen = _look(task, components, smoothing, margin, tol)
        if seen is None:
            # A metric that met impostors which the working set lacked may be far too small.
            return solve_streamed(task, best, run, smoothing, iteration - 1)
        if seen.objective > MISSED * objective:
            margin *= WIDENING
        if seen.objective < objective:
            best, objective = _times(components, seen.multiple), seen.objective
        if seen.bound > bound:
            bound = seen.bound
            task.keep_dual(components, smoothing, seen)
        gap = relative_gap(objective, bound, task.objective_at_zero)
        objectives.append(objective)
        converged = gap <= tol or (not full_rank and stalled(objectives, tol))
        record = _record(iteration, objective, bound, gap, seen, n_evaluations)
        if run.report(best, record) or converged:
            break
        settled = warm or iteration >= len(COARSE_STEPS)
        easing = max(seen.easing, LEAST_SOFTNESS / softness) if settled else 1.0
        softness *= easing
        task.aim(components, AIM_SHARE * tol * objective)
        # With the new softness, so that multipliers never jump where it has grown.
        task.update_multipliers(components, easing * smoothing)
        if settled:
            smoothing = SMOOTHING * softness
            moved = leave_saddle(components, seen.directions(), scale, seen.room)
            trail.move_to(beside(components, moved))
        if easing != 1.0 or not keeps_curvature:
            # Hinges that are smoothed less have more curvature.
            trail.forget()
    return Solution(best, objective, bound, gap, converged)


def first_smoothing(task: HingeTask, components: np.ndarray) -> float:
    """Return the smoothing of hinges with which a solve begins at components (r x e)."""
    return SMOOTHING if _keeps_curvature(task, components) else FIRST_SMOOTHING


def _keeps_curvature(task: HingeTask, components: np.ndarray) -> bool:
    """Whether one model of the curvature serves all iterations.

    A problem of low rank is not convex: an old model holds it near the minimum that it is at.
    """
    return task.keeps_curvature and components.shape[0] >= components.shape[1]


def follow_hinge(task: HingeTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise the next hinge objective of a path to a relative duality gap of ``run.tol``.

    The task holds the multipliers of the objective before, ``run.trail`` its metric and its
    curvature. The multipliers of the end stay in the task. A loose round of LNML ends as soon
    as an iteration gained something.
    """
    trail, margin, loose = run.trail, MARGIN, run.monitor.rule is not None
    steps = LOOSE_STEPS if loose else PATH_STEPS
    assert trail is not None
    seen = _look(task, components, SMOOTHING, margin, run.tol)
    if seen is None:
        return _streamed_on_path(task, components, run)
    best, objective, bound = components, seen.objective, max(seen.bound, 0.0)
    first = objective
    task.keep_dual(components, SMOOTHING, seen)
    gap = relative_gap(objective, bound, task.objective_at_zero)
    if gap <= run.tol:
        run.report(best, _record(1, objective, bound, gap, seen, 1))
        return Solution(best, objective, bound, gap, True)
    smoothed = partial(task.smoothed, smoothing=SMOOTHING)
    if loose:
        # There may be no second iteration.
        trail.move_to(beside(components, leave_saddle(components, seen.directions(), 0.0)))
    for iteration in range(1, run.max_iter + 1):
        n_evaluations = descend(smoothed, trail, max_iter=steps, value_tol=0.1 * task.precision)
        components = trail.components
        seen = _look(task, components, SMOOTHING, margin, run.tol)
        if seen is None:
            return _streamed_on_path(task, best, run, iteration - 1)
        if seen.objective > MISSED * objective:
            margin *= WIDENING
        if seen.objective < objective:
            best, objective = components, seen.objective
        if seen.bound > bound:
            bound = seen.bound
            task.keep_dual(components, SMOOTHING, seen)
        gap = relative_gap(objective, bound, task.objective_at_zero)
        task.update_multipliers(components, SMOOTHING)
        # The start was evaluated, too.
        record = _record(iteration, objective, bound, gap, seen, n_evaluations + (iteration == 1))
        if run.report(best, record) or gap <= run.tol or (loose and objective < first):
            break
        moved = leave_saddle(components, seen.directions(), 0.0, share=PATH_ESCAPE)
        trail.move_to(beside(components, moved))
    trail.move_to(best)
    return Solution(best, objective, bound, gap, gap <= run.tol)


def _look(
    task: HingeTask, components: np.ndarray, smoothing: float, margin: float, tol: float
) -> Certificate | None:
    """Search and evaluate; None if there is no room for impostors or slopes."""
    task.search(components, smoothing, margin)
    if task.streamed:
        return None
    seen = task.evaluate(components, smoothing, tol)
    return None if task.streamed else seen


def _streamed_on_path(task: HingeTask, components: np.ndarray, run: Run, done: int = 0) -> Solution:
    """Go on without multipliers, and leave the trail at the end."""
    found = solve_streamed(task, components, run, SMOOTHING, done)
    assert run.trail is not None
    run.trail.move_to(found.components)
    return found


def _times(components: np.ndarray, multiple: float) -> np.ndarray:
    """Components of a multiple of the metric."""
    return components if multiple == 1.0 else np.sqrt(multiple) * components


def _record(
    iteration: int,
    objective: float,
    bound: float,
    gap: float,
    seen: Certificate,
    n_evaluations: int,
) -> Record:
    return Record(
        iteration=iteration,
        objective=objective,
        bound=bound,
        gap=gap,
        n_active=seen.n_active,
        n_evaluations=n_evaluations,
    )
