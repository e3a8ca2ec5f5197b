"""What a worker does for a cell: tiles of the CPU, on the rows of two blocks.

Everything here is a pure function of its arguments: what a dead worker held is computed again by
another one. Rows of a cell are those of its first block, then those of its second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lnml.core.pairs import Edge, EdgeScatter, Multipliers, Pattern, WorkingSet
from lnml.core.points import Points
from lnml.kernels.cluster.layout import Cell
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cpu.distances import pattern_distances
from lnml.kernels.cpu.hinge import hinge_sums, slopes, work_tiles
from lnml.kernels.cpu.laplacian import edge_scatter, laplacian
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.patterns import carry_over
from lnml.kernels.cpu.products import gram
from lnml.kernels.cpu.search import Window, within_window
from lnml.kernels.cpu.threads import run_tiles, single_threaded_blas

# Mapped blocks of the last maps, so that the phases of one evaluation map rows once.
_MAPS_KEPT = 2
_mapped: dict[str, dict[str, np.ndarray]] = {}


# What a task gets for a cell: the fields of its CellRows, and arguments of its own. Both are plain
# lists and dicts, in which the scheduler finds what is to be brought to the worker.
CellTask = tuple[list[Any], dict[str, Any]]


class CellRows(NamedTuple):
    """The rows of a cell on a worker.

    Attributes
    ----------
    cell : Cell
        Its two blocks.
    blocks : list of ndarray
        Rows of one block, or of two, as they were placed.
    names : list of str
        Names of the blocks.
    """

    cell: Cell
    blocks: list[np.ndarray]
    names: list[str]

    @property
    def first_size(self) -> int:
        """Number of rows of the first block."""
        return len(self.blocks[0])

    def mapped(self, row_map: RowMap) -> np.ndarray:
        """Rows of the cell under a map."""
        parts = [
            _block_under(row_map, name, block)
            for name, block in zip(self.names, self.blocks, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def placed(self) -> np.ndarray:
        """Rows of the cell as they were placed."""
        return self.blocks[0] if len(self.blocks) == 1 else np.concatenate(self.blocks)


def forget() -> None:
    """Let go of mapped blocks."""
    _mapped.clear()


def _block_under(row_map: RowMap, name: str, block: np.ndarray) -> np.ndarray:
    """Return the rows of a block under a map; the last ones are kept."""
    known = _mapped.get(row_map.token)
    if known is None:
        for old in list(_mapped)[: max(0, len(_mapped) - _MAPS_KEPT + 1)]:
            _mapped.pop(old, None)
        known = _mapped.setdefault(row_map.token, {})
    found = known.get(name)
    if found is None:
        found = known[name] = row_map(block)
    return found


def run_cells(task: Callable[..., Any], cells: list[CellTask], shared: dict[str, Any]) -> list[Any]:
    """Run a task for some cells, one after the other; its tiles use all threads."""
    with single_threaded_blas():
        return [task(CellRows(*rows), **own, **shared) for rows, own in cells]


def pair_lengths(rows: CellRows, pairs: Pattern, row_map: RowMap) -> np.ndarray:
    """Squared distances of some pairs."""
    z, out = rows.mapped(row_map), np.empty(pairs.size)
    run_tiles(
        lambda tile: pattern_distances(z, pairs.indptr, pairs.indices, tile[0], tile[1], out),
        work_tiles(pairs),
    )
    return out


def pair_moment(rows: CellRows, pairs: Pattern, weights: np.ndarray, row_map: RowMap) -> np.ndarray:
    """V^T Lap(W + W^T) rows, V the rows under a map."""
    moved = laplacian([(pairs, weights)], rows.mapped(row_map))
    return gram(moved, rows.placed())


def pair_scatter(
    rows: CellRows, pairs: Pattern, weights: np.ndarray, row_map: RowMap
) -> EdgeScatter:
    """Sum of weight * v v^T over some pairs, with its rounding."""
    z = rows.mapped(row_map)
    points = Points(z, np.array([0, len(z)]))
    return edge_scatter(points, [Edge(pairs, weights)])


def search(
    rows: CellRows, codes: np.ndarray, radius: np.ndarray, row_map: RowMap, most: int | None
) -> Pattern:
    """Pairs of different class within a radius."""
    z = rows.mapped(row_map)
    n, first = len(z), rows.first_size
    if len(rows.blocks) == 1:
        # Rows are sorted by class: the pairs beyond its class are met from the first row.
        ends = np.searchsorted(codes, codes, side="right")
        window = Window((0, n), (0, n), (np.zeros_like(ends), ends), two_way=True)
    else:
        others = codes[first:]
        own = (first + np.searchsorted(others, codes, side=side) for side in ("left", "right"))
        window = Window((0, first), (first, n), (next(own), next(own)), two_way=True)
    return within_window(z, codes, radius, window, most)


def nearest(
    rows: CellRows, codes: np.ndarray, row_map: RowMap, k: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Distances and numbers of the nearest rows of the same class, for the rows of each block.

    Rows of a block look at the other one; numbers count from the first row of that.
    """
    z, first = rows.mapped(row_map), rows.first_size
    if len(rows.blocks) == 1:
        starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [len(z)]])
        return [nearest_in_ranges(z, starts, z, starts, k, True)]
    parts, kinds = (z[:first], z[first:]), (codes[:first], codes[first:])
    every = np.unique(codes)
    one, two = (np.append(np.searchsorted(each, every), each.size) for each in kinds)
    return [
        nearest_in_ranges(parts[0], one, parts[1], two, k, False),
        nearest_in_ranges(parts[1], two, parts[0], one, k, False),
    ]


def hinge_cell(
    rows: CellRows,
    targets: np.ndarray,
    candidates: Pattern,
    multipliers: Multipliers | None,
    lengths: np.ndarray,
    row_map: RowMap,
    gamma: float,
    moment: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return sums over the triplets of a cell; ``targets`` says where each row's lengths begin."""
    z = rows.mapped(row_map)
    working = WorkingSet(Pattern(targets, lengths), candidates, multipliers)
    totals, target_weights, weights, target_hinge = hinge_sums(z, working, lengths, gamma)
    found = None
    if moment:
        placed = rows.placed()
        np.negative(weights, out=weights)
        moved = laplacian([(candidates, weights)], placed if moment == "data" else z)
        found = gram(moved, placed, exact=moment == "data")
    return totals, target_weights, target_hinge, found


def slopes_cell(
    rows: CellRows,
    targets: np.ndarray,
    candidates: Pattern,
    multipliers: Multipliers | None,
    lengths: np.ndarray,
    row_map: RowMap,
    gamma: float,
) -> Multipliers:
    """Non-zero slopes of the triplets of a cell."""
    working = WorkingSet(Pattern(targets, lengths), candidates, multipliers)
    return slopes(rows.mapped(row_map), working, lengths, gamma)


def carried(
    rows: CellRows, old: Multipliers, old_targets: Pattern, targets: Pattern
) -> Multipliers:
    """Multipliers of triplets whose target pair stays; both patterns are of the cell's rows."""
    return carry_over(old, old_targets, targets)


def facts(rows: CellRows, value: Any) -> Any:
    """Return the size of a value that stays on a worker, or its largest multiplier."""
    return value.size if isinstance(value, Pattern) else value.largest
