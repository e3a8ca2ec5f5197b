"""Impostor search: all pairs of different class closer than a radius.

A float32 matrix product over the few leading principal coordinates bounds
every distance from below, and a few coordinates more sort out most pairs that pass; the others
are verified with all coordinates.
Rows are sorted by class, so the partners of a row are two contiguous ranges. A
search over all rows computes each pair once and uses it for both rows.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Pattern, TooManyPairs
from lnml.core.points import Embedding
from lnml.kernels.cpu.compiling import inlined, loop
from lnml.kernels.cpu.distances import row_distance
from lnml.kernels.cpu.search_filter import NO_LIMIT, Filter, make_filter
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

TILE_ROWS = 512
# A search of a few rows is cut into so many tiles, for all threads to have some.
FEW_TILES = 16
TILE_COLUMNS = 2048
# Products that are made before they are looked at: they stay in the cache of a core.
CACHED = 2**17
# Pairs that are looked at together; then those of them among which one passed.
_SEGMENT = 128
_PART = 16

# First row and end, first column and end.
Tile = tuple[int, int, int, int]


def within(embedding: Embedding, radius: np.ndarray, max_pairs: int | None = None) -> Pattern:
    """Pairs of :meth:`lnml.kernels.protocol.Kernels.within`."""
    start, codes = embedding.points.class_start, embedding.points.row_class
    everything, end_of_class = (0, codes.size), start[codes + 1]
    # Rows are sorted by class: the pairs beyond its class are met from the first row.
    leave_out = (np.zeros_like(end_of_class), end_of_class)
    window = Window(everything, everything, leave_out, two_way=True)
    return within_window([embedding.coordinates], codes, radius, window, max_pairs)


def same_class(embedding: Embedding, radius: np.ndarray, max_pairs: int) -> Pattern:
    """Pairs of rows of one class with D_ij < radius_i, row by row; too many raise TooManyPairs."""
    z, radius = [embedding.coordinates], np.asarray(radius, dtype=np.float64)
    start, codes = embedding.points.class_start, embedding.points.row_class
    first = np.arange(codes.size)
    # A pair is met from its first row alone.
    leave_out = (np.zeros_like(first), first + 1)
    window = Window((0, codes.size), (0, codes.size), leave_out, two_way=True)
    tiles = [
        (low + a, low + b, low + a, high)
        for low, high in pairwise(start)
        for a, b in row_tiles(high - low, TILE_ROWS)
    ]
    return _search(z, radius, make_filter(z, radius, codes, same=True), window, max_pairs, tiles)


class RowSearch:
    """The same search of other classes for a few rows at a time, prepared once for all of them.

    Parameters
    ----------
    embedding : Embedding
        The rows.
    radius : ndarray of shape (n,)
        Squared distances.
    """

    def __init__(self, embedding: Embedding, radius: np.ndarray) -> None:
        start, codes = embedding.points.class_start, embedding.points.row_class
        self._z, self._radius = [embedding.coordinates], np.asarray(radius, dtype=np.float64)
        self._filter = make_filter(self._z, self._radius, codes)
        self._leave_out = (start[codes], start[codes + 1])

    def __call__(self, rows: tuple[int, int], max_pairs: int | None) -> Pattern:
        """Return the pairs of rows ``first`` to ``end``; too many raise TooManyPairs."""
        window = Window(rows, (0, len(self._radius)), self._leave_out, two_way=False)
        tiles = window.tiles(min(TILE_ROWS, -(-(rows[1] - rows[0]) // FEW_TILES)))
        return _search(self._z, self._radius, self._filter, window, max_pairs, tiles)


class Window(NamedTuple):
    """Which pairs of rows a search looks at.

    Attributes
    ----------
    rows, columns : tuples (first, end)
        Ranges of rows; one of the first range is paired with those of the second.
    leave_out : two ndarrays of shape (n,)
        Range of columns that is left out, for each row.
    two_way : bool
        Whether a pair is looked at from its column, too.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    leave_out: tuple[np.ndarray, np.ndarray]
    two_way: bool

    def tiles(self, n_rows: int) -> list[Tile]:
        """Cut the rows, and let each tile look at all columns."""
        first, last = self.rows
        return [(first + a, first + b, *self.columns) for a, b in row_tiles(last - first, n_rows)]


def within_window(
    z: list[np.ndarray],
    codes: np.ndarray,
    radius: np.ndarray,
    window: Window,
    max_pairs: int | None,
) -> Pattern:
    """Return the pairs of a window with D_il < radius_i, row by row.

    Parameters
    ----------
    z : list of one or two ndarrays
        Coordinates of all n rows; or those of the rows of the window, then those of its columns.
    codes : ndarray of int, shape (n,)
        Class of each row, to guess how many pairs pass the filter.
    radius : ndarray of shape (n,)
        Squared distances.
    window : Window
        The pairs.
    max_pairs : int or None
        Most pairs; more raise TooManyPairs.
    """
    radius = np.asarray(radius, dtype=np.float64)
    filter_ = make_filter(z, radius, codes)
    return _search(z, radius, filter_, window, max_pairs, window.tiles(TILE_ROWS))


def _search(
    z: list[np.ndarray],
    radius: np.ndarray,
    filter_: Filter,
    window: Window,
    max_pairs: int | None,
    tiles: list[Tile],
) -> Pattern:
    """Search tiles of a window, some rows and columns at a time."""
    out_first, out_end = window.leave_out
    # Numbers of the first rows that the two arrays hold.
    mine, others = (z[0], 0), (z[-1], len(z[0]) if len(z) == 2 else 0)
    tally = _Tally(max_pairs)
    # Where columns do not look back, only the radius of the row counts.
    nothing = np.full_like(filter_.limits, -NO_LIMIT)
    of_columns = filter_.limits if window.two_way else nothing

    def search(tile: Tile) -> tuple[np.ndarray, np.ndarray]:
        lo, hi, begin, end = tile
        out_from, out_to = out_first[lo:hi].max(), out_end[lo:hi].min()
        buffers, room = np.empty((2, 4096), dtype=np.int32), np.empty(CACHED, dtype=np.float32)
        used, most = 0, max(CACHED // (hi - lo), 1)
        for left, right in (
            (begin + a, begin + b) for a, b in row_tiles(end - begin, TILE_COLUMNS)
        ):
            if out_from <= left and right <= out_to:
                continue
            tally.check()
            before = used
            products, rest = (
                room[: (hi - lo) * columns].reshape(hi - lo, columns)
                for columns in (most, (right - left) % most)
            )
            while True:
                used = _collect(
                    lo, left, right, window.two_way, *filter_, of_columns, radius,
                    out_first, out_end, *mine, *others, products, rest, buffers, before,
                )  # fmt: skip
                if used >= 0:
                    break
                buffers = np.concatenate([buffers, np.empty_like(buffers)], axis=1)
            tally.add(used - before)
        return buffers[0, :used].copy(), buffers[1, :used].copy()

    parts = run_tiles(search, tiles)
    low, high = (0, radius.size) if window.two_way else window.rows
    return _to_pattern(parts, low, high)


class _Tally:
    """Counts the pairs that all tiles found so far, and ends the search when they are too many."""

    def __init__(self, most: int | None) -> None:
        self._most, self._count, self._lock = most, 0, threading.Lock()

    def add(self, count: int) -> None:
        """Count some more."""
        with self._lock:
            self._count += count
        self.check()

    def check(self) -> None:
        """End the search if it has too many: other threads may have found them."""
        if self._most is not None and self._count > self._most:
            raise TooManyPairs(self._most)


@loop()
def _collect(
    lo, left, right, two_way, leading, norms, limits, following, rounding, of_columns, radius,
    out_first, out_end, z, z_first, others, others_first, products, rest, buffers, used,
):  # fmt: skip
    """Append the close pairs of one tile; return the new length, -1 when full.

    Products are made a few columns at a time; the last time there are as many as ``rest`` has.
    """
    n_rows, columns = products.shape
    for first in range(left, right, columns):
        end = first + columns
        if end > right:
            end, products = right, rest
        np.dot(leading[lo : lo + n_rows], leading[first:end].T, products)
        used = _close_pairs(
            products, lo, first, two_way, norms, limits, following, rounding, of_columns, radius,
            out_first, out_end, z, z_first, others, others_first, buffers, used,
        )  # fmt: skip
        if used < 0:
            break
    return used


@inlined()
def _close_pairs(
    products, lo, left, two_way, norms, limits, following, rounding, of_columns, radius,
    out_first, out_end, z, z_first, others, others_first, buffers, used,
):  # fmt: skip
    """Append the close pairs of some products; return the new length, -1 when full."""
    n_rows, n_columns = products.shape
    for a in range(n_rows):
        i = lo + a
        if not two_way and radius[i] <= 0.0:
            continue
        lower = min(max(out_first[i] - left, 0), n_columns)
        upper = min(max(out_end[i] - left, 0), n_columns)
        for side in range(2):
            begin, end = (0, lower) if side == 0 else (upper, n_columns)
            # Parts are looked at up to the end of a segment in which a pair passed.
            low, inside = begin, begin
            while low < end:
                high = min(low + _PART, inside) if low < inside else min(low + _SEGMENT, end)
                if not _passing(products, a, low, high, i, left, norms, limits, of_columns):
                    low = high
                    continue
                if low >= inside:
                    if used + 2 * _SEGMENT > buffers.shape[1]:
                        return -1
                    inside = high
                    continue
                for b in range(low, high):
                    j = left + b
                    bound = norms[i] + norms[j] - np.float32(2.0) * products[a, b]
                    limit = limits[i] if limits[i] > of_columns[j] else of_columns[j]
                    if bound < limit and _may_be_close(bound, limit, following, rounding, i, j):
                        distance = row_distance(z, i - z_first, others, j - others_first)
                        used = _verify(distance, radius, i, j, two_way, buffers, used)
                low = high
    return used


@inlined()
def _may_be_close(bound, limit, following, rounding, i, j):
    """Whether a pair passes the filter with the following coordinates, too."""
    if following.shape[1] == 0:
        return True
    more = row_distance(following, i, following, j)
    return bound + more - (rounding[i] + rounding[j]) < limit


@inlined()
def _passing(products, a, low, high, i, left, norms, limits, of_columns):
    """Whether a pair of row i, with some columns of its products, passes the filter.

    No branch, no sign of indices and float32 throughout: the compiler turns this into vector code.
    """
    passing, start, norm, limit = False, np.uint64(left), norms[i], limits[i]
    for b in range(np.uint64(low), np.uint64(high)):
        bound = norm + norms[start + b] - np.float32(2.0) * products[a, b]
        passing |= (bound < limit) | (bound < of_columns[start + b])
    return passing


@inlined()
def _verify(distance, radius, i, j, two_way, buffers, used):
    """Append a pair, in each direction in which its full distance is inside the radius."""
    if distance < radius[i]:
        buffers[0, used] = i
        buffers[1, used] = j
        used += 1
    if two_way and distance < radius[j]:
        buffers[0, used] = j
        buffers[1, used] = i
        used += 1
    return used


def _to_pattern(parts: list[tuple[np.ndarray, np.ndarray]], first: int, last: int) -> Pattern:
    """CSR pattern of (row, column) lists whose columns rise within each row."""
    counts = np.zeros(last - first + 1, dtype=np.int64)
    for part_rows, _ in parts:
        counts[1:] += np.bincount(part_rows - first, minlength=last - first)
    indptr = np.cumsum(counts)
    indices = np.empty(indptr[-1], dtype=np.int32)
    position = indptr[:-1].copy()
    parts.reverse()
    while parts:
        # Taken from the list, so that its memory is free again.
        _scatter(*parts.pop(), first, position, indices)
    return Pattern(indptr, indices)


@loop()
def _scatter(rows, columns, first, position, indices):
    for e in range(rows.shape[0]):
        p = position[rows[e] - first]
        indices[p] = columns[e]
        position[rows[e] - first] = p + 1
