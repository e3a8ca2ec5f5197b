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
LONGER = 4.0

# Maps components (r x e), as a trail has them, to a value and its gradient (r x e); on a device
# the value may be a tensor, which :meth:`lnml.core.trail.Trail.look` turns into a number.
Function = Callable[[Any], tuple[Any, Any]]


class Reached(NamedTuple):
    """Value where a step ended, and the evaluations it took."""

    value: float
    n_evaluations: int


def take_step(function: Function, trail: Trail, value: float, size: float = 1.0) -> Reached:
    """Move a trail by one step from a point of known value, where its descent has started.

    The first trial is ``size`` times as long as the model of the curvature says. A trail that finds
    no lower value stays where it is, and forgets what misled it.
    """
    direction, slope = trail.downhill() if trail.n_pairs else (trail.gradient, 0.0)
    if not slope < 0.0:
        trail.forget()
        length = trail.length(trail.gradient)
        if not length > 0.0:
            return Reached(value, 0)
        direction = trail.gradient * (-FIRST_STEP * trail.length(trail.at) / length)
        slope = trail.dot(direction, trail.gradient)
    for trial in range(1, MOST_TRIALS + 1):
        components = trail.along(direction, size)
        found = trail.look(components, *function(components))
        if found <= value + ENOUGH * size * slope:
            trail.advance()
            return Reached(found, trial)
        # The least value of the parabola through what is known.
        excess = found - value - slope * size
        shorter = -slope * size / (2.0 * excess) if np.isfinite(excess) else LEAST_SHORTER
        size *= min(max(shorter, LEAST_SHORTER), MOST_SHORTER)
    trail.forget()
    return Reached(value, MOST_TRIALS)


def begin(function: Function, trail: Trail) -> float:
    """Start a descent where a trail is; return the value there."""
    value, gradient = function(trail.at)
    trail.start(gradient)
    return float(value)


def descend(function: Function, trail: Trail, *, max_iter: int, value_tol: float) -> int:
    """Move a trail by some steps, fewer if one gains less than a share ``value_tol``.

    Returns
    -------
    n_evaluations : int
    """
    value, n_evaluations, size = begin(function, trail), 1, 1.0
    for _ in range(max_iter):
        reached = take_step(function, trail, value, size)
        # Where the value falls ever faster, the model says nothing about how far to go.
        size = 1.0 if trail.bends else LONGER * size
        gain, value = value - reached.value, reached.value
        n_evaluations += reached.n_evaluations
        if gain <= value_tol * abs(value):
            break
    return n_evaluations
