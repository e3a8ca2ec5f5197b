"""Products with the Laplacian of a weighted graph of pairs."""

from __future__ import annotations

import numpy as np
from numba import njit

from lnml.core.pairs import Edge, EdgeScatter, Pattern
from lnml.core.points import Points
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

_ROWS_PER_TILE = 1024


# Pairs with their weights.
Weighted = list[tuple[Pattern, np.ndarray]]


def laplacian(edges: Weighted, values: np.ndarray) -> np.ndarray:
    """Lap(W + W^T) @ values, W being the weights of all edges.

    Zero weights are skipped. The graph is first stored in both directions, so
    that every row gathers its own sum: no two threads write to one row.
    """
    n, width = values.shape
    indptr, indices, data = _both_ways(edges, n)
    out = np.zeros((n, width), dtype=values.dtype)
    run_tiles(
        lambda tile: _gather(indptr, indices, data, values, tile[0], tile[1], out),
        row_tiles(n, _ROWS_PER_TILE),
    )
    return out


def edge_scatter(points: Points, edges: list[Edge]) -> EdgeScatter:
    """See :meth:`lnml.kernels.protocol.Kernels.edge_scatter`.

    It is X^T Lap X: a tile of rows of Lap X is gathered and multiplied at once. A gathered
    sum is off by a share of the sum of its sizes, a product by a share of those of its factors.
    """
    rows, (n, width) = points.data, points.data.shape
    indptr, indices, data = _both_ways([(e.pairs, edge_weights(e, points)) for e in edges], n)
    # Near the rows, so that what is left of them is short.
    shift = rows.mean(axis=0, dtype=np.float64)

    def of_tile(tile: tuple[int, int]) -> tuple[np.ndarray, ...]:
        lo, hi = tile
        moved, sizes = np.zeros((2, hi - lo, width))
        squares = np.zeros(width)
        _gather_sizes(indptr, indices, data, rows, lo, hi, moved, sizes, squares)
        centred = rows[lo:hi] - shift
        lengths = np.einsum("ij,ij->j", sizes, sizes), np.einsum("ij,ij->j", centred, centred)
        return moved.T @ centred, squares, *lengths

    tiles = row_tiles(n, _ROWS_PER_TILE)
    parts = run_tiles(of_tile, tiles)
    matrix, squares, moved, centred = (
        np.sum(column, axis=0) for column in zip(*parts, strict=True)
    )
    n_terms = _ROWS_PER_TILE + len(tiles) + int(np.diff(indptr).max()) + 8
    share = n_terms * 0.5 * np.finfo(np.float64).eps * 1.01
    # Each pair was met from both its ends.
    return EdgeScatter(
        0.5 * (matrix + matrix.T), 0.5 * squares, share * np.sqrt(moved), np.sqrt(centred)
    )


def edge_weights(edge: Edge, points: Points) -> np.ndarray:
    """Weight of every pair of an edge, its factors included."""
    sizes = edge.pairs.sizes
    weights = np.full(edge.pairs.size, edge.factor)
    if edge.weights is not None:
        weights *= edge.weights
    if edge.by_class is not None:
        weights *= np.repeat(edge.by_class[points.row_class], sizes)
    if edge.shared:
        weights /= np.repeat(sizes, sizes)
    return weights


def _both_ways(edges: Weighted, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges of every row, in both directions, in CSR form with their weights."""
    counts = np.zeros(n_rows + 1, dtype=np.int64)
    for pattern, weights in edges:
        _count(pattern.indptr, pattern.indices, weights, counts)
    indptr = np.cumsum(counts)
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1])
    position = indptr[:-1].copy()
    for pattern, weights in edges:
        _fill(pattern.indptr, pattern.indices, weights, position, indices, data)
    return indptr, indices, data


@njit(nogil=True, cache=True)
def _count(indptr, indices, weights, counts):
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] != 0.0:
                counts[i + 1] += 1
                counts[indices[e] + 1] += 1


@njit(nogil=True, cache=True)
def _fill(indptr, indices, weights, position, out_indices, out_data):
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] != 0.0:
                j = indices[e]
                out_indices[position[i]] = j
                out_data[position[i]] = weights[e]
                position[i] += 1
                out_indices[position[j]] = i
                out_data[position[j]] = weights[e]
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


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _gather_sizes(indptr, indices, data, rows, lo, hi, moved, sizes, squares):
    """Sum weight * v, its size and |weight| * v^2 over the edges of rows lo..hi, in float64."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            weight = data[e]
            j = indices[e]
            for k in range(rows.shape[1]):
                v = np.float64(rows[i, k]) - np.float64(rows[j, k])
                step = weight * v
                moved[i - lo, k] += step
                sizes[i - lo, k] += abs(step)
                squares[k] += abs(step * v)
