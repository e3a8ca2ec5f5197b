"""The kernel protocol on a Dask cluster: each operation is documented there.

Rows stay on the workers. What the client holds is short: labels, target pairs, one number for each
row or target pair, and small matrices. Candidate pairs and multipliers stay on the workers, too.
"""

from __future__ import annotations

from collections.abc import Callable
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
from lnml.kernels.cluster.crew import same
from lnml.kernels.cluster.exact import Grid, joined
from lnml.kernels.cluster.layout import Cell, ways
from lnml.kernels.cluster.operations import NO_ROWS
from lnml.kernels.cluster.patterns import CellMultipliers, CellPattern, HostPairs
from lnml.kernels.cluster.rows import ClusterRows, RowMap
from lnml.kernels.cluster.softmax import SoftmaxOperations, in_columns
from lnml.kernels.cpu.threads import pair_budget


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
        near = layout.by_block(radius)
        cells = {
            cell: (
                self._rows(rows, cell),
                {
                    "classes": self._of_cell(cell, self.classes),
                    "radius": self._of_cell(cell, near),
                    "row_map": rows.map,
                    "most": budget,
                },
            )
            for cell in layout.cells
        }
        futures = self.crew.keep(_cells.search, cells)
        facts = self._facts(_cells.candidate_facts, futures)
        n_pairs, longest = (sum(each) for each in zip(*facts, strict=True))
        if budget is not None and n_pairs > budget * len(self.crew.workers()):
            raise TooManyPairs(budget * len(self.crew.workers()))
        return Search(embedding.components, radius, CellPattern(futures, n_pairs, longest))

    def _facts(self, task: Callable[..., Any], futures: dict[Cell, Any]) -> list[Any]:
        """Sizes or largest values of what stays on the workers."""
        cells = {cell: (NO_ROWS, {"value": value}) for cell, value in futures.items()}
        return list(self.crew.collect(task, cells).values())

    def working_set(
        self, targets: Pattern, candidates: Pattern | None, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        found = CellPattern({}, 0, 0) if candidates is None else candidates
        return WorkingSet(self.pattern(targets), found, multipliers)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        before, after = self.pattern(old_targets), self.pattern(targets)
        cells = {
            cell: (
                NO_ROWS,
                {
                    "old": value,
                    "old_targets": [before.rows_in(block) for block, _ in ways(cell)],
                    "targets": [after.rows_in(block) for block, _ in ways(cell)],
                },
            )
            for cell, value in _futures(old).items()
        }
        return self._multipliers(self.crew.keep(_cells.carried, cells))

    def _multipliers(self, futures: dict[Cell, Any]) -> CellMultipliers:
        """Multipliers that stay on the workers."""
        return CellMultipliers(futures, max(self._facts(_cells.largest, futures), default=0.0))

    def _triplets(self, embedding: Embedding, working: WorkingSet) -> dict[Cell, CellTask]:
        """Return what tasks need of the candidates of every cell."""
        multipliers = working.multipliers
        known = {} if multipliers is None else _futures(multipliers)
        return {
            cell: (
                self._rows(embedding.coordinates, cell),
                {"candidates": candidates, "multipliers": known.get(cell)},
            )
            for cell, candidates in _futures(working.candidates).items()
        }

    def _targets_by_block(self, targets: HostPairs, lengths: np.ndarray) -> dict[str, list[Any]]:
        """Return what tasks need of the targets of every block: these begin where, and how long."""
        blocks = range(self.layout.n_blocks)
        if "starts" not in targets.placed:
            targets.placed["starts"] = [
                self.crew.submit(same, targets.starts_in(b), cell=(b, b)) for b in blocks
            ]
        cut = [lengths[targets.range(block)] for block in blocks]
        return {"starts": targets.placed["starts"], "lengths": cut}

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, moment: str = ""
    ) -> Hinge:
        targets, rows = self.pattern(working.targets), embedding.coordinates
        lengths = self.distances(embedding, targets)
        cells = self._triplets(embedding, working)
        given = {"row_map": rows.map, "gamma": gamma, "moment": moment}
        by_block = self._targets_by_block(targets, lengths)
        if not moment:
            return self._hinges(targets, cells, by_block, given)
        placed = embedding.points.data.map
        left = RowMap.identity(placed.dtype) if moment == "data" else rows.map
        candidates: Any = working.candidates
        n_cells = len(self.layout.cells)
        add = _cells.HingeAddition(
            Grid.of(np.log2(max(candidates.longest, 1)), n_cells),
            self._moment_grid(rows, left, candidates.n_pairs * int(targets.sizes.max())),
        )
        nbytes = add.moment_grid.nbytes
        sums, push = self.crew.total_matrix(
            _cells.hinge_cell, cells, add, nbytes, by_block, **given
        )
        found, weights = _host_sums(sums, targets, self.layout.cells)
        pull = self._target_moment(rows, targets, weights, left, candidates.longest)
        total = pull if push is None else pull + push
        result = in_columns(joined(total), placed.matrix, both=moment == "data")
        smoothed, exact, slope_sum, n_active = found.tolist()
        return Hinge(smoothed, exact, slope_sum, int(n_active), None, result)

    def _hinges(
        self,
        targets: HostPairs,
        cells: dict[Cell, CellTask],
        by_block: dict[str, list[Any]],
        given: dict[str, Any],
    ) -> Hinge:
        """Return sums of hinges by target pair, and no moment."""
        parts: dict[Cell, Any] = {}
        for found in self.crew.total(_cells.hinge_cell, cells, _cells.by_cell, by_block, **given):
            parts.update(found)
        totals = sum((parts[cell].totals for cell in sorted(parts)), np.zeros(4))
        hinges = _by_target({cell: part.hinges for cell, part in parts.items()}, targets)
        smoothed, exact, slope_sum, n_active = totals.tolist()
        return Hinge(smoothed, exact, slope_sum, int(n_active), hinges)

    def _target_moment(
        self,
        rows: ClusterRows,
        targets: HostPairs,
        weights: np.ndarray,
        left: RowMap,
        longest: int,
    ) -> np.ndarray:
        """Sum over target pairs of weight * (V_i - V_j)^T (x_i - x_j), x as it was placed."""
        cells = {
            cell: (
                self._rows(rows, cell),
                {"pairs": self._placed(targets, cell), "weights": weights[own.places]},
            )
            for cell, own in targets.cells.items()
        }
        grid = self._moment_grid(rows, left, float(longest) * targets.size)
        _, found = self.crew.total_matrix(
            _cells.pair_moment,
            cells,
            _cells.MatrixAddition(grid),
            grid.nbytes,
            row_map=left,
            exact=left.matrix is None,
        )
        if found is None:
            return np.zeros((2, left.width(rows.width), rows.width))
        return np.asarray(found)

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        targets = self.pattern(working.targets)
        by_block = self._targets_by_block(targets, self.distances(embedding, targets))
        cells = self._triplets(embedding, working)
        for cell, (_, own) in cells.items():
            own |= {name: self._of_cell(cell, each) for name, each in by_block.items()}
            own |= {"row_map": embedding.coordinates.map, "gamma": gamma}
        return self._multipliers(self.crew.keep(_cells.slopes_cell, cells))

    def target_hinges(self, embedding: Embedding, targets: Pattern, radius: Any) -> Any:
        known, layout, rows = self.pattern(targets), self.layout, embedding.coordinates
        by_block = self._targets_by_block(known, self.distances(embedding, known))
        by_block |= {"classes": self.classes, "radius": layout.by_block(radius)}
        cells: dict[Cell, CellTask] = {cell: (self._rows(rows, cell), {}) for cell in layout.cells}
        parts: dict[Cell, Any] = {}
        for found in self.crew.total(
            _cells.target_hinges, cells, _cells.by_cell, by_block, row_map=rows.map
        ):
            parts.update(found)
        return _by_target(parts, known)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        raise NotImplementedError("MMC is not fitted on a cluster")

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        raise NotImplementedError("MMC is not fitted on a cluster")


def _by_target(parts: dict[Cell, list[np.ndarray]], targets: HostPairs) -> np.ndarray:
    """Sum what cells have for the target pairs of their blocks."""
    found = np.zeros(targets.size)
    for cell in sorted(parts):
        for (block, _), own in zip(ways(cell), parts[cell], strict=True):
            found[targets.range(block)] += own
    return found


def _host_sums(
    sums: list[_cells.HingeSum], targets: HostPairs, cells: list[Cell]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the four totals, added cell by cell, and the weights of target pairs."""
    by_cell: dict[Cell, np.ndarray] = {}
    weights = np.zeros(targets.size)
    for each in sums:
        by_cell.update(each.totals)
        for block, own in each.weights.items():
            weights[targets.range(block)] += own
    return sum((by_cell[cell] for cell in cells if cell in by_cell), np.zeros(4)), weights


def _futures(given: Any) -> dict[Cell, Any]:
    """Return what a pattern, or multipliers, of this device has on the workers."""
    found: dict[Cell, Any] = given.futures
    return found
