"""Pairs and multipliers that stay on the workers, as the client sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Multipliers, Pattern
from lnml.kernels.cluster.layout import Cell, CellPairs, Layout


class HostPairs(Neighborhoods):
    """Pairs that the client knows, and the parts of them that cells need.

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

    def starts_in(self, cell: Cell) -> np.ndarray:
        """Where the pairs of each row of a cell begin, among all pairs of its rows."""
        return np.concatenate([[0], np.cumsum(self.layout.of_cell(cell, self.sizes))])

    def values_in(self, cell: Cell, values: np.ndarray) -> np.ndarray:
        """Values of the pairs of the rows of a cell."""
        parts = [values[self._range(block)] for block in dict.fromkeys(cell)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def add_from(self, cell: Cell, part: np.ndarray, total: np.ndarray) -> None:
        """Add values of the pairs of the rows of a cell to those of all pairs."""
        used = 0
        for block in dict.fromkeys(cell):
            mine = self._range(block)
            length = mine.stop - mine.start
            total[mine] += part[used : used + length]
            used += length

    def _range(self, block: int) -> slice:
        rows = self.layout.rows(block)
        return slice(int(self.indptr[rows.start]), int(self.indptr[rows.stop]))

    def rows_in(self, cell: Cell) -> Pattern:
        """Return all pairs of the rows of a cell; partners keep their numbers in the data."""
        return Pattern(self.starts_in(cell), self.values_in(cell, self.indices))


@dataclass(frozen=True, eq=False)
class CellPattern(Pattern):
    """Candidate pairs on the workers, by cell.

    ``indptr`` and ``indices`` are not here: nothing but a worker reads them.
    """

    futures: dict[Cell, Any]
    n_pairs: int

    def __init__(self, futures: dict[Cell, Any], n_pairs: int) -> None:
        super().__init__(None, None)
        object.__setattr__(self, "futures", futures)
        object.__setattr__(self, "n_pairs", n_pairs)

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


def joined(parts: dict[Cell, Multipliers], layout: Layout) -> Multipliers:
    """Return the multipliers of all cells, in the row numbers of the data."""
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for cell, part in parts.items():
        numbers = np.concatenate(
            [np.arange(layout.n_rows)[layout.rows(b)] for b in dict.fromkeys(cell)]
        )
        rows = np.repeat(np.arange(part.indptr.size - 1), np.diff(part.indptr))
        found = numbers[rows], numbers[part.impostor], part.slot, part.value
        for column, values in zip(columns, found, strict=True):
            column.append(values)
    rows, impostor, slot, value = (np.concatenate(column) for column in columns)
    order = np.lexsort((slot, impostor, rows))
    counts = np.bincount(rows, minlength=layout.n_rows)
    return Multipliers(
        np.concatenate([[0], np.cumsum(counts)]), impostor[order], slot[order], value[order]
    )
