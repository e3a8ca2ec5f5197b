"""Softmax sums over all pairs of rows on a cluster.

One phase sums the weights of every row over all cells, a second one the moments. Rows so far from
all others that their weights underflow are few; they are brought to the client, and their sums are
made by blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Pattern
from lnml.core.points import Embedding
from lnml.kernels.cluster import softmax_cells as _cells
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
    """

    totals: np.ndarray
    units: np.ndarray
    far: list[_cells.FarBlock] | None

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

    def class_softmax(self, embedding: Embedding, *, full: bool) -> tuple[float, np.ndarray]:
        weights = self._weights(embedding)
        other, own = weights.totals / weights.totals.sum(axis=0)
        return float(other.sum()), self._moment(embedding, weights, np.stack([-own, other]), full)

    def _map(self, embedding: Embedding) -> RowMap:
        """Coordinates in float64: float32 would lose the weights of long distances."""
        found: RowMap = embedding.coordinates.map
        return found._replace(token=found.token + "-wide", dtype="<f8")

    def _weights(self, embedding: Embedding) -> Weights:
        """Sum the weights of every row."""
        layout, rows, row_map = self.layout, embedding.coordinates, self._map(embedding)
        cells = {
            cell: (self._rows(rows, cell), {"codes": layout.codes(*cell)}) for cell in layout.cells
        }
        totals = np.zeros((2, layout.n_rows))
        found = self.crew.collect(_cells.totals_cell, cells, row_map=row_map, n_kinds=2)
        for cell, part in found.items():
            layout.add_cell(cell, part, totals)
        units = np.full(layout.n_rows, -SHIFT["float64"])
        least = layout.n_rows * 2.0 ** (SHIFT["float64"] + LOWEST["float64"])
        lonely = np.flatnonzero(~(totals.sum(axis=0) > least / np.finfo(np.float64).eps))
        if lonely.size == 0:
            return Weights(totals, units, None)
        far = self._far(rows, row_map, lonely)
        parts = self._by_block(_cells.far_totals, rows, far, map=row_map)
        totals[:, lonely], units[lonely] = np.sum(parts, axis=0), far[0].largest
        return Weights(totals, units, far)

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
                lonely, kinds, coordinates, placed, unknown, int(first), layout.codes(block)
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
        layout, rows, row_map = self.layout, embedding.coordinates, self._map(embedding)
        factors = coefficients / weights.totals.sum(axis=0)
        near = factors.copy()
        if weights.far is not None:
            near[:, weights.far[0].numbers] = 0.0
        cells = {
            cell: (
                self._rows(rows, cell),
                {"codes": layout.codes(*cell), "factors": layout.of_cell(cell, near.T).T.copy()},
            )
            for cell in layout.cells
        }
        width = rows.width if full else rows.shape[1]
        total = np.zeros((width, rows.width))
        found = self.crew.collect(_cells.moment_cell, cells, row_map=row_map, full=full)
        for part in found.values():
            total += part
        if weights.far is not None:
            count = layout.n_blocks
            own = [factors[:, weights.far[0].numbers]] * count, [full] * count
            for part in self._by_block(_cells.far_moment, rows, weights.far, *own, map=row_map):
                total += part
        matrix = embedding.points.data.map.matrix
        return in_columns(total, matrix, both=full)


def in_columns(moment: np.ndarray, matrix: np.ndarray | None, both: bool) -> np.ndarray:
    """Return a moment with rows as they were placed, in the columns of mapped ones."""
    if matrix is None:
        return moment
    moment = moment @ matrix
    return matrix.T @ moment if both else moment
