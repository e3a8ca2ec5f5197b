"""Bounds of the distances of candidates, so that an evaluation computes only a few of them.

Between two evaluations a row moves by a known length. By the triangle inequality the distance
of a pair cannot shrink by more than both its rows moved since it was computed last. A candidate
that is too far for a hinge by this bound adds nothing, and is left out (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from lnml.core.pairs import Pattern, WorkingSet
from lnml.kernels.cpu.compiling import inlined
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# Fewer candidates are evaluated in less time than it takes to see how far rows moved.
LEAST_CANDIDATES = 100_000
LEAST_PER_ROW = 8
# The rows of a cell are followed once for all its cells.
LEAST_PER_ROW_OF_CELL = 1
_ROWS_PER_TILE = 1024
# Room for the rounding of a number to float32.
_ROUNDING = 2.0**-21
# The root of a squared distance that overflowed is at least this.
_FAR = 1e19
# Bounds above this are no numbers in float32; a smaller one is a bound, too.
_FARTHEST = 1e38


class Bounds(NamedTuple):
    """What the compiled loops read; all empty if there are no bounds.

    Attributes
    ----------
    roots : ndarray of float32, aligned with the candidates
        Distance (not squared) when it was computed last, plus the drift of both rows then.
    drift, other_drift : ndarrays of float32, shapes (n,) and (m,)
        How far each row, and each row that may be an impostor, has moved so far.
    slack : float
        Relative rounding of a distance.
    """

    roots: np.ndarray
    drift: np.ndarray
    other_drift: np.ndarray
    slack: float


_NONE = np.zeros(0, np.float32)
NO_BOUNDS = Bounds(_NONE, _NONE, _NONE, 0.0)


@dataclass(frozen=True, eq=False)
class Trail:
    """How far rows have moved since they were first seen.

    Lengths are those of the coordinates as they were rounded, so nothing is lost to rounding of
    products: a sum over the candidates that pass has the same bits as one over all.

    Attributes
    ----------
    start : str
        Names the moment when the rows were first seen.
    drift : ndarray of float32, shape (n,)
        All steps of each row added up, rounded up.
    slack : float
        Relative rounding of a distance.
    """

    start: str
    drift: np.ndarray
    slack: float

    @classmethod
    def begin(cls, z: np.ndarray) -> Trail:
        """Begin at coordinates (n x r)."""
        slack = (z.shape[1] + 16.0) * float(np.finfo(z.dtype).eps)
        return cls(uuid4().hex, np.zeros(len(z), np.float32), slack)

    def moved(self, last: np.ndarray, z: np.ndarray) -> Trail:
        """Return the trail after a step from coordinates to others; a new one if they differ."""
        if last.shape != z.shape or last.dtype != z.dtype:
            return Trail.begin(z)
        drift = self.drift.copy()
        run_tiles(
            lambda tile: _add_moves(z, last, *tile, self.slack, drift),
            row_tiles(len(z), _ROWS_PER_TILE),
        )
        return replace(self, drift=drift)


class Screen:
    """Bounds for the distances of some candidates. They are not pickled, but begin anew.

    Parameters
    ----------
    n_candidates : int
        How many there are.
    """

    def __init__(self, n_candidates: int) -> None:
        self._size = n_candidates
        self._starts = ("", "")
        self._roots = NO_BOUNDS.roots

    def __reduce__(self) -> tuple[type[Screen], tuple[int]]:
        return Screen, (self._size,)

    def bounds(self, trail: Trail, other: Trail) -> Bounds:
        """Return bounds, in which roots can be renewed.

        The trails are those of the rows and of the rows that may be impostors.
        """
        if self._starts != (trail.start, other.start):
            self._starts = (trail.start, other.start)
            self._roots = np.full(self._size, -np.inf, dtype=np.float32)
        return Bounds(self._roots, trail.drift, other.drift, trail.slack)

    def forget(self) -> None:
        """Drop the bounds."""
        self._starts, self._roots = ("", ""), NO_BOUNDS.roots


class Followed:
    """Rows on their way from one evaluation to the next."""

    def __init__(self) -> None:
        self._last: np.ndarray | None = None
        self._trail: Trail | None = None

    def at(self, z: np.ndarray) -> Trail:
        """Return the trail of the rows, which are at coordinates (n x r) now."""
        if self._last is None or self._trail is None:
            self._trail = Trail.begin(z)
        elif self._last is not z:
            self._trail = self._trail.moved(self._last, z)
        self._last = z
        return self._trail

    def forget(self) -> None:
        """Begin anew at the next evaluation."""
        self._last = self._trail = None


@dataclass(frozen=True, eq=False)
class ScreenedSet(WorkingSet):
    """A working set with bounds of the distances of its candidates."""

    screen: Screen = field(default_factory=lambda: Screen(0))
    followed: Followed = field(default_factory=Followed)

    def rest(self) -> None:
        """Let go of the bounds, and of the coordinates that rows are followed from."""
        self.screen.forget()
        self.followed.forget()


def screened(working: WorkingSet) -> WorkingSet:
    """Return a working set with bounds, if it is large enough for these to pay."""
    targets, candidates, multipliers = working.targets, working.candidates, working.multipliers
    if candidates.size < max(LEAST_CANDIDATES, LEAST_PER_ROW * (candidates.indptr.size - 1)):
        return working
    return ScreenedSet(targets, candidates, multipliers, Screen(candidates.size))


def bounds_of(working: WorkingSet, z: np.ndarray) -> Bounds:
    """Return the bounds of a working set for coordinates; empty ones if it has none."""
    if not isinstance(working, ScreenedSet):
        return NO_BOUNDS
    trail = working.followed.at(z)
    return working.screen.bounds(trail, trail)


class ScreenedWays(list[Pattern]):
    """Candidates of a cell of a cluster, by ways, with bounds of their distances."""

    def __init__(self, ways: Iterable[Pattern]) -> None:
        super().__init__(ways)
        self._screens = [Screen(way.size) for way in self]

    def bounds(self, way: int, trail: Trail | None, other: Trail | None) -> Bounds:
        """Return bounds of the candidates of a way; empty ones if these are not worth it.

        The trails are those of its rows and of the rows that may be impostors, if these are known.
        """
        candidates, enough = self[way], LEAST_PER_ROW_OF_CELL * (self[way].indptr.size - 1)
        if trail is None or other is None or candidates.size < enough:
            return NO_BOUNDS
        return self._screens[way].bounds(trail, other)


def _add_moves(
    z: np.ndarray, last: np.ndarray, lo: int, hi: int, slack: float, drift: np.ndarray
) -> None:
    """Add the lengths that rows moved, rounded up."""
    step = z[lo:hi] - last[lo:hi]
    moves = np.sqrt(np.einsum("ij,ij->i", step, step).astype(np.float64)) * (1.0 + slack)
    drift[lo:hi] = (drift[lo:hi] + moves) * (1.0 + _ROUNDING) + 1e-18


@inlined()
def screen_limit(reach, drift, row, slack):
    """Root, less the drift of the impostor, above which no hinge of a row acts."""
    if drift.shape[0] == 0 or reach < 0.0:
        return np.inf
    return np.sqrt(1.0 + reach) * (1.0 + slack) + drift[row]


@inlined()
def too_far(root, drift, limit):
    """Whether a candidate with a drift is above the limit of its row."""
    return np.float64(root) - drift > limit


@inlined()
def root_bound(distance, slack, drift, other_drift):
    """Root of a squared distance plus the drift of both rows, rounded down."""
    root = min(np.sqrt(np.float64(distance)), _FAR) * (1.0 - slack)
    return min(root + drift + other_drift, _FARTHEST) * (1.0 - _ROUNDING)
