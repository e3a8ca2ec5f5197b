"""Softmax sums over all pairs of rows on a cluster.

One phase sums the weights of every row over all cells, a second one the moments. Rows so far from
all others that their weights underflow are few; they are brought to the client, and their sums are
made by blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lnml.core.pairs import Pattern
from lnml.core.points import Embedding
from lnml.kernels.cluster import softmax_cells as _cells
from lnml.kernels.cluster.cells import CellTask, MatrixAddition, by_cell
from lnml.kernels.cluster.exact import joined
from lnml.kernels.cluster.layout import Cell, ways
from lnml.kernels.cluster.operations import RowOperations
from lnml.kernels.cluster.rows import ClusterRows, RowMap
from lnml.kernels.cpu.exponential import LOWEST, SHIFT

# Most rows that are far from all others; more of them are no outliers.
MOST_FAR = 1000


class Weights(NamedTuple):
    """Sums of the weights of every row: kinds of partners are others, and the same class.

    Attributes
    ----------
    totals : ndarray of shape (2, n)
        The sums, in units of ``units``.
    units : ndarray of shape (n,)
        Logarithms to base two.
    far : list of FarBlock, or None
        Rows that are not summed by cells, as every block sees them.
    kind : str
        Type of the weights of the others.
    """

    totals: np.ndarray
    units: np.ndarray
    far: list[_cells.FarBlock] | None
    kind: str

    @property
    def log_normalizers(self) -> np.ndarray:
        """Logarithm of Z_i."""
        return np.asarray(np.log(self.totals.sum(axis=0)) + np.log(2.0) * self.units)


class SoftmaxOperations(RowOperations):
    """Softmax sums."""

    def softmax(
        self, embedding: Embedding, targets: Pattern | None, *, full: bool | None
    ) -> tuple[float, np.ndarray]:
        points = embedding.points
        sizes = points.class_sizes[points.row_class] - 1 if targets is None else targets.sizes
        counts = (sizes > 0).astype(np.float64)
        weights = self._weights(embedding)
        value = float(weights.log_normalizers[sizes > 0].sum())
        if full is None:
            return value, np.zeros((0, 0))
        return value, self._moment(embedding, weights, np.stack([counts, counts]), full)

    def softmax_costs(self, embedding: Embedding, pairs: Pattern) -> np.ndarray:
        sizes, distances = pairs.sizes, self.distances(embedding, pairs)
        terms = self._weights(embedding).log_normalizers - np.log(np.maximum(sizes, 1))
        return np.asarray((distances + np.repeat(terms, sizes)) / np.repeat(sizes, sizes))

    def class_softmax(self, embedding: Embedding, *, full: bool | None) -> tuple[float, np.ndarray]:
        weights = self._weights(embedding)
        other, own = weights.totals / weights.totals.sum(axis=0)
        total = float(other.sum())
        if full is None:
            return total, np.zeros((0, 0))
        return total, self._moment(embedding, weights, np.stack([-own, other]), full)

    def _map(self, embedding: Embedding, kind: str) -> RowMap:
        """Coordinates in the type of the weights."""
        found: RowMap = embedding.coordinates.map
        if kind == np.dtype(found.dtype).name:
            return found
        return found._replace(token=f"{found.token} as {kind}", dtype=np.dtype(kind).str)

    def _weights(self, embedding: Embedding) -> Weights:
        """Sum the weights of every row.

        float32 loses the weights of long distances. Where that leaves more rows alone than a
        few outliers, float64 is taken.
        """
        rows: ClusterRows = embedding.coordinates
        for kind in dict.fromkeys((np.dtype(rows.map.dtype).name, "float64")):
            totals, lonely = self._totals(embedding, kind)
            if lonely.size <= MOST_FAR:
                break
        units = np.full(self.layout.n_rows, -SHIFT[kind])
        if lonely.size == 0:
            return Weights(totals, units, None, kind)
        wide = self._map(embedding, "float64")
        far = self._far(rows, wide, lonely)
        parts = self._by_block(_cells.far_totals, rows, far, map=wide)
        totals[:, lonely], units[lonely] = np.sum(parts, axis=0), far[0].largest
        return Weights(totals, units, far, kind)

    def _totals(self, embedding: Embedding, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of weights by kind of partner (2, n), and the rows that lose theirs."""
        layout, rows = self.layout, embedding.coordinates
        cells: dict[Cell, CellTask] = {cell: (self._rows(rows, cell), {}) for cell in layout.cells}
        given = {"row_map": self._map(embedding, kind)}
        classes = {"classes": self.classes}
        parts: dict[Cell, list[np.ndarray]] = {}
        for found in self.crew.total(_cells.totals_cell, cells, by_cell, classes, **given):
            parts.update(found)
        totals = np.zeros((2, layout.n_rows))
        for cell in layout.cells:
            for (block, _), part in zip(ways(cell), parts[cell], strict=True):
                totals[:, layout.rows(block)] += part
        least = layout.n_rows * 2.0 ** (SHIFT[kind] + LOWEST[kind]) / np.finfo(kind).eps
        return totals, np.flatnonzero(~(totals.sum(axis=0) > least))

    def _far(self, rows: ClusterRows, row_map: RowMap, lonely: np.ndarray) -> list[_cells.FarBlock]:
        """Bring rows that are far from all others here, and find their largest exponents."""
        if lonely.size > MOST_FAR:
            raise FloatingPointError(
                f"{lonely.size} rows are so far from all others that their softmax cannot be "
                f"computed on a cluster: scale the columns, or leave out outliers"
            )
        layout = self.layout
        kinds = np.searchsorted(layout.class_start, lonely, side="right") - 1
        maps = row_map, RowMap.identity("<f8")
        coordinates, placed = (self._picked(rows, each, lonely) for each in maps)
        unknown = np.zeros(lonely.size)
        far = [
            _cells.FarBlock(
                lonely, kinds, coordinates, placed, unknown, int(first), self.codes[block]
            )
            for block, first in enumerate(layout.edges[:-1])
        ]
        parts = self._by_block(_cells.far_largest, rows, far, map=row_map)
        largest = np.max(parts, axis=0)
        return [each._replace(largest=largest) for each in far]

    def _moment(
        self, embedding: Embedding, weights: Weights, coefficients: np.ndarray, full: bool
    ) -> np.ndarray:
        """V^T Lap(W + W^T) data, W_ij = coefficient_i P_ij; coefficients as kinds of weights."""
        layout, rows = self.layout, embedding.coordinates
        row_map = self._map(embedding, weights.kind)
        factors = coefficients / weights.totals.sum(axis=0)
        near = factors.copy()
        if weights.far is not None:
            near[:, weights.far[0].numbers] = 0.0
        left = RowMap.identity(row_map.dtype) if full else row_map
        total_weight = 2.0 * layout.n_rows * max(float(np.abs(coefficients).max()), 1e-300)
        grid = self._moment_grid(rows, left, total_weight)
        cells: dict[Cell, CellTask] = {cell: (self._rows(rows, cell), {}) for cell in layout.cells}
        cut = [each.T for each in layout.by_block(near.T)]
        by_block: dict[str, list[Any]] = {"classes": self.classes, "factors": cut}
        given = {"row_map": row_map, "full": full}
        _, parts = self.crew.total_matrix(
            _cells.moment_cell, cells, MatrixAddition(grid), grid.nbytes, by_block, **given
        )
        total = joined(parts)
        if weights.far is not None:
            wide, count = self._map(embedding, "float64"), layout.n_blocks
            own = [factors[:, weights.far[0].numbers]] * count, [full] * count
            total += self._sum_of_blocks(_cells.far_moment, rows, weights.far, *own, map=wide)
        matrix = embedding.points.data.map.matrix
        return in_columns(total, matrix, both=full)


def in_columns(moment: np.ndarray, matrix: np.ndarray | None, both: bool) -> np.ndarray:
    """Return a moment with rows as they were placed, in the columns of mapped ones."""
    if matrix is None:
        return moment
    moment = moment @ matrix
    return matrix.T @ moment if both else moment
