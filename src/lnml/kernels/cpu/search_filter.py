"""The filter of the impostor search: bounds of a distance from below, over few coordinates.

A product over the leading coordinates looks at every pair. Those that pass are looked at again
with as many coordinates more, which takes less than the distance over all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# Cost of a pair that passes the leading coordinates, and of one that passes the following, too,
# the latter for each of all coordinates. The unit is one coordinate of a pair in the matrix
# product (measured, docs/performance.md).
FOLLOWING_COST = 1000.0
VERIFY_COST = 24.0
# Up to this many rows all coordinates are used: choosing some would take longer.
SMALL = 2048
UNDERFLOW = 1e-30
NO_LIMIT = 1e30
SAMPLE_ROWS = 64
SAMPLE_COLUMNS = 1024
TILE_ROWS = 1024


class Filter(NamedTuple):
    """What the compiled filter needs of every row.

    ``leading`` are the leading principal coordinates; ``norms`` and ``limits``
    are such that norms_i + norms_j - 2 <leading_i, leading_j> < limits_i holds
    for every pair with D_ij < radius_i, rounding included. With the squared distance of the
    ``following`` coordinates (there may be none) added, and ``rounding`` of both rows
    subtracted, it still does.
    """

    leading: np.ndarray
    norms: np.ndarray
    limits: np.ndarray
    following: np.ndarray
    rounding: np.ndarray


def make_filter(
    z: list[np.ndarray], radius: np.ndarray, row_class: np.ndarray, same: bool = False
) -> Filter:
    """Leading principal coordinates of the embedding, as many as pay.

    ``same`` says that pairs of the same class are looked for, in place of different ones.

    Everything is measured in units of the largest coordinate, which float32 can
    square without overflow. Only the coordinates that are kept are made, a tile of rows at a
    time: rows may take most of the memory.
    """
    frame = _Frame.of(z)
    radius = radius / frame.unit / frame.unit
    if len(radius) > SMALL:
        frame = frame.rotated(z, radius, row_class, same)
    leading, following, norms, full = _coordinates(z, frame)
    # |computed - exact| of the filter's sum is below slack * (|a|^2 + |b|^2 + radius),
    # the norms over all coordinates, since rotation mixes them; squares below the
    # floor may underflow. Rows without targets have radius -inf.
    slack = (6.0 * frame.mean.size + 32.0) * float(np.finfo(np.float32).eps)
    limits = np.clip(radius * (1.0 + slack) + UNDERFLOW, -NO_LIMIT, NO_LIMIT)
    # The following coordinates are rotated, too, and their squares are as many sums.
    rounding = (slack * full).astype(np.float32)
    norms = (norms - slack * full).astype(np.float32)
    return Filter(leading, norms, limits.astype(np.float32), following, rounding)


class _Frame(NamedTuple):
    """How rows become coordinates of the filter: (row - mean) / unit, along some axes.

    Attributes
    ----------
    mean : ndarray of shape (r,)
        In the type of the rows.
    unit : float
        Largest distance of a coordinate from its mean.
    axes : ndarray of shape (r, kept + following), or None
        Orthonormal columns; None stands for the identity.
    kept : int
        How many of them the product takes.
    """

    mean: np.ndarray
    unit: float
    axes: np.ndarray | None = None
    kept: int = 0

    @classmethod
    def of(cls, z: list[np.ndarray]) -> _Frame:
        """Centre and unit of some rows."""
        sums = [each.sum(axis=0, dtype=np.float64) for each in z]
        mean = (np.sum(sums, axis=0) / sum(map(len, z))).astype(z[0].dtype)
        ends = [(each.max(axis=0) - mean, mean - each.min(axis=0)) for each in z]
        return cls(mean, float(np.max(ends)) or 1.0)

    def rotated(
        self, z: list[np.ndarray], radius: np.ndarray, row_class: np.ndarray, same: bool
    ) -> _Frame:
        """Return the frame of the leading principal axes, by falling variance."""
        n = radius.size
        some = self.centred(_picked(z, np.arange(0, n, max(1, n // 4096)))).astype(np.float64)
        axes = np.linalg.eigh(some.T @ some)[1][:, ::-1].astype(self.mean.dtype)
        kept = _leading_coordinates(z, self._replace(axes=axes), radius, row_class, same)
        if kept == self.mean.size:
            # All of them: the rows as they are will do.
            return self
        return self._replace(axes=np.ascontiguousarray(axes[:, : 2 * kept]), kept=kept)

    def centred(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in units from their mean."""
        return (rows - self.mean) / self.mean.dtype.type(self.unit)


def _coordinates(z: list[np.ndarray], frame: _Frame) -> tuple[np.ndarray, ...]:
    """Leading and following coordinates of all rows in float32.

    Also the squared norms of the leading ones, and those over all axes.
    """
    n, width = sum(map(len, z)), frame.mean.size
    kept, total = (width, width) if frame.axes is None else (frame.kept, frame.axes.shape[1])
    leading = np.empty((n, kept), dtype=np.float32)
    following = np.empty((n, total - kept), dtype=np.float32)
    norms, full = np.empty((2, n))
    firsts = np.cumsum([0, *map(len, z)])

    def fill(tile: tuple[int, int, int]) -> None:
        part, lo, hi = tile
        rows = frame.centred(z[part][lo:hi])
        place = slice(firsts[part] + lo, firsts[part] + hi)
        turned = rows if frame.axes is None else rows @ frame.axes
        leading[place], following[place] = turned[:, :kept], turned[:, kept:]
        norms[place] = np.einsum("ij,ij->i", leading[place], leading[place], dtype=np.float64)
        full[place] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)

    tiles = [
        (part, *tile) for part, each in enumerate(z) for tile in row_tiles(len(each), TILE_ROWS)
    ]
    run_tiles(fill, tiles)
    return leading, following, norms, full


def _picked(z: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return some rows, numbered through all arrays."""
    if len(z) == 1:
        return z[0][rows]
    first = len(z[0])
    found = np.empty((rows.size, z[0].shape[1]), dtype=z[0].dtype)
    for part, mine in ((z[0], rows < first), (z[1], rows >= first)):
        found[mine] = part[rows[mine] - (0 if part is z[0] else first)]
    return found


def _leading_coordinates(
    z: list[np.ndarray], frame: _Frame, radius: np.ndarray, row_class: np.ndarray, same: bool
) -> int:
    """Return the number of coordinates that makes filter and verification cheapest."""
    n, width = radius.size, frame.mean.size
    rng = np.random.default_rng(0)
    if same:
        # The largest class has most of the pairs.
        among = np.flatnonzero(row_class == np.bincount(row_class).argmax())
        rows, columns = rng.choice(among, SAMPLE_ROWS), rng.choice(among, SAMPLE_COLUMNS)
        counted = rows[:, None] != columns
    else:
        rows, columns = rng.integers(n, size=SAMPLE_ROWS), rng.integers(n, size=SAMPLE_COLUMNS)
        counted = row_class[rows][:, None] != row_class[columns]
    near, far = (
        (frame.centred(_picked(z, each)) @ frame.axes).astype(np.float64)
        for each in (rows, columns)
    )
    limit = np.maximum(radius[rows][:, None], radius[columns])
    passing, distances, done = {}, np.zeros(counted.shape), 0
    for kept in sorted({min(k, width) for k in (8, 16, 24, 32, 48, 64, 96, 128, 192, width)}):
        left, right = near[:, done:kept], far[:, done:kept]
        squares = [np.einsum("ij,ij->i", each, each) for each in (left, right)]
        distances += squares[0][:, None] + squares[1] - 2.0 * left @ right.T
        passing[kept] = float((counted & (distances < limit)).mean())
        done = kept

    def cost(kept: int) -> float:
        if kept == width:
            return kept + VERIFY_COST * width * passing[kept]
        # Twice as many that were counted, or the next number below.
        both = max(each for each in passing if each <= 2 * kept)
        return kept + FOLLOWING_COST * passing[kept] + VERIFY_COST * width * passing[both]

    return min(passing, key=cost)
