"""Bounds of the distances of candidates, so that an evaluation computes only a few of them.

Between two evaluations a row moves by a known length. By the triangle inequality the distance
of a pair cannot shrink by more than both its rows moved since it was computed last. A candidate
that is too far for a hinge by this bound adds nothing, and is left out (docs/performance.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from lnml.core.pairs import Pattern, WorkingSet
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# Fewer candidates are evaluated in less time than it takes to see how far rows moved.
LEAST_CANDIDATES = 100_000
LEAST_PER_ROW = 8
_ROWS_PER_TILE = 1024
# Room for the rounding of a number to float32.
_ROUNDING = 2.0**-21
# The root of a squared distance that overflowed is at least this.
_FAR = 1e19


class Bounds(NamedTuple):
    """What the compiled loops read; all empty if there are no bounds.

    Attributes
    ----------
    roots : ndarray of float32, aligned with the candidates
        Distance (not squared) when it was computed last, plus the drift of both rows then.
    drift : ndarray of float32, shape (n,)
        How far each row has moved so far, all steps added up.
    slack : float
        Relative rounding of a distance.
    """

    roots: np.ndarray
    drift: np.ndarray
    slack: float


NO_BOUNDS = Bounds(np.zeros(0, np.float32), np.zeros(0, np.float32), 0.0)


class Screen:
    """Bounds for the candidates of a working set.

    They hold for the coordinates as they were rounded, so nothing is lost to rounding of
    products: a sum over the candidates that pass has the same bits as one over all.

    Parameters
    ----------
    candidates : Pattern
        The pairs.
    """

    def __init__(self, candidates: Pattern) -> None:
        self._candidates = candidates
        self._last: np.ndarray | None = None
        self._bounds = NO_BOUNDS

    def bounds(self, z: np.ndarray) -> Bounds:
        """Return bounds that hold for coordinates (n x r), in which roots can be renewed."""
        if self._last is None or self._last.shape != z.shape:
            roots = np.full(self._candidates.size, -np.inf, dtype=np.float32)
            slack = (z.shape[1] + 16.0) * float(np.finfo(z.dtype).eps)
            self._bounds = Bounds(roots, np.zeros(len(z), np.float32), slack)
        elif self._last is not z:
            last, (_, drift, slack) = self._last, self._bounds
            run_tiles(
                lambda tile: _add_moves(z, last, *tile, slack, drift),
                row_tiles(len(z), _ROWS_PER_TILE),
            )
        self._last = z
        return self._bounds


@dataclass(frozen=True, eq=False)
class ScreenedSet(WorkingSet):
    """A working set with bounds of the distances of its candidates."""

    screen: Screen | None = None


def screened(working: WorkingSet) -> WorkingSet:
    """Return a working set with bounds, if it is large enough for these to pay."""
    targets, candidates, multipliers = working.targets, working.candidates, working.multipliers
    if candidates.size < max(LEAST_CANDIDATES, LEAST_PER_ROW * (candidates.indptr.size - 1)):
        return working
    return ScreenedSet(targets, candidates, multipliers, Screen(candidates))


def bounds_of(working: WorkingSet, z: np.ndarray) -> Bounds:
    """Return the bounds of a working set for coordinates; empty ones if it has none."""
    screen = working.screen if isinstance(working, ScreenedSet) else None
    return NO_BOUNDS if screen is None else screen.bounds(z)


def _add_moves(
    z: np.ndarray, last: np.ndarray, lo: int, hi: int, slack: float, drift: np.ndarray
) -> None:
    """Add the lengths that rows moved, rounded up."""
    step = z[lo:hi] - last[lo:hi]
    moves = np.sqrt(np.einsum("ij,ij->i", step, step).astype(np.float64)) * (1.0 + slack)
    drift[lo:hi] = (drift[lo:hi] + moves) * (1.0 + _ROUNDING) + 1e-18


@njit(nogil=True, cache=True, inline="always")
def screen_limit(reach, drift, row, slack):
    """Root, less the drift of the impostor, above which no hinge of a row acts."""
    if drift.shape[0] == 0 or reach < 0.0:
        return np.inf
    return np.sqrt(1.0 + reach) * (1.0 + slack) + drift[row]


@njit(nogil=True, cache=True, inline="always")
def too_far(root, drift, limit):
    """Whether a candidate with a drift is above the limit of its row."""
    return np.float64(root) - drift > limit


@njit(nogil=True, cache=True, inline="always")
def root_bound(distance, slack, drift, other_drift):
    """Root of a squared distance plus the drift of both rows, rounded down."""
    root = min(np.sqrt(np.float64(distance)), _FAR) * (1.0 - slack)
    return (root + drift + other_drift) * (1.0 - _ROUNDING)
