"""Operations on the rows of a cluster; each is documented in :mod:`lnml.kernels.protocol`.

Rows stay on the workers. What the client holds is short: labels, target pairs, one number for each
row or target pair, and small matrices. Candidate pairs and multipliers stay on the workers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import (
    Edge,
    EdgeScatter,
    Partners,
    Pattern,
)
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.class_pairs import ClassSums, RowClasses, between_classes, row_factors
from lnml.kernels.cluster import blocks as _blocks
from lnml.kernels.cluster import cells as _cells
from lnml.kernels.cluster.crew import Crew, current_client, outside_of_tasks
from lnml.kernels.cluster.exact import OuterGrid
from lnml.kernels.cluster.exact import joined as joined_parts
from lnml.kernels.cluster.layout import Cell, Layout, listed
from lnml.kernels.cluster.patterns import CellMultipliers, HostPairs, joined
from lnml.kernels.cluster.placing import Placed
from lnml.kernels.cluster.rows import ClusterRows, RowMap
from lnml.kernels.cpu import assignment as _assignment
from lnml.kernels.cpu.columns import row_weights
from lnml.kernels.cpu.laplacian import edge_weights
from lnml.kernels.cpu.patterns import row_maximum
from lnml.kernels.cpu.threads import single_threaded_blas
from lnml.kernels.protocol import Kernels

# For tasks that need no rows.
NO_ROWS: list[Any] = [(0, 0), [], []]


class RowOperations(Kernels):
    """Data, columns, distances and neighbours."""

    remote = True
    layout: Layout
    codes: list[np.ndarray]
    classes: list[_cells.ClassCounts]
    sample: np.ndarray

    def __init__(self) -> None:
        self.crew = Crew(current_client())

    @contextmanager
    def session(self) -> Iterator[None]:
        # As on one machine: a threaded BLAS waits on its threads between small products.
        with single_threaded_blas(), outside_of_tasks():
            try:
                yield
            finally:
                # Workers keep mapped rows for the next phase; after a fit there is none.
                self.crew.tell(_cells.forget)

    def points(self, data: Any, class_start: np.ndarray, order: np.ndarray | None = None) -> Points:
        self.layout = Layout.of(np.asarray(class_start, dtype=np.int64))
        self.codes = [self.layout.codes(block) for block in range(self.layout.n_blocks)]
        self.classes = [np.unique(codes, return_counts=True) for codes in self.codes]
        self.crew.assign(self.layout)
        placed = Placed(self.crew, data, self.layout, order)
        self.sample = placed.sample
        given = RowMap.identity(placed.dtype.str)
        rows = ClusterRows(self.layout, placed.blocks, placed.columns, given)
        return Points(rows, self.layout.class_start, rounding=placed.rounding)

    def pattern(self, pairs: Pattern) -> HostPairs:
        if isinstance(pairs, HostPairs):
            return pairs
        return HostPairs(pairs.indptr, pairs.indices, self.layout)

    def to_host(self, values: Any) -> Any:
        if isinstance(values, CellMultipliers):
            cells = {cell: (NO_ROWS, {"value": own}) for cell, own in values.futures.items()}
            return joined(self.crew.collect(_cells.on_host, cells), self.layout)
        return values

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        given: ClusterRows = embedding.coordinates
        return self._picked(given, given.map, indices)

    def _picked(self, rows: ClusterRows, row_map: RowMap, indices: np.ndarray) -> np.ndarray:
        """Return some rows under a map."""
        block_of = np.searchsorted(self.layout.edges, indices, side="right") - 1
        blocks = np.unique(block_of)
        places = [np.flatnonzero(block_of == block) for block in blocks]
        futures = [
            self.crew.submit(
                _blocks.picked,
                rows.blocks[b],
                row_map,
                indices[place] - self.layout.edges[b],
                cell=(b, b),
            )
            for b, place in zip(blocks, places, strict=True)
        ]
        out = np.empty((indices.size, row_map.width(rows.width)))
        for place, found in zip(places, self.crew.results(futures), strict=True):
            out[place] = found
        return out

    def columns(self, points: Points) -> Columns:
        parts = self._by_block(_blocks.moments, points.data)
        sizes = np.diff(self.layout.edges).astype(np.float64)
        means, squares, lowest, highest = (np.stack(each) for each in zip(*parts, strict=True))
        mean = sizes @ means / sizes.sum()
        spread = np.sqrt((squares.sum(axis=0) + sizes @ (means - mean) ** 2) / sizes.sum())
        return Columns(mean, spread, lowest.min(axis=0), highest.max(axis=0))

    def _by_block(
        self,
        task: Callable[..., Any],
        rows: ClusterRows,
        *given: list[Any],
        map: RowMap | None = None,
    ) -> list[Any]:
        """Run a task for every block, with one argument of each list."""
        return self.crew.results(self._of_blocks(task, rows, *given, map=map))

    def _sum_of_blocks(
        self,
        task: Callable[..., Any],
        rows: ClusterRows,
        *given: list[Any],
        map: RowMap | None = None,
    ) -> Any:
        """Return the sum of what a task has for every block, added up on the workers."""
        return self.crew.results([self.crew.added(self._of_blocks(task, rows, *given, map=map))])[0]

    def _of_blocks(
        self, task: Callable[..., Any], rows: ClusterRows, *given: list[Any], map: RowMap | None
    ) -> Iterator[Any]:
        for b, (block, *own) in enumerate(zip(rows.blocks, *given, strict=True)):
            yield self.crew.submit(task, block, map or rows.map, *own, cell=(b, b))

    def mapped(
        self,
        points: Points,
        matrix: np.ndarray | None = None,
        *,
        shift: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        far: bool = False,
        wide: bool = False,
    ) -> Points:
        rows: ClusterRows = points.data
        dtype = "<f8" if wide else None
        if matrix is None and shift is None and scale is None:
            found = rows.mapped(dtype=dtype)
            return Points(found, points.class_start, points.far, points.rounding)
        matrix = np.diag(1.0 / scale) if scale is not None else matrix
        return Points(rows.mapped(matrix, shift, dtype), points.class_start, far)

    def pair_scatter(self, points: Points, same: Any, other: Any = None) -> np.ndarray:
        layout, sizes = self.layout, points.class_sizes
        codes = points.row_class
        weights = [row_weights(given, points) for given in (same, other)]
        sums = [np.bincount(codes, each, sizes.size) for each in weights]
        of_class = RowClasses(*(each[codes] for each in (sizes, *sums)))
        factors = row_factors(weights[0], weights[1], of_class, sums[1].sum())
        own = self.codes
        total = self._sum_of_blocks(
            _blocks.class_totals, points.data, own, [sizes.size] * layout.n_blocks
        )
        means = total / np.maximum(sizes, 1)[:, None]
        per_block = (
            [each[layout.rows(b)] for b in range(layout.n_blocks)] for each in (factors, weights[1])
        )
        inner, linear = self._sum_of_blocks(
            _blocks.around_means, points.data, own, [means] * layout.n_blocks, *per_block
        )
        if other is not None:
            seen = means - total.sum(axis=0) / points.n_rows
            inner = inner + between_classes(ClassSums(seen, sums[1], linear), sizes)
        return np.asarray(0.5 * (inner + inner.T))

    def edge_scatter(self, points: Points, edges: list[Edge]) -> EdgeScatter:
        d = points.n_features
        matrix, (squares, left, right) = np.zeros((d, d)), np.zeros((3, d))
        for edge in edges:
            pairs, weights = self.pattern(edge.pairs), edge_weights(edge, points)
            cells = {
                cell: (
                    self._rows(points.data, cell),
                    {"pairs": self._placed(pairs, cell), "weights": weights[own.places]},
                )
                for cell, own in pairs.cells.items()
            }
            reach = 2.0 * points.data.map.reach(points.data.columns)
            grid = OuterGrid.of(reach, reach, float(np.abs(weights).sum()), len(cells))
            add = _cells.ScatterAddition(grid)
            sizes, total = self.crew.total_matrix(
                _cells.pair_scatter, cells, add, grid.nbytes, row_map=points.data.map
            )
            if total is None:
                continue
            matrix += joined_parts(total)
            by_cell = {cell: own for each in sizes for cell, own in each.items()}
            for cell in cells:
                squares += by_cell[cell][0]
                left += np.square(by_cell[cell][1])
                right += np.square(by_cell[cell][2])
            lost = np.where(reach > 0.0, np.square(grid.lost()), 0.0)
            left, right = left + lost, right + lost
        # Sums of products of bounds are at most products of their lengths. The two parts of each
        # grid are added, and those of two edges.
        added = 2 * len(edges) * float(np.finfo(np.float64).eps) * np.sqrt(squares)
        return EdgeScatter(
            matrix, squares, np.sqrt(left) + added, np.maximum(np.sqrt(right), np.sqrt(squares))
        )

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        rows: ClusterRows = points.data.mapped(components.T)
        if not points.far:
            rows = replace(rows, map=rows.map.narrowed(self.sample))
        return Embedding(rows, points, components)

    def _rows(self, rows: ClusterRows, cell: Cell) -> list[Any]:
        """Return the rows of a cell, for a task: what a CellRows is made of."""
        blocks = [rows.blocks[block] for block in dict.fromkeys(cell)]
        here = [self.crew.near(block, cell) for block in blocks]
        return [cell, here, [str(block.key) for block in blocks]]

    @staticmethod
    def _of_cell(cell: Cell, values: list[Any]) -> dict[int, Any]:
        """Return the values of the blocks of a cell."""
        return {block: values[block] for block in cell}

    def nearest(self, embedding: Embedding, queries: Any, k: int) -> tuple[Any, Any]:
        raise NotImplementedError("queries are answered where they are, not on a cluster")

    def partners(self, embedding: Embedding, k: int, near: Pattern | None = None) -> Partners:
        layout, rows = self.layout, embedding.coordinates
        cells = {
            cell: (self._rows(rows, cell), {"classes": self._of_cell(cell, self.classes)})
            for cell in layout.cells
            if self._share_a_class(cell)
        }
        found = self.crew.collect(_cells.nearest, cells, row_map=rows.map, k=k)
        columns = np.full((layout.n_rows, k), -1, dtype=np.int64)
        distances = np.full((layout.n_rows, k), np.inf)
        for (a, b), lists in found.items():
            for mine, other, (far, numbers) in zip((a, b), (b, a), lists, strict=False):
                numbers = np.where(numbers >= 0, numbers + layout.edges[other], -1)
                _merge(distances[layout.rows(mine)], columns[layout.rows(mine)], far, numbers)
        pairs, position = _assignment.listed(columns)
        return Partners(columns, distances, self.pattern(pairs), position)

    def _share_a_class(self, cell: Cell) -> bool:
        first, second = (self.codes[block][[0, -1]] for block in cell)
        return bool(first[1] >= second[0])

    def choose(
        self,
        partners: Partners,
        costs: np.ndarray,
        k_min: int,
        k_av: int,
        k_max: int,
        numbers: np.ndarray,
    ) -> tuple[Neighborhoods, float]:
        ranked = _assignment.ranked(partners, costs, k_max)
        pairs, total = _assignment.choose(ranked, k_min, k_av, k_max, numbers)
        return self.pattern(pairs), total

    def distances(
        self, embedding: Embedding, pairs: Pattern, *, longest: bool = False
    ) -> np.ndarray:
        known, rows = self.pattern(pairs), embedding.coordinates
        cells = {
            cell: (self._rows(rows, cell), {"pairs": self._placed(known, cell)})
            for cell in known.cells
        }
        out = np.empty(known.size)
        for cell, found in self.crew.collect(_cells.pair_lengths, cells, row_map=rows.map).items():
            out[known.cells[cell].places] = found
        return row_maximum(out, known) if longest else out

    def _moment_grid(self, rows: ClusterRows, left: RowMap, weight: float) -> OuterGrid:
        """Return the grid for sums of weight * (v_i - v_j)^T (x_i - x_j), given their weight.

        Each entry has its own: columns may differ in scale by many powers of ten.
        """
        reach = 2.0 * left.reach(rows.columns), 2.0 * rows.columns
        return OuterGrid.of(*reach, weight, 2 * len(self.layout.cells))

    def _placed(self, pairs: HostPairs, cell: Cell) -> Any:
        """Pairs of a cell on a worker; they are sent once."""
        if cell not in pairs.placed:
            own = pairs.cells[cell]
            pairs.placed[cell] = self.crew.submit(listed, own.ends, own.sizes, cell=cell)
        return pairs.placed[cell]


def _merge(
    distances: np.ndarray, columns: np.ndarray, more: np.ndarray, numbers: np.ndarray
) -> None:
    """Keep the nearest of two lists of each row, in place; ties go to the lowest number."""
    k = distances.shape[1]
    all_distances, all_numbers = np.hstack([distances, more]), np.hstack([columns, numbers])
    missing = np.where(all_numbers < 0, np.iinfo(np.int64).max, all_numbers)
    best = np.lexsort((missing, all_distances), axis=1)[:, :k]
    distances[:] = np.take_along_axis(all_distances, best, axis=1)
    columns[:] = np.take_along_axis(all_numbers, best, axis=1)
