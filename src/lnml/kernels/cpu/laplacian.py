"""Products with the Laplacian of a weighted graph of pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Edge, EdgeScatter, Pattern
from lnml.core.points import Points
from lnml.kernels.cpu.compiling import loop
from lnml.kernels.cpu.threads import each_tile
from lnml.kernels.tiles import row_tiles

_ROWS_PER_TILE = 1024


class Weighted(NamedTuple):
    """Pairs with weights, from the rows of one block to those of another.

    Attributes
    ----------
    pairs : Pattern
        Partners of each row of the one block, numbered in the other.
    weights : ndarray aligned with the pairs
        Pairs of weight zero are skipped.
    block, other : int
        Numbers of the two blocks.
    """

    pairs: Pattern
    weights: np.ndarray
    block: int = 0
    other: int = 0


class Graph(NamedTuple):
    """Pairs of the rows of a block, met from either of their ends, in CSR form."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    @property
    def tiles(self) -> list[np.ndarray]:
        """Numbers of the rows that have pairs, a tile at a time."""
        rows = np.flatnonzero(np.diff(self.indptr))
        return [rows[lo:hi] for lo, hi in row_tiles(rows.size, _ROWS_PER_TILE)]


def moment(
    edges: list[Weighted], values: list[np.ndarray], data: list[np.ndarray], *, exact: bool
) -> np.ndarray:
    """V^T Lap(W + W^T) X: the sum of weight * (v_i - v_j)^T (x_i - x_j), shape (r, d), float64.

    A tile of rows of Lap V is gathered and multiplied at once; rows without pairs cost nothing.

    Parameters
    ----------
    edges : list of Weighted
        The pairs of W.
    values, data : lists of ndarrays of shape (n_b, r), (n_b, d)
        Rows of V and X, one array for each block. There are two at most, and then all pairs
        are between the two.
    exact : bool
        Whether products are float64 where rows are float32.
    """
    graphs = _both_ways(edges, [len(rows) for rows in values])

    def of_tile(tile: tuple[int, np.ndarray]) -> np.ndarray:
        block, rows = tile
        own, other = values[block], values[len(values) - 1 - block]
        moved = np.empty((rows.size, own.shape[1]), dtype=own.dtype)
        _gather(*graphs[block], own, other, rows, np.empty(own.shape[1]), moved)
        right = data[block][rows]
        if exact:
            moved, right = (part.astype(np.float64, copy=False) for part in (moved, right))
        return moved.T @ right

    total = np.zeros((values[0].shape[1], data[0].shape[1]))
    tiles = [(block, rows) for block, graph in enumerate(graphs) for rows in graph.tiles]
    for part in each_tile(of_tile, tiles):
        total += part
    return total


def edge_scatter(points: Points, edges: list[Edge]) -> EdgeScatter:
    """See :meth:`lnml.kernels.protocol.Kernels.edge_scatter`."""
    return scatter([Weighted(e.pairs, edge_weights(e, points)) for e in edges], [points.data])


def scatter(edges: list[Weighted], blocks: list[np.ndarray]) -> EdgeScatter:
    """Sum of weight * v v^T over pairs, with its rounding.

    It is X^T Lap X: a tile of rows of Lap X is gathered and multiplied at once. A gathered
    sum is off by a share of the sum of its sizes, a product by a share of those of its factors.

    Parameters
    ----------
    edges : list of Weighted
        The pairs.
    blocks : list of ndarrays of shape (n_b, d)
        Rows of each block. There are two at most, and then all pairs are between the two.
    """
    sizes, width = [len(rows) for rows in blocks], blocks[0].shape[1]
    graphs = _both_ways(edges, sizes)
    # Near the rows, so that what is left of them is short.
    shift = np.sum([rows.sum(axis=0, dtype=np.float64) for rows in blocks], axis=0) / sum(sizes)

    def of_tile(tile: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
        block, lo, hi = tile
        own, other = blocks[block], blocks[len(blocks) - 1 - block]
        moved, lengths = np.zeros((2, hi - lo, width))
        squares = np.zeros(width)
        _gather_sizes(*graphs[block], own, other, lo, hi, moved, lengths, squares)
        centred = own[lo:hi] - shift
        norms = np.einsum("ij,ij->j", lengths, lengths), np.einsum("ij,ij->j", centred, centred)
        return moved.T @ centred, squares, *norms

    tiles = [
        (block, *tile) for block, n in enumerate(sizes) for tile in row_tiles(n, _ROWS_PER_TILE)
    ]
    matrix, (squares, moved, centred) = np.zeros((width, width)), np.zeros((3, width))
    for product, *sums in each_tile(of_tile, tiles):
        matrix += product
        for total, part in zip((squares, moved, centred), sums, strict=True):
            total += part
    longest = max(int(np.diff(graph.indptr).max()) for graph in graphs)
    share = (_ROWS_PER_TILE + len(tiles) + longest + 8) * 0.5 * np.finfo(np.float64).eps * 1.01
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


def _both_ways(edges: list[Weighted], sizes: list[int]) -> list[Graph]:
    """List the pairs of every row, met from either end, for blocks of some sizes."""
    counts = [np.zeros(size + 1, dtype=np.int64) for size in sizes]
    nothing = np.empty(0, np.int32), np.empty(0)
    for pairs, weights, block, other in edges:
        _list_pairs(
            pairs.indptr, pairs.indices, weights, False,
            counts[block][1:], *nothing, counts[other][1:], *nothing,
        )  # fmt: skip
    graphs = []
    for count in counts:
        indptr = np.cumsum(count)
        graphs.append(Graph(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1])))
    places = [graph.indptr[:-1].copy() for graph in graphs]
    for pairs, weights, block, other in edges:
        _list_pairs(
            pairs.indptr, pairs.indices, weights, True,
            places[block], graphs[block].indices, graphs[block].weights,
            places[other], graphs[other].indices, graphs[other].weights,
        )  # fmt: skip
    return graphs


@loop()
def _list_pairs(
    indptr, indices, weights, write, place, out_indices, out_weights, other_place, other_indices,
    other_weights,
):  # fmt: skip
    """Write each pair into the lists of both its rows, which may be the same; or only count them.

    Places move on by one for each pair. Pairs of weight zero are left out.
    """
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] != 0.0:
                j = indices[e]
                if write:
                    out_indices[place[i]] = j
                    out_weights[place[i]] = weights[e]
                place[i] += 1
                if write:
                    other_indices[other_place[j]] = i
                    other_weights[other_place[j]] = weights[e]
                other_place[j] += 1


@loop(fastmath={"reassoc", "contract", "nsz"})
def _gather(indptr, indices, weights, own, other, rows, total, out):
    """Sum weight * (own_i - other_j) over the pairs of some rows; ``total`` is room for a sum."""
    width = own.shape[1]
    for a in range(rows.shape[0]):
        i = rows[a]
        for k in range(width):
            total[k] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            weight = weights[e]
            j = indices[e]
            for k in range(width):
                total[k] += weight * (own[i, k] - other[j, k])
        for k in range(width):
            out[a, k] = total[k]


@loop(fastmath={"reassoc", "contract", "nsz"})
def _gather_sizes(indptr, indices, weights, own, other, lo, hi, moved, sizes, squares):
    """Sum weight * v, its size and |weight| * v^2 over the edges of rows lo..hi, in float64."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            weight = weights[e]
            j = indices[e]
            for k in range(own.shape[1]):
                v = np.float64(own[i, k]) - np.float64(other[j, k])
                step = weight * v
                moved[i - lo, k] += step
                sizes[i - lo, k] += abs(step)
                squares[k] += abs(step * v)
