"""The kernel protocol on a Dask cluster: each operation is documented there.

Rows stay on the workers. What the client holds is short: labels, target pairs, one number for each
row or target pair, and small matrices. Candidate pairs and multipliers stay on the workers, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.pairs import (
    SEARCH_SLACK,
    Hinge,
    Multipliers,
    Pattern,
    Search,
    TooManyPairs,
    WorkingSet,
)
from lnml.core.points import Embedding, Points
from lnml.kernels.cluster import cells as _cells
from lnml.kernels.cluster.cells import CellTask
from lnml.kernels.cluster.layout import Cell
from lnml.kernels.cluster.operations import same
from lnml.kernels.cluster.patterns import CellMultipliers, CellPattern, HostPairs
from lnml.kernels.cluster.rows import ClusterRows, RowMap
from lnml.kernels.cluster.softmax import SoftmaxOperations, in_columns
from lnml.kernels.cpu.threads import pair_budget

# For tasks that need no rows.
NO_ROWS: list[Any] = [(0, 0), [], []]


class ClusterKernels(SoftmaxOperations):
    """See :class:`lnml.kernels.protocol.Kernels`; rows are on the workers of a cluster."""

    def within(
        self,
        embedding: Embedding,
        radius: np.ndarray,
        *,
        known: Search | None = None,
        needed: np.ndarray | None = None,
        limited: bool = True,
    ) -> Search:
        needed = radius if needed is None else needed
        if known is not None and (SEARCH_SLACK * needed <= known.radius).all():
            return known
        # A worker that came since the last search gets its share from now on.
        self.crew.assign(self.layout)
        layout, rows = self.layout, embedding.coordinates
        budget = pair_budget() if limited else None
        cells = {
            cell: (
                self._rows(rows, cell),
                {
                    "codes": layout.codes(*cell),
                    "radius": layout.of_cell(cell, radius),
                    "row_map": rows.map,
                    "most": budget,
                },
            )
            for cell in layout.cells
        }
        futures = self.crew.keep(_cells.search, cells)
        sizes = self._facts(futures)
        if budget is not None and sum(sizes) > budget * len(self.crew.workers()):
            raise TooManyPairs(budget * len(self.crew.workers()))
        return Search(embedding.components, radius, CellPattern(futures, int(sum(sizes))))

    def _facts(self, futures: dict[Cell, Any]) -> list[Any]:
        """Sizes or largest values of what stays on the workers."""
        cells = {cell: (NO_ROWS, {"value": value}) for cell, value in futures.items()}
        return list(self.crew.collect(_cells.facts, cells).values())

    def working_set(
        self, targets: Pattern, candidates: Pattern | None, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        found = CellPattern({}, 0) if candidates is None else candidates
        return WorkingSet(self.pattern(targets), found, multipliers)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        before, after = self.pattern(old_targets), self.pattern(targets)
        cells = {
            cell: (
                NO_ROWS,
                {
                    "old": value,
                    "old_targets": before.rows_in(cell),
                    "targets": after.rows_in(cell),
                },
            )
            for cell, value in _futures(old).items()
        }
        futures = self.crew.keep(_cells.carried, cells)
        return CellMultipliers(futures, max(self._facts(futures), default=0.0))

    def _triplets(
        self, embedding: Embedding, working: WorkingSet, targets: HostPairs, lengths: np.ndarray
    ) -> dict[Cell, CellTask]:
        """Return what tasks need of the triplets of every cell."""
        rows, multipliers = embedding.coordinates, working.multipliers
        known = {} if multipliers is None else _futures(multipliers)
        return {
            cell: (
                self._rows(rows, cell),
                {
                    "targets": self._starts(targets, cell),
                    "candidates": candidates,
                    "multipliers": known.get(cell),
                    "lengths": targets.values_in(cell, lengths),
                },
            )
            for cell, candidates in _futures(working.candidates).items()
        }

    def _starts(self, targets: HostPairs, cell: Cell) -> Any:
        """Where the targets of each row of a cell begin, on a worker; sent once."""
        key = ("starts", cell)
        if key not in targets.placed:
            targets.placed[key] = self.crew.submit(same, targets.starts_in(cell), cell=cell)
        return targets.placed[key]

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, moment: str = ""
    ) -> Hinge:
        targets, rows = self.pattern(working.targets), embedding.coordinates
        lengths = self.distances(embedding, targets)
        cells = self._triplets(embedding, working, targets, lengths)
        found = self.crew.collect(
            _cells.hinge_cell, cells, row_map=rows.map, gamma=gamma, moment=moment
        )
        totals, push = np.zeros(4), 0.0
        weights, hinges = np.zeros((2, targets.size))
        for cell, (part, part_weights, part_hinges, part_push) in found.items():
            totals += part
            targets.add_from(cell, part_weights, weights)
            targets.add_from(cell, part_hinges, hinges)
            push = push if part_push is None else push + part_push
        result = None
        if moment:
            placed = embedding.points.data.map
            left = RowMap.identity(placed.dtype) if moment == "data" else rows.map
            result = self._target_moment(rows, targets, weights, left) + push
            result = in_columns(result, placed.matrix, both=moment == "data")
        smoothed, exact, slope_sum, n_active = totals.tolist()
        return Hinge(smoothed, exact, slope_sum, int(n_active), hinges, result)

    def _target_moment(
        self, rows: ClusterRows, targets: HostPairs, weights: np.ndarray, left: RowMap
    ) -> np.ndarray:
        """Sum over target pairs of weight * (V_i - V_j)^T (x_i - x_j), x as it was placed."""
        cells = {
            cell: (
                self._rows(rows, cell),
                {"pairs": self._placed(targets, cell), "weights": weights[own.places]},
            )
            for cell, own in targets.cells.items()
        }
        width = rows.width if left.matrix is None else left.matrix.shape[1]
        total = np.zeros((width, rows.width))
        for part in self.crew.collect(_cells.pair_moment, cells, row_map=left).values():
            total += part
        return total

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        targets = self.pattern(working.targets)
        lengths = self.distances(embedding, targets)
        cells = self._triplets(embedding, working, targets, lengths)
        for _, own in cells.values():
            own |= {"row_map": embedding.coordinates.map, "gamma": gamma}
        futures = self.crew.keep(_cells.slopes_cell, cells)
        return CellMultipliers(futures, max(self._facts(futures), default=0.0))

    def target_hinges(self, embedding: Embedding, targets: Pattern, radius: Any) -> Any:
        search = self.within(embedding, radius, limited=False)
        return self.hinge(embedding, self.working_set(targets, search.found), 0.0).target_hinge

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        raise NotImplementedError("MMC is not fitted on a cluster")

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        raise NotImplementedError("MMC is not fitted on a cluster")


def _futures(given: Any) -> dict[Cell, Any]:
    """Return what a pattern, or multipliers, of this device has on the workers."""
    found: dict[Cell, Any] = given.futures
    return found
