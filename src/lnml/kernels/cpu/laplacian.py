"""Products with the Laplacian of a weighted graph of pairs."""

from __future__ import annotations

import numpy as np
from numba import njit

from lnml.core.pairs import Hinge, Pattern, WorkingSet
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

_ROWS_PER_TILE = 1024


def laplacian(
    edges: list[tuple[Pattern, np.ndarray | None, float]], values: np.ndarray
) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.laplacian`.

    Zero weights are skipped. The graph is first stored in both directions, so
    that every row gathers its own sum: no two threads write to one row.
    """
    n, width = values.shape
    edges = [(p, np.ones(p.size) if w is None else w, factor) for p, w, factor in edges]
    counts = np.zeros(n + 1, dtype=np.int64)
    for pattern, weights, _ in edges:
        _count(pattern.indptr, pattern.indices, weights, counts)
    indptr = np.cumsum(counts)
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1])
    position = indptr[:-1].copy()
    for pattern, weights, factor in edges:
        _fill(pattern.indptr, pattern.indices, weights, factor, position, indices, data)
    out = np.zeros((n, width), dtype=values.dtype)
    run_tiles(
        lambda tile: _gather(indptr, indices, data, values, tile[0], tile[1], out),
        row_tiles(n, _ROWS_PER_TILE),
    )
    return out


def slope_laplacian(working: WorkingSet, terms: Hinge, values: np.ndarray) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.slope_laplacian`."""
    edges = [
        (working.targets, terms.target_weights, 1.0),
        (working.candidates, terms.candidate_weights, -1.0),
    ]
    return laplacian(edges, values)


@njit(nogil=True, cache=True)
def _count(indptr, indices, weights, counts):
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] != 0.0:
                counts[i + 1] += 1
                counts[indices[e] + 1] += 1


@njit(nogil=True, cache=True)
def _fill(indptr, indices, weights, factor, position, out_indices, out_data):
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] != 0.0:
                j = indices[e]
                out_indices[position[i]] = j
                out_data[position[i]] = factor * weights[e]
                position[i] += 1
                out_indices[position[j]] = i
                out_data[position[j]] = factor * weights[e]
                position[j] += 1


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _gather(indptr, indices, data, values, lo, hi, out):
    width = values.shape[1]
    total = np.empty(width)
    for i in range(lo, hi):
        total[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            weight = data[e]
            j = indices[e]
            for k in range(width):
                total[k] += weight * (values[i, k] - values[j, k])
        for k in range(width):
            out[i, k] = total[k]
