"""What a worker does for softmax sums: the pairs of a cell, and rows far from all others.

Weights are powers of two, shifted as in :mod:`lnml.kernels.cpu.pair_weights`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.kernels.cluster.cells import CellRows, ClassCounts, worker_tiles
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.softmax_tiles import UNIT


def totals_cell(
    rows: CellRows, classes: dict[int, ClassCounts], row_map: RowMap
) -> list[np.ndarray]:
    """Return sums of the weights of each row's pairs, by kind: (2, n_b) for each block."""
    return worker_tiles().totals(rows.mapped(row_map), rows.codes(classes))


def moment_cell(
    rows: CellRows,
    classes: dict[int, ClassCounts],
    factors: dict[int, np.ndarray],
    row_map: RowMap,
    full: bool,
) -> np.ndarray:
    """V^T Lap(S) rows, S_ij = (factor_i + factor_j) times the weight of the pair.

    V are the rows as they were placed if ``full``, else those under the map.
    """
    z, placed = rows.mapped(row_map), rows.placed()
    return worker_tiles().products(z, placed, rows.codes(classes), rows.each(factors), full)


class FarBlock(NamedTuple):
    """Rows far from all others, as a block of rows sees them.

    Attributes
    ----------
    numbers, kinds : ndarrays of int, shape (m,)
        Numbers and classes of the far rows.
    coordinates, placed : ndarrays of shape (m, r), (m, d)
        The far rows under the metric, and as they were placed.
    largest : ndarray of shape (m,)
        Their largest exponents, once they are known.
    first : int
        Number of the first row of the block.
    codes : ndarray of int, shape (n_b,)
        Class of each row of the block.
    """

    numbers: np.ndarray
    kinds: np.ndarray
    coordinates: np.ndarray
    placed: np.ndarray
    largest: np.ndarray
    first: int
    codes: np.ndarray

    def exponents(self, block: np.ndarray, row_map: RowMap) -> np.ndarray:
        """Exponents of the weights of far rows and rows of the block; -inf for themselves."""
        z = row_map(block) * UNIT
        found = -np.stack([np.square(z - far * UNIT).sum(axis=1) for far in self.coordinates])
        own = (self.numbers >= self.first) & (self.numbers < self.first + len(z))
        found[np.flatnonzero(own), self.numbers[own] - self.first] = -np.inf
        return found

    def weights(self, block: np.ndarray, row_map: RowMap) -> np.ndarray:
        """Weights of the same pairs, relative to the largest of each far row."""
        return np.exp2(self.exponents(block, row_map) - self.largest[:, None])

    @property
    def same(self) -> np.ndarray:
        """Whether far rows and rows of the block are of one class, shape (m, n_b)."""
        return self.kinds[:, None] == self.codes


def far_largest(block: np.ndarray, row_map: RowMap, far: FarBlock) -> np.ndarray:
    """Largest exponent of each far row."""
    return far.exponents(block, row_map).max(axis=1)


def far_totals(block: np.ndarray, row_map: RowMap, far: FarBlock) -> np.ndarray:
    """Return sums of weights of far rows: over other classes, then over their own."""
    weights, same = far.weights(block, row_map), far.same
    return np.stack([(weights * ~same).sum(axis=1), (weights * same).sum(axis=1)])


def far_moment(
    block: np.ndarray, row_map: RowMap, far: FarBlock, factors: np.ndarray, full: bool
) -> np.ndarray:
    """Sum of factor * weight * (V_i - V_j) (x_i - x_j)^T over far rows i and rows j of a block."""
    weights = far.weights(block, row_map)
    weights *= np.where(far.same, factors[1][:, None], factors[0][:, None])
    values, ends = (block, far.placed) if full else (row_map(block), far.coordinates)
    total = np.zeros((values.shape[1], block.shape[1]))
    for own, value, row in zip(weights, ends, far.placed, strict=True):
        total += (own[:, None] * (value - values)).T @ (row - block)
    return total
