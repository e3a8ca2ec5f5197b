"""Pairs and multipliers that stay on the workers, as the client sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Multipliers, Pattern
from lnml.kernels.cluster.layout import Cell, CellPairs, Layout, offsets, ways


class HostPairs(Neighborhoods):
    """Pairs that the client knows, and the parts of them that blocks and cells need.

    Parts are sent to the workers once, as arguments of a task.
    """

    layout: Layout
    placed: dict[Any, Any]

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, layout: Layout) -> None:
        super().__init__(indptr, indices)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "placed", {})

    @cached_property
    def cells(self) -> dict[Cell, CellPairs]:
        """Pairs by the cell that holds both their rows."""
        return self.layout.split(self)

    def starts_in(self, block: int) -> np.ndarray:
        """Where the pairs of each row of a block begin, among those of the block."""
        rows = self.layout.rows(block)
        return np.asarray(self.indptr[rows.start : rows.stop + 1] - self.indptr[rows.start])

    def range(self, block: int) -> slice:
        """Return where the pairs of the rows of a block are."""
        rows = self.layout.rows(block)
        return slice(int(self.indptr[rows.start]), int(self.indptr[rows.stop]))

    def rows_in(self, block: int) -> Pattern:
        """Return all pairs of the rows of a block; partners keep their numbers in the data."""
        return Pattern(self.starts_in(block), self.indices[self.range(block)])


@dataclass(frozen=True, eq=False)
class CellPattern(Pattern):
    """Candidate pairs on the workers, by cell.

    ``indptr`` and ``indices`` are not here: nothing but a worker reads them.

    Attributes
    ----------
    futures : dict
        Pairs of each cell.
    n_pairs : int
        Number of all pairs.
    longest : int
        No row has more pairs.
    """

    futures: dict[Cell, Any]
    n_pairs: int
    longest: int

    def __init__(self, futures: dict[Cell, Any], n_pairs: int, longest: int) -> None:
        super().__init__(None, None)
        object.__setattr__(self, "futures", futures)
        object.__setattr__(self, "n_pairs", n_pairs)
        object.__setattr__(self, "longest", longest)

    @property
    def size(self) -> int:
        """Number of pairs."""
        return self.n_pairs


@dataclass(frozen=True, eq=False)
class CellMultipliers(Multipliers):
    """Multipliers on the workers, by cell."""

    futures: dict[Cell, Any]
    most: float

    def __init__(self, futures: dict[Cell, Any], most: float) -> None:
        super().__init__(None, None, None, None)
        object.__setattr__(self, "futures", futures)
        object.__setattr__(self, "most", most)

    @property
    def largest(self) -> float:
        """Largest multiplier; zero if there is none."""
        return self.most


def joined(parts: dict[Cell, list[Multipliers]], layout: Layout) -> Multipliers:
    """Return the multipliers of all cells, in the row numbers of the data."""
    columns: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(3)]
    columns.append([np.zeros(0)])
    for cell, halves in parts.items():
        for (block, other), part in zip(ways(cell), halves, strict=True):
            rows = np.repeat(np.arange(part.indptr.size - 1), np.diff(part.indptr))
            impostor = part.impostor + layout.edges[other]
            found = rows + layout.edges[block], impostor, part.slot, part.value
            for column, values in zip(columns, found, strict=True):
                column.append(values)
    rows, impostor, slot, value = (np.concatenate(column) for column in columns)
    order = np.lexsort((slot, impostor, rows))
    counts = np.bincount(rows, minlength=layout.n_rows)
    return Multipliers(offsets(counts), impostor[order], slot[order], value[order])
