"""Blocks of rows, and the cells in which their pairs are visited.

Rows, sorted by class, are cut into blocks. A cell is a pair of blocks: every pair of rows belongs
to one cell. Blocks depend on the number of rows alone, and partial sums are added cell by
cell in one order, so results do not depend on the workers (docs/cluster.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Pattern

# Rows of a block, about: few enough to balance the work, enough for fast matrix products.
BLOCK_ROWS = 10_000
LEAST_BLOCKS = 3

Cell = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Layout:
    """How rows are cut into blocks.

    Attributes
    ----------
    edges : ndarray of int, shape (n_blocks + 1,)
        Block b holds rows ``edges[b]:edges[b + 1]`` in class order.
    class_start : ndarray of int, shape (n_classes + 1,)
        First row of each class.
    """

    edges: np.ndarray
    class_start: np.ndarray

    @classmethod
    def of(cls, class_start: np.ndarray) -> Layout:
        """Cut the rows of some classes into blocks of equal size."""
        n = int(class_start[-1])
        count = min(max(LEAST_BLOCKS, -(-n // BLOCK_ROWS)), n)
        return cls(np.linspace(0, n, count + 1).astype(np.int64), class_start)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.edges[-1])

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.edges.size - 1

    @cached_property
    def cells(self) -> list[Cell]:
        """All pairs of blocks a <= b, in the order in which their sums are added."""
        return [(a, b) for a in range(self.n_blocks) for b in range(a, self.n_blocks)]

    def rows(self, block: int) -> slice:
        """Rows of a block."""
        return slice(int(self.edges[block]), int(self.edges[block + 1]))

    def size(self, block: int) -> int:
        """Return the number of rows of a block."""
        return int(self.edges[block + 1] - self.edges[block])

    def codes(self, *blocks: int) -> np.ndarray:
        """Class of every row of some blocks, each of which counts once."""
        parts = [np.arange(*self.edges[b : b + 2]) for b in dict.fromkeys(blocks)]
        return np.searchsorted(self.class_start, np.concatenate(parts), side="right") - 1

    def by_block(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut values of rows into those of each block."""
        return [values[self.rows(block)] for block in range(self.n_blocks)]

    def of_cell(self, cell: Cell, values: np.ndarray) -> np.ndarray:
        """Values of the rows of a cell: those of its first block, then those of its second."""
        parts = [values[self.rows(block)] for block in dict.fromkeys(cell)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def add_cell(self, cell: Cell, part: np.ndarray, total: np.ndarray) -> None:
        """Add values of the rows of a cell, along the last axis, to those of all rows."""
        used = 0
        for block in dict.fromkeys(cell):
            total[..., self.rows(block)] += part[..., used : used + self.size(block)]
            used += self.size(block)

    def split(self, pairs: Pattern) -> dict[Cell, CellPairs]:
        """Deal pairs out to the cells that hold both their rows."""
        rows = np.repeat(np.arange(self.n_rows), pairs.sizes)
        ends = rows, pairs.indices.astype(np.int64)
        first, second = (np.searchsorted(self.edges, end, side="right") - 1 for end in ends)
        low, high = np.minimum(first, second), np.maximum(first, second)
        keys = low * self.n_blocks + high
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        found = {}
        for places in np.split(order, cuts) if order.size else []:
            a, b = cell = (int(low[places[0]]), int(high[places[0]]))
            local = [self._local(end[places], a, b) for end in ends]
            size = self.size(a) + (self.size(b) if b != a else 0)
            counts = np.bincount(local[0], minlength=size)
            indptr = np.concatenate([[0], np.cumsum(counts)])
            found[cell] = CellPairs(places, Pattern(indptr, local[1].astype(np.int32)))
        return found

    def _local(self, rows: np.ndarray, a: int, b: int) -> np.ndarray:
        """Numbers of rows within a cell."""
        return np.where(
            rows < self.edges[a + 1],
            rows - self.edges[a],
            rows - self.edges[b] + (self.size(a) if a != b else 0),
        )


class CellPairs(NamedTuple):
    """The pairs of a cell.

    Attributes
    ----------
    places : ndarray of int
        Where they stand in the pattern they come from.
    pairs : Pattern
        The same pairs, in the row numbers of the cell.
    """

    places: np.ndarray
    pairs: Pattern
