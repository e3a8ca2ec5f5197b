"""Impostor search: all pairs of different class closer than a radius."""

from __future__ import annotations

import numpy as np
from numba import njit

from lnml.kernels.cpu.threads import row_tiles, run_tiles
from lnml.kernels.protocol import Embedding, Pattern, TooManyPairs

TILE_ROWS = 256
TILE_COLUMNS = 1024
_SEGMENT = 64


def within(
    embedding: Embedding,
    radius: np.ndarray,
    rows: tuple[int, int] | None,
    max_pairs: int | None,
) -> Pattern:
    """See :meth:`lnml.kernels.protocol.Kernels.within`.

    A search over all rows computes each tile once and reads it both ways;
    one over a range of rows computes the range against all columns.
    """
    z = embedding.coordinates
    n = z.shape[0]
    first, last = (0, n) if rows is None else rows
    symmetric = rows is None
    z = z - z.mean(axis=0, dtype=np.float64).astype(z.dtype)
    norms = np.einsum("ij,ij->i", z, z).astype(np.float64)
    # |computed - exact| <= slack * (|a|^2 + |b|^2); see docs/lmnn.md.
    slack = (4.0 * z.shape[1] + 16.0) * np.finfo(z.dtype).eps
    lower_norms = norms * (1.0 - slack)
    radius = np.asarray(radius, dtype=np.float64)
    no_mirror = np.full(n, -np.inf)
    row_class = embedding.points.row_class
    found: list[int] = [0]

    def search(tile: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        lo, hi = first + tile[0], first + tile[1]
        buffer_rows = np.empty(4096, dtype=np.int32)
        buffer_columns = np.empty(4096, dtype=np.int32)
        used = 0
        for left, right in row_tiles(n, TILE_COLUMNS):
            if (symmetric and right <= lo) or row_class[lo] == row_class[hi - 1] == row_class[
                left
            ] == row_class[right - 1]:
                continue
            left = max(left, lo) if symmetric else left
            products = z[lo:hi] @ z[left:right].T
            mirror = radius if symmetric else no_mirror
            start = used
            while True:
                used = _collect(
                    products,
                    lo,
                    left,
                    hi,
                    lower_norms,
                    radius,
                    mirror,
                    row_class,
                    buffer_rows,
                    buffer_columns,
                    start,
                )
                if used >= 0:
                    break
                buffer_rows = np.resize(buffer_rows, 2 * buffer_rows.size)
                buffer_columns = np.resize(buffer_columns, 2 * buffer_columns.size)
            found[0] += used - start
            if max_pairs is not None and found[0] > max_pairs:
                raise TooManyPairs
        return buffer_rows[:used].copy(), buffer_columns[:used].copy()

    parts = run_tiles(search, row_tiles(last - first, TILE_ROWS))
    return _to_pattern(parts, first, last)


@njit(nogil=True, cache=True)
def _collect(products, lo, left, hi, norms, radius, mirror, row_class, out_rows, out_columns, used):
    """Append the close pairs of one tile; return the new length, -1 when full.

    A pair (i, j) is given as (i, j) when it is inside i's radius and, for
    columns right of the diagonal block or below its diagonal, as (j, i) when
    it is inside j's.
    """
    n_rows, n_columns = products.shape
    for a in range(n_rows):
        i = lo + a
        own = norms[i] - radius[i]
        for segment in range(0, n_columns, _SEGMENT):
            end = min(segment + _SEGMENT, n_columns)
            hits = 0
            for b in range(segment, end):
                j = left + b
                base = norms[j] - 2.0 * products[a, b]
                hits += (base + own < 0.0) | (base + norms[i] - mirror[j] < 0.0)
            if hits == 0:
                continue
            if used + 2 * _SEGMENT > out_rows.shape[0]:
                return -1
            for b in range(segment, end):
                j = left + b
                if row_class[i] == row_class[j]:
                    continue
                base = norms[j] - 2.0 * products[a, b]
                if base + own < 0.0:
                    out_rows[used] = i
                    out_columns[used] = j
                    used += 1
                if j >= hi and base + norms[i] - mirror[j] < 0.0:
                    out_rows[used] = j
                    out_columns[used] = i
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
    for part_rows, part_columns in parts:
        _scatter(part_rows, part_columns, first, position, indices)
    return Pattern(indptr, indices)


@njit(nogil=True, cache=True)
def _scatter(rows, columns, first, position, indices):
    for e in range(rows.shape[0]):
        p = position[rows[e] - first]
        indices[p] = columns[e]
        position[rows[e] - first] = p + 1
