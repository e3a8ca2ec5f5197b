"""What a worker does for softmax sums: the pairs of a cell, and rows far from all others.

Weights are powers of two, shifted as in :mod:`lnml.kernels.cpu.pair_weights`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.kernels.cluster.cells import CellRows
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cpu.exponential import CONSTANTS
from lnml.kernels.cpu.pair_weights import BLOCK, GROUPS, add_products, add_totals
from lnml.kernels.cpu.products import centred, gram
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# In these units exp(-D) is 2 to the power of minus the squared distance.
UNIT = np.sqrt(1.0 / np.log(2.0))


class CellPowers(NamedTuple):
    """Arguments of the compiled sums for the pairs of a cell.

    Attributes
    ----------
    rows : tuple
        See :mod:`lnml.kernels.cpu.pair_weights`.
    window : tuple (row_end, column_first)
        The pairs of a block with itself, or of two blocks.
    n_groups : int
        Number of groups that have rows.
    """

    rows: tuple[np.ndarray, ...]
    window: tuple[int, int]
    n_groups: int

    @classmethod
    def of(cls, rows: CellRows, codes: np.ndarray, row_map: RowMap) -> CellPowers:
        """Prepare the coordinates of a cell."""
        z = centred(rows.mapped(row_map)) * UNIT
        n, first = len(z), rows.first_size
        alone = len(rows.blocks) == 1
        begin = 0 if alone else first
        kinds = codes[begin:]
        own = [begin + np.searchsorted(kinds, codes, side=side) for side in ("left", "right")]
        tiles = [(lo + begin, hi + begin) for lo, hi in row_tiles(n - begin, BLOCK)]
        ahead = [z[:begin].T.ravel()] if begin else []
        columns = np.concatenate([*ahead, *(z[lo:hi].T.ravel() for lo, hi in tiles)])
        norms = np.einsum("ij,ij->i", z, z)
        window = (n, 0) if alone else (first, first)
        count = min(GROUPS, -(-window[0] // BLOCK))
        return cls((z, columns, norms, *own), window, count)


def totals_cell(rows: CellRows, codes: np.ndarray, row_map: RowMap, n_kinds: int) -> np.ndarray:
    """Return sums of the weights of each row's pairs, by kind: (n_kinds, rows of the cell)."""
    powers = CellPowers.of(rows, codes, row_map)
    z = powers.rows[0]

    def of_group(group: int) -> np.ndarray:
        totals = np.zeros((n_kinds, len(z)))
        add_totals(powers.rows, powers.window, CONSTANTS["float64"], group, totals)
        return totals

    found = np.zeros((n_kinds, len(z)))
    for part in run_tiles(of_group, range(powers.n_groups)):
        found += part
    return found


def moment_cell(
    rows: CellRows, codes: np.ndarray, row_map: RowMap, factors: np.ndarray, full: bool
) -> np.ndarray:
    """V^T Lap(S) rows, S_ij = (factor_i + factor_j) times the weight of the pair.

    V are the rows as they were placed if ``full``, else those under the map.
    """
    powers = CellPowers.of(rows, codes, row_map)
    placed = centred(rows.placed().astype(np.float64, copy=False))
    values = placed if full else centred(rows.mapped(row_map))
    n, width = values.shape
    product, degree = np.zeros((n, width)), np.zeros(n)

    def of_group(group: int) -> tuple[np.ndarray, np.ndarray]:
        part, mirrored = np.zeros(n), np.zeros((0 if full else n, width))
        add_products(
            powers.rows, powers.window, CONSTANTS["float64"], group, factors, values, part,
            product, mirrored,
        )  # fmt: skip
        return part, mirrored

    for part, mirrored in run_tiles(of_group, range(powers.n_groups)):
        degree += part
        product[: len(mirrored)] += mirrored
    if full:
        half = gram(0.5 * degree[:, None] * placed - product, placed)
        return half + half.T
    return gram(degree[:, None] * values - product, placed)


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
