"""Blocks of rows, and the cells in which their pairs are visited.

Rows, sorted by class, are cut into blocks. A cell is a pair of blocks: every pair of rows belongs
to one cell. Blocks depend on the number of rows alone, and sums over cells do not depend on their
order, so results do not depend on the workers (docs/cluster.md).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from lnml.core.pairs import Multipliers, Pattern

# Rows of a block, about: few enough to balance the work, enough for fast matrix products.
BLOCK_ROWS = 10_000
LEAST_BLOCKS = 3
# Tasks and partial results grow with the square of the number of blocks.
MOST_BLOCKS = 64

Cell = tuple[int, int]
# Lists of the rows of a block, or of a cell.
Lists = TypeVar("Lists", Pattern, Multipliers)


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
        count = min(max(LEAST_BLOCKS, -(-n // BLOCK_ROWS)), MOST_BLOCKS, n)
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
        """All pairs of blocks a <= b."""
        return [(a, b) for a in range(self.n_blocks) for b in range(a, self.n_blocks)]

    def rows(self, block: int) -> slice:
        """Rows of a block."""
        return slice(int(self.edges[block]), int(self.edges[block + 1]))

    def size(self, block: int) -> int:
        """Return the number of rows of a block."""
        return int(self.edges[block + 1] - self.edges[block])

    def n_pairs(self, cell: Cell) -> float:
        """Return the number of pairs of rows that a cell visits."""
        a, b = cell
        return self.size(a) * self.size(b) * (0.5 if a == b else 1.0)

    def codes(self, block: int) -> np.ndarray:
        """Class of every row of a block."""
        rows = np.arange(*self.edges[block : block + 2])
        return np.searchsorted(self.class_start, rows, side="right") - 1

    def by_block(self, values: np.ndarray) -> list[np.ndarray]:
        """Cut values of rows into those of each block."""
        return [values[self.rows(block)] for block in range(self.n_blocks)]

    def split(self, pairs: Pattern) -> dict[Cell, CellPairs]:
        """Deal pairs out to the cells that hold both their rows."""
        rows = np.repeat(np.arange(self.n_rows), pairs.sizes)
        partners = pairs.indices.astype(np.int64)
        first, second = (np.searchsorted(self.edges, e, side="right") - 1 for e in (rows, partners))
        keys = first * self.n_blocks + second
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        halves: dict[Cell, np.ndarray] = {}
        for places in np.split(order, cuts) if order.size else []:
            halves[int(first[places[0]]), int(second[places[0]])] = places
        found = {}
        for cell in sorted({(min(key), max(key)) for key in halves}):
            parts = [halves.get(way, np.zeros(0, np.int64)) for way in ways(cell)]
            ends = [
                (
                    (rows[own] - self.edges[a]).astype(np.int32),
                    (partners[own] - self.edges[b]).astype(np.int32),
                )
                for (a, b), own in zip(ways(cell), parts, strict=True)
            ]
            sizes = [self.size(a) for a, _ in ways(cell)]
            found[cell] = CellPairs(np.concatenate(parts), ends, sizes)
        return found


class CellPairs(NamedTuple):
    """The pairs of a cell.

    Attributes
    ----------
    places : ndarray of int
        Where they stand in the pattern they come from, half by half.
    ends : list of pairs of ndarrays of int
        Rows and partners by the :func:`ways` of the cell: rows are those of one block, in rising
        order, partners are numbered in the other.
    sizes : list of int
        Number of rows of the block that has the rows.
    """

    places: np.ndarray
    ends: list[tuple[np.ndarray, np.ndarray]]
    sizes: list[int]


def listed(ends: list[tuple[np.ndarray, np.ndarray]], sizes: list[int]) -> list[Pattern]:
    """Return the pairs of a cell in lists of rows, by ways; see :class:`CellPairs`.

    Most rows have no pairs in most cells: where the lists begin takes more than their ends.
    """
    return [
        Pattern(offsets(np.bincount(rows, minlength=size)), partners)
        for (rows, partners), size in zip(ends, sizes, strict=True)
    ]


def ways(cell: Cell) -> list[Cell]:
    """Return the ways in which a cell has pairs: from one block to the other, and back."""
    a, b = cell
    return [(a, b)] if a == b else [(a, b), (b, a)]


def cut_ways(lists: Lists, first: int) -> list[Lists]:
    """Cut the lists of a cell, whose first block has ``first`` rows, into those of each way.

    In a cell the rows of two blocks are numbered one after the other.
    """
    indptr, partners, *others = (getattr(lists, field.name) for field in fields(lists))
    if first == indptr.shape[0] - 1:
        return [lists]
    cut, kind = int(indptr[first]), type(lists)
    return [
        kind(indptr[: first + 1], partners[:cut] - first, *(each[:cut] for each in others)),
        kind(indptr[first:] - cut, partners[cut:], *(each[cut:] for each in others)),
    ]


def join_ways(ways: list[Lists]) -> Lists:
    """Return the lists of all rows of a cell, given those of each way."""
    if len(ways) == 1:
        return ways[0]
    columns = [[getattr(way, field.name) for way in ways] for field in fields(ways[0])]
    starts, (there, back), *others = columns
    first = starts[0].size - 1
    joined = [np.concatenate([there + np.int32(first), back])]
    return type(ways[0])(join_starts(starts), *joined, *map(np.concatenate, others))


def with_pairs(pairs: list[Pattern]) -> tuple[list[np.ndarray], list[Pattern]]:
    """Return which rows of each block have pairs in a cell, and the pairs numbered among them.

    Parameters
    ----------
    pairs : list of Pattern
        Pairs of a cell, by its :func:`ways`.

    Returns
    -------
    taken : list of ndarrays of bool, shapes (n_b,)
    pairs : list of Pattern
    """
    taken = [each.sizes > 0 for each in pairs]
    others = taken[::-1]
    for each, partners in zip(pairs, others, strict=True):
        partners[each.indices] = True
    found = []
    for each, mine, partners in zip(pairs, taken, others, strict=True):
        numbers = (np.cumsum(partners) - 1).astype(np.int32)
        starts = np.concatenate([[0], each.indptr[1:][mine]])
        found.append(Pattern(starts, numbers[each.indices]))
    return taken, found


def join_starts(starts: list[np.ndarray]) -> np.ndarray:
    """Return where the lists of all rows of a cell begin, given those of each block."""
    ends = offsets(np.array([each[-1] for each in starts]))
    parts = [each[1:] + end for each, end in zip(starts, ends[:-1], strict=True)]
    return np.concatenate([[0], *parts])


def offsets(counts: np.ndarray) -> np.ndarray:
    """Return 0 and the running sums of counts."""
    return np.concatenate([[0], np.cumsum(counts)])
