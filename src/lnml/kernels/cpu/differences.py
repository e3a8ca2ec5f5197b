"""Sums over all pairs of rows that lie far from each other, from differences of rows.

A matrix product gives |a|^2 + |b|^2 - 2 a.b, which loses the distance of two rows that
are near each other and far from the origin; a mean of all rows loses digits of the rows.
So nothing is centred here, and all sums are over differences, in float64. Every row
gathers its own sums: no n x n array, and nothing depends on the number of threads.
"""

from __future__ import annotations

import numpy as np

from lnml.core.points import Embedding, Points
from lnml.kernels.cpu.compiling import helper, loop
from lnml.kernels.cpu.distances import squared_distance
from lnml.kernels.cpu.products import gram
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# Rows of a tile; partners they are compared with before the next ones are loaded.
TILE_ROWS, TILE_COLUMNS = 64, 256

Ranges = tuple[np.ndarray, np.ndarray]


def class_ranges(points: Points, by_class: bool = True) -> Ranges:
    """First row of each row's class, and the first row after it; all are one unless by class."""
    class_start, row_class = points.class_start, points.row_class
    if not by_class:
        class_start = np.array([0, points.n_rows])
        row_class = np.zeros(points.n_rows, dtype=np.int32)
    return class_start[row_class], class_start[row_class + 1]


def root_sums(embedding: Embedding, floor: float) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.root_sums`; roots below ``floor`` are continued."""
    z, data = embedding.coordinates, embedding.points.data
    ranges = class_ranges(embedding.points)
    moved = np.zeros(data.shape)
    tiles = row_tiles(data.shape[0], TILE_ROWS)
    total = sum(run_tiles(lambda tile: _add_roots(z, ranges, floor, data, tile, moved), tiles))
    half = gram(moved, data)
    return float(total), half + half.T


class DifferenceSoftmax:
    """The same as :class:`lnml.kernels.cpu.softmax.PairSoftmax`, from differences.

    Weights are relative to the largest of their row, so that no row's underflow.

    Parameters
    ----------
    embedding : Embedding
        The rows.
    by_class : bool
        Whether to tell partners of other classes from those of the row's class.

    Attributes
    ----------
    log_normalizers : ndarray of shape (n,)
        Logs of Z_i.
    shares : ndarray of shape (n_kinds, n)
        Sums of P_ij over partners of other classes (first) and of the row's class (last).
    """

    def __init__(self, embedding: Embedding, by_class: bool) -> None:
        self.data, self.coordinates = embedding.points.data, embedding.coordinates
        n = self.data.shape[0]
        self._ranges = class_ranges(embedding.points, by_class)
        self._nearest = np.empty(n)
        totals = np.zeros((2 if by_class else 1, n))
        run_tiles(
            lambda tile: _add_totals(self.coordinates, self._ranges, tile, self._nearest, totals),
            row_tiles(n, TILE_ROWS),
        )
        self._total = totals.sum(axis=0)
        self.log_normalizers = np.log(self._total) - self._nearest
        self.shares = totals / self._total

    def moment(self, coefficients: np.ndarray, full: bool) -> np.ndarray:
        """V^T Lap(W + W^T) data, W_ij = coefficient_i P_ij.

        Parameters
        ----------
        coefficients : ndarray of shape (n_kinds, n)
            For partners of other classes (first) and of the row's class (last).
        full : bool
            Whether V are the data; else they are the coordinates.
        """
        z, values = self.coordinates, self.data if full else self.coordinates
        factors = coefficients / self._total
        moved = np.zeros(values.shape)
        run_tiles(
            lambda tile: _add_weighted(
                z, self._ranges, factors, self._nearest, values, tile, moved
            ),
            row_tiles(values.shape[0], TILE_ROWS),
        )
        found = gram(moved, self.data)
        return 0.5 * (found + found.T) if full else found


@helper()
def _squares(z, row, first, out):
    """Squared distances of a row from those that begin at ``first``; infinite from itself."""
    here = z[row].astype(np.float64)
    for j in range(out.size):
        out[j] = squared_distance(here, z[first + j])
    if first <= row < first + out.size:
        out[row - first] = np.inf


@helper()
def _add_differences(weights, values, row, first, out):
    """Add weight * (value of the row - value of its partner), for partners from ``first`` on."""
    here = values[row].astype(np.float64)
    for j in range(weights.size):
        weight = weights[j]
        if weight != 0.0:
            for k in range(here.size):
                out[k] += weight * (here[k] - values[first + j, k])


@loop()
def _add_totals(z, ranges, tile, nearest, totals):
    """Least squared distances of some rows; sums of exp(least - D) over both kinds of partners."""
    start, end = ranges
    squares = np.empty(z.shape[0])
    last = totals.shape[0] - 1
    for i in range(tile[0], tile[1]):
        _squares(z, i, 0, squares)
        least = np.inf
        for j in range(squares.size):
            least = min(least, squares[j])
        nearest[i] = least
        for j in range(squares.size):
            kind = last if start[i] <= j < end[i] else 0
            totals[kind, i] += np.exp(least - squares[j])


@loop()
def _add_weighted(z, ranges, factors, nearest, values, tile, moved):
    """Add Lap(S) @ values of some rows, S_ij = factor_i exp(least_i - D_ij) + the same of j."""
    start, end = ranges
    n = z.shape[0]
    room = np.empty(TILE_COLUMNS)
    same = factors.shape[0] - 1
    for first in range(0, n, TILE_COLUMNS):
        weights = room[: min(TILE_COLUMNS, n - first)]
        for i in range(tile[0], tile[1]):
            _squares(z, i, first, weights)
            for k in range(weights.size):
                j = first + k
                kind = same if start[i] <= j < end[i] else 0
                mine = factors[kind, i] * np.exp(nearest[i] - weights[k])
                weights[k] = mine + factors[kind, j] * np.exp(nearest[j] - weights[k])
            _add_differences(weights, values, i, first, moved[i])


@loop()
def _add_roots(z, ranges, floor, values, tile, moved):
    """Add Lap(W) @ values of some rows, W_il = 1 / (2 sqrt(D_il)); return the sum of the roots."""
    start, end = ranges
    n, total = z.shape[0], 0.0
    room = np.empty(TILE_COLUMNS)
    for first in range(0, n, TILE_COLUMNS):
        weights = room[: min(TILE_COLUMNS, n - first)]
        for i in range(tile[0], tile[1]):
            _squares(z, i, first, weights)
            for k in range(weights.size):
                if start[i] <= first + k < end[i]:
                    weights[k] = 0.0
                else:
                    root = max(np.sqrt(weights[k]), floor)
                    total += 0.5 * (weights[k] / root + root)
                    weights[k] = 0.5 / root
            _add_differences(weights, values, i, first, moved[i])
    return total
