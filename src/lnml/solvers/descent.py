"""L-BFGS whose model of the curvature outlives a descent: for paths of similar problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lnml.core.trail import Trail
from lnml.solvers.lbfgs import FIRST_STEP

# Share of the predicted decrease that a step must have.
ENOUGH = 1e-4
MOST_TRIALS = 15
LEAST_SHORTER, MOST_SHORTER = 0.1, 0.5

# Maps components (r x e), as a trail has them, to a value and its gradient (r x e).
Function = Callable[[Any], tuple[float, Any]]


class Reached(NamedTuple):
    """Value and gradient (r x e) where a step ended, and the evaluations it took."""

    value: float
    gradient: Any
    n_evaluations: int


def take_step(function: Function, trail: Trail, value: float, gradient: Any) -> Reached:
    """Move a trail by one step from a point of known value and gradient (r x e).

    A trail that finds no lower value stays where it is, and forgets what misled it.
    """
    start = trail.at
    direction, slope = trail.downhill(gradient) if trail.n_pairs else (gradient, 0.0)
    if not slope < 0.0:
        trail.forget()
        length = trail.length(gradient)
        if not length > 0.0:
            return Reached(value, gradient, 0)
        direction = gradient * (-FIRST_STEP * trail.length(start) / length)
        slope = trail.dot(direction, gradient)
    size = 1.0
    for trial in range(1, MOST_TRIALS + 1):
        components = start + size * direction
        found, slopes = function(components)
        if found <= value + ENOUGH * size * slope:
            trail.add(components - start, slopes - gradient)
            trail.move_to(components)
            return Reached(found, slopes, trial)
        # The least value of the parabola through what is known.
        excess = found - value - slope * size
        shorter = -slope * size / (2.0 * excess) if np.isfinite(excess) else LEAST_SHORTER
        size *= min(max(shorter, LEAST_SHORTER), MOST_SHORTER)
    trail.forget()
    return Reached(value, gradient, MOST_TRIALS)


def descend(function: Function, trail: Trail, *, max_iter: int, value_tol: float) -> int:
    """Move a trail by some steps, fewer if one gains less than a share ``value_tol``.

    Returns
    -------
    n_evaluations : int
    """
    value, gradient = function(trail.at)
    n_evaluations = 1
    for _ in range(max_iter):
        reached = take_step(function, trail, value, gradient)
        gain, value, gradient = value - reached.value, reached.value, reached.gradient
        n_evaluations += reached.n_evaluations
        if gain <= value_tol * abs(value):
            break
    return n_evaluations
