"""Sums over all triplets, whose impostors are found again for a few rows at a time."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Edge, EdgeScatter, Hinge, Pattern, WorkingSet
from lnml.core.points import Embedding, Points
from lnml.kernels.cpu.compiling import loop
from lnml.kernels.cpu.hinge import hinge_sums
from lnml.kernels.cpu.laplacian import Weighted, edge_scatter
from lnml.kernels.cpu.laplacian import moment as weighted_moment
from lnml.kernels.cpu.products import gram
from lnml.kernels.cpu.search import RowSearch
from lnml.kernels.cpu.threads import each_tile
from lnml.kernels.streaming import blocks_of_rows
from lnml.kernels.tiles import row_tiles

# Rows are dealt out to threads in so many parts, with at least so many rows each.
_PARTS = 16
_ROWS_PER_PART = 1024
_ROWS_PER_TILE = 4096


class _Push:
    """Collects Lap(W + W^T) V of the impostors, W the slopes of pairs, block by block.

    Parameters
    ----------
    values : ndarray of shape (n, r)
        V.
    sized : bool
        Whether to collect what a bound of rounding needs.

    Attributes
    ----------
    moved : ndarray of shape (n, r)
        The product so far.
    sizes : ndarray of shape (n, r)
        The same sum of absolute values, if it was asked for.
    squares : ndarray of shape (r,)
        Sum of weight * v_k^2 over all pairs, if it was asked for.
    """

    def __init__(self, values: np.ndarray, sized: bool) -> None:
        self._values, self._sized = values, sized
        self.moved, self.squares = np.zeros(values.shape), np.zeros(values.shape[1])
        self.sizes = np.zeros(values.shape if sized else (0, 0))

    def add(self, rows: tuple[int, int], pushed: Pattern, weights: np.ndarray) -> None:
        """Take the impostors of some rows."""
        own = self._values[slice(*rows)]
        pairs = pushed.indptr, pushed.indices, weights, own, self._values

        def columns(part: tuple[int, int]) -> tuple[np.ndarray, ...]:
            moved, squares = np.zeros(own.shape), np.zeros(own.shape[1])
            sizes = np.zeros(own.shape if self._sized else (0, 0))
            summed = moved, self.moved, self._sized, sizes, self.sizes, squares
            _push_columns(*pairs, *part, *summed)
            return moved, sizes, squares

        n, here = len(self._values), slice(*rows)
        parts = row_tiles(n, max(_ROWS_PER_PART, -(-n // _PARTS)))
        # Apart from the sums so far: other threads still add to these.
        moved_here, sizes_here = np.zeros(own.shape), np.zeros(own.shape if self._sized else (0, 0))
        for moved, sizes, squares in each_tile(columns, parts):
            moved_here += moved
            sizes_here += sizes
            self.squares += squares
        self.moved[here] += moved_here
        if self._sized:
            self.sizes[here] += sizes_here


def hinge(
    embedding: Embedding,
    targets: Pattern,
    target_distances: np.ndarray,
    radius: np.ndarray,
    gamma: float,
    moment: str,
    room: int,
) -> Hinge:
    """See :meth:`lnml.kernels.protocol.Kernels.hinge`; impostors count within a radius alone.

    ``room`` is the largest number of impostors that are kept at a time.
    """
    z, data = embedding.coordinates, embedding.points.data
    totals, push = np.zeros(4), None
    if moment:
        push = _Push(z if moment == "coordinates" else data, moment == "scatter")
    target_weights, target_hinge = np.zeros((2, targets.size))
    search = RowSearch(embedding, radius)
    for rows, pairs, own, candidates in blocks_of_rows(targets, len(z), room, search):
        working = WorkingSet(own, candidates)
        sums = hinge_sums(z[slice(*rows)], z, working, target_distances[pairs], gamma)
        totals += sums.totals
        target_weights[pairs], target_hinge[pairs] = sums.target_weights, sums.target_hinge
        if push is not None:
            push.add(rows, sums.pushed, sums.push_weights)
        # Not beside those of the next block.
        del candidates, working, sums
    smoothed, exact, slope_sum, n_active = totals.tolist()
    found = Hinge(smoothed, exact, slope_sum, int(n_active), target_hinge)
    if push is None:
        return found
    if moment == "scatter":
        scatter = edge_scatter(embedding.points, [Edge(targets, target_weights)])
        scatter = scatter.plus(_scatter(embedding.points, push))
        return found._replace(target_slopes=target_weights, scatter=scatter)
    values, exactly = (data, True) if moment == "data" else (z, False)
    edges = [Weighted(targets, target_weights)]
    pulled = weighted_moment(edges, [values], [data], exact=exactly)
    return found._replace(moment=pulled - gram(push.moved, data))


def _scatter(points: Points, push: _Push) -> EdgeScatter:
    """Minus the scatter of the impostors, with its rounding.

    As in :func:`lnml.kernels.cpu.laplacian.edge_scatter`, a collected sum is off by a share of
    the sum of its sizes, a product by a share of those of its factors.
    """
    rows, (n, width) = points.data, points.data.shape
    shift = rows.mean(axis=0, dtype=np.float64)
    matrix = np.zeros((width, width))
    sizes, lengths = np.zeros((2, width))
    for lo, hi in row_tiles(n, _ROWS_PER_TILE):
        centred = rows[lo:hi] - shift
        matrix -= push.moved[lo:hi].T @ centred
        sizes += np.einsum("ij,ij->j", push.sizes[lo:hi], push.sizes[lo:hi])
        lengths += np.einsum("ij,ij->j", centred, centred)
    # A row is met from both ends of up to n pairs, in up to n blocks; the product has n terms.
    share = 1.01 * (4 * n + 2 * _ROWS_PER_TILE) * 0.5 * np.finfo(np.float64).eps
    return EdgeScatter(
        0.5 * (matrix + matrix.T), 1.01 * push.squares, share * np.sqrt(sizes), np.sqrt(lengths)
    )


@loop(fastmath={"reassoc", "contract", "nsz"})
def _push_columns(
    indptr, indices, weights, own, others, begin, end, moved, other_moved, sized, sizes,
    other_sizes, squares,
):  # fmt: skip
    """Add weight * difference to both rows of the pairs whose column is in a range.

    If ``sized``, also add up the sizes of that, and weight * difference^2.
    """
    for i in range(indptr.shape[0] - 1):
        listed = indices[indptr[i] : indptr[i + 1]]
        for place in range(np.searchsorted(listed, begin), listed.shape[0]):
            j = listed[place]
            if j >= end:
                break
            weight = weights[indptr[i] + place]
            if weight == 0.0:
                continue
            for k in range(own.shape[1]):
                difference = np.float64(own[i, k]) - np.float64(others[j, k])
                step = weight * difference
                moved[i, k] += step
                other_moved[j, k] -= step
                if sized:
                    sizes[i, k] += abs(step)
                    other_sizes[j, k] += abs(step)
                    squares[k] += step * difference
