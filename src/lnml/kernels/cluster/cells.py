"""Tasks of a worker: what it does for its cells.

Everything here is a pure function of its arguments: what a dead worker held is computed again by
another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context

from lnml.core.pairs import EdgeScatter, Multipliers, Pattern
from lnml.kernels.cluster import tiles as _tiles
from lnml.kernels.cluster.allocator import keep_memory, return_memory
from lnml.kernels.cluster.exact import Grid, OuterGrid
from lnml.kernels.cluster.layout import Cell, ways, with_pairs
from lnml.kernels.cluster.mapped import MappedBlocks
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.tiles import CellTriplets, HingePart, MappedRows, Tiles, tiles_on
from lnml.kernels.cpu.threads import limited_threads, room_in_bytes

# Share of the working memory that mapped blocks may take; the rest is for candidate pairs.
MAPPED_SHARE = 0.25

# Of the fit that runs, on this worker.
_blocks = MappedBlocks()
# Bounds of candidates follow rows on one way: who evaluates meanwhile, does without them.
_following = Lock()

# Classes of the rows of a block in rising order, and how many rows each has.
ClassCounts = tuple[np.ndarray, np.ndarray]

# What a task gets for a cell: the fields of its CellRows, and arguments of its own. Both are plain
# lists and dicts, in which the scheduler finds what is to be brought to the worker.
CellTask = tuple[list[Any], dict[str, Any]]


def worker_tiles() -> Tiles:
    """Return the tiles that this worker uses."""
    return tiles_on(_tiles.WORKER_DEVICE)


@contextmanager
def threads_of_a_worker() -> Iterator[None]:
    """Let tiles use as many threads as the worker has, whatever its environment says.

    Dask sets OMP_NUM_THREADS to one, since it runs a task in each thread. Here one task has all.
    """
    from distributed import get_worker

    try:
        count = int(get_worker().state.nthreads)
    except ValueError:
        yield
        return
    with limited_threads(count):
        yield


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

    def mapped(self, row_map: RowMap) -> list[Any]:
        """Rows of each block under a map."""
        return [each.rows for each in self.followed(row_map)]

    def followed(self, row_map: RowMap) -> list[MappedRows]:
        """Rows of each block under a map, and how they came there."""
        named, tiles = zip(self.names, self.blocks, strict=True), worker_tiles()
        room = int(MAPPED_SHARE * room_in_bytes())
        return [_blocks.under(row_map, *each, tiles, room) for each in named]

    def placed(self) -> list[Any]:
        """Rows of each block as they were placed."""
        named, tiles = zip(self.names, self.blocks, strict=True), worker_tiles()
        return [_blocks.placed(*each, tiles) for each in named]

    def codes(self, classes: dict[int, ClassCounts]) -> list[np.ndarray]:
        """Class of every row of the blocks, which are sorted by class."""
        return [np.repeat(*counts) for counts in self.each(classes)]

    def each(self, values: dict[int, Any]) -> list[Any]:
        """Values of the blocks of the cell."""
        return [values[block] for block in dict.fromkeys(self.cell)]


def forget() -> None:
    """Let go of mapped blocks, and of memory that was kept for tiles."""
    if _blocks:
        _blocks.clear()
        worker_tiles().forget()
    return_memory()


def run_cells(
    task: Callable[..., Any],
    cells: list[CellTask],
    shared: dict[str, Any],
    working_memory: float,
    add: Callable[..., Any] | None = None,
) -> Any:
    """Run a task for some cells, one after the other; its tiles use all threads of the worker.

    ``working_memory`` is that of the client. Results come back one by one, or as ``add`` makes one
    of them and of their cells.
    """
    keep_memory()
    settings = config_context(working_memory=working_memory)
    with settings, threads_of_a_worker(), worker_tiles().session():
        # One at a time: those of all cells together may take more memory than the rows.
        found = (task(CellRows(*rows), **own, **shared) for rows, own in cells)
        return list(found) if add is None else add([tuple(rows[0]) for rows, _ in cells], found)


def pair_lengths(rows: CellRows, pairs: list[Pattern], row_map: RowMap) -> np.ndarray:
    """Squared distances of some pairs."""
    return worker_tiles().lengths(rows.mapped(row_map), pairs)


def pair_moment(
    rows: CellRows,
    pairs: list[Pattern],
    weights: np.ndarray,
    row_map: RowMap,
    exact: bool,
) -> np.ndarray:
    """V^T Lap(W + W^T) rows, V the rows under a map."""
    values, own = rows.mapped(row_map), _cut(weights, pairs)
    return worker_tiles().moment(values, rows.placed(), pairs, own, exact)


def pair_scatter(
    rows: CellRows, pairs: list[Pattern], weights: np.ndarray, row_map: RowMap
) -> EdgeScatter:
    """Sum of weight * v v^T over some pairs, with its rounding.

    Only rows that have pairs are mapped: in a proof they are float64, and so are all columns.
    """
    tiles, own = worker_tiles(), _cut(weights, pairs)
    taken, pairs = with_pairs(pairs)
    z = [
        tiles.mapped(block if mine.all() else block[mine], row_map)
        for block, mine in zip(rows.placed(), taken, strict=True)
    ]
    return tiles.scatter(z, pairs, own)


def _cut(values: np.ndarray, pairs: list[Pattern]) -> list[np.ndarray]:
    """Cut values of pairs into those of each way."""
    return np.split(values, np.cumsum([each.size for each in pairs])[:-1])


def search(
    rows: CellRows,
    classes: dict[int, ClassCounts],
    radius: dict[int, np.ndarray],
    row_map: RowMap,
    most: int | None,
) -> Any:
    """Pairs of different class within a radius."""
    return worker_tiles().search(rows.mapped(row_map), rows.codes(classes), rows.each(radius), most)


def nearest(
    rows: CellRows, classes: dict[int, ClassCounts], row_map: RowMap, k: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Distances and numbers of the nearest rows of the same class, for the rows of each block.

    Rows of a block look at the other one; numbers count from the first row of that.
    """
    return worker_tiles().nearest(rows.mapped(row_map), rows.codes(classes), k)


def hinge_cell(
    rows: CellRows,
    starts: dict[int, np.ndarray],
    lengths: dict[int, np.ndarray],
    candidates: Any,
    multipliers: Any,
    row_map: RowMap,
    gamma: float,
    moment: str,
) -> HingePart:
    """Return sums over the triplets of a cell."""
    with _trails(rows, row_map) as (z, trails):
        targets = rows.each(starts), rows.each(lengths)
        triplets = CellTriplets(*targets, candidates, multipliers, trails if moment else [])
        return worker_tiles().hinge(z, rows.placed(), triplets, gamma, moment)


@contextmanager
def _trails(rows: CellRows, row_map: RowMap) -> Iterator[tuple[list[Any], list[Any]]]:
    """Rows of each block under a map, and their trails; none if another task follows trails."""
    alone = _following.acquire(blocking=False)
    try:
        found = rows.followed(row_map)
        yield [each.rows for each in found], [each.trail for each in found] if alone else []
    finally:
        if alone:
            _following.release()


def target_hinges(
    rows: CellRows,
    starts: dict[int, np.ndarray],
    lengths: dict[int, np.ndarray],
    classes: dict[int, ClassCounts],
    radius: dict[int, np.ndarray],
    row_map: RowMap,
) -> list[np.ndarray]:
    """Return sums of max(0, h) for the target pairs of each block; candidates are not kept."""
    found = search(rows, classes, radius, row_map, None)
    return hinge_cell(rows, starts, lengths, found, None, row_map, 0.0, "").hinges


class HingeSum(NamedTuple):
    """Sums over the triplets of some cells: they have the same bits in any grouping.

    Attributes
    ----------
    totals : dict of ndarrays of shape (4,)
        By cell.
    weights : dict of ndarrays
        Sums of slopes for the target pairs of each block.
    """

    totals: dict[Cell, np.ndarray]
    weights: dict[int, np.ndarray]


@dataclass(frozen=True)
class HingeAddition:
    """Adds the hinges of the cells of a worker, on the grids of weights and moments."""

    weight_grid: Grid
    moment_grid: OuterGrid

    def __call__(self, cells: list[Cell], parts: Iterable[HingePart]) -> tuple[Any, HingeSum]:
        """Return the sum of their moments, (2, r, d) on the grid, and other sums."""
        totals: dict[Cell, np.ndarray] = {}
        weights: dict[int, np.ndarray] = {}
        moment_grid, push = self.moment_grid.of_entries(), np.zeros(())
        for cell, part in zip(cells, parts, strict=True):
            for (block, _), own in zip(ways(cell), part.weights, strict=True):
                rounded = self.weight_grid.rounded(own)
                weights[block] = weights[block] + rounded if block in weights else rounded
            assert part.push is not None
            push = push + moment_grid.split(part.push)
            totals[cell] = part.totals
        return push, HingeSum(totals, weights)


@dataclass(frozen=True)
class ScatterAddition:
    """Adds the scatters of the cells of a worker: one for each would be much to send."""

    grid: OuterGrid

    def __call__(
        self, cells: list[Cell], parts: Iterable[EdgeScatter]
    ) -> tuple[Any, dict[Cell, np.ndarray]]:
        """Return their sum (2, d, d) on the grid, and sizes of each cell.

        Sizes are ``squares``, ``left`` and ``right``, shape (3, d). The matrix has the same bits
        in any grouping.
        """
        sizes = {}
        grid, matrix = self.grid.of_entries(), np.zeros(())
        for cell, part in zip(cells, parts, strict=True):
            matrix = matrix + grid.split(part.matrix)
            sizes[cell] = np.stack([part.squares, part.left, part.right])
        return matrix, sizes


@dataclass(frozen=True)
class MatrixAddition:
    """Adds the matrices of the cells of a worker, on a grid."""

    grid: OuterGrid

    def __call__(self, _: list[Cell], parts: Iterable[np.ndarray]) -> tuple[np.ndarray, None]:
        """Return their sum (2, r, d), and nothing else."""
        grid = self.grid.of_entries()
        return sum(map(grid.split, parts), start=np.zeros(())), None


def by_cell(cells: list[Cell], parts: Iterable[Any]) -> dict[Cell, Any]:
    """Return results as they are, by their cells."""
    return dict(zip(cells, parts, strict=True))


def slopes_cell(
    rows: CellRows,
    starts: dict[int, np.ndarray],
    lengths: dict[int, np.ndarray],
    candidates: Any,
    multipliers: Any,
    row_map: RowMap,
    gamma: float,
) -> Any:
    """Non-zero slopes of the triplets of a cell."""
    with _trails(rows, row_map) as (z, trails):
        targets = rows.each(starts), rows.each(lengths)
        triplets = CellTriplets(*targets, candidates, multipliers, trails)
        return worker_tiles().slopes(z, triplets, gamma)


def carried(rows: CellRows, old: Any, old_targets: list[Pattern], targets: list[Pattern]) -> Any:
    """Multipliers of triplets whose target pair stays; patterns are those of each block."""
    return worker_tiles().carry_over(old, old_targets, targets)


def on_host(rows: CellRows, value: Any) -> list[Multipliers]:
    """Bring multipliers into NumPy arrays."""
    return worker_tiles().to_host(value)


def candidate_facts(rows: CellRows, value: Iterable[Pattern]) -> tuple[int, int]:
    """Return the number of candidates that stay on a worker, and those of the longest list."""
    lists = list(value)
    longest = [int(each.sizes.max()) if each.indptr.shape[0] > 1 else 0 for each in lists]
    return sum(each.size for each in lists), max(longest)


def largest(rows: CellRows, value: Iterable[Multipliers]) -> float:
    """Return the largest multiplier of a cell."""
    return max(each.largest for each in value)
