"""The tiles of the CPU for the rows of a cell: see :class:`lnml.kernels.cluster.tiles.Tiles`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np

from lnml.core.pairs import EdgeScatter, Multipliers, Pattern, WorkingSet
from lnml.kernels.cluster.layout import cut_ways
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.softmax_tiles import CellPowers
from lnml.kernels.cluster.tiles import (
    CellTriplets,
    HingePart,
    MappedRows,
    Tiles,
    block_ways,
    class_starts,
)
from lnml.kernels.cpu.hinge import hinge_sums, pair_lengths, slopes
from lnml.kernels.cpu.laplacian import Weighted, moment, scatter
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.patterns import carry_over
from lnml.kernels.cpu.screen import NO_BOUNDS, Bounds, ScreenedWays, Trail
from lnml.kernels.cpu.search import Window, within_window
from lnml.kernels.cpu.threads import single_threaded_blas

Rows = list[np.ndarray]


class CpuTiles(Tiles):
    """Compiled code of the CPU, in all threads of a worker's process."""

    def session(self) -> AbstractContextManager[None]:
        return single_threaded_blas()

    def forget(self) -> None:
        pass

    def mapped(self, rows: np.ndarray, row_map: RowMap) -> np.ndarray:
        return row_map(rows)

    def trail(self, found: MappedRows, before: MappedRows | None) -> Trail:
        if before is None or before.trail is None:
            return Trail.begin(found.rows)
        trail: Trail = before.trail.moved(before.rows, found.rows)
        return trail

    def search(self, z: Rows, codes: Rows, radius: Rows, most: int | None) -> list[Pattern]:
        if len(z) == 1:
            # Rows are sorted by class: the pairs beyond its class are met from the first row.
            ends = np.searchsorted(codes[0], codes[0], side="right")
            everything = (0, len(ends))
            window = Window(everything, everything, (np.zeros_like(ends), ends), two_way=True)
            return ScreenedWays([within_window(z, codes[0], radius[0], window, most)])
        first, every = len(z[0]), np.concatenate(codes)
        low = first + np.searchsorted(codes[1], every, side="left")
        high = first + np.searchsorted(codes[1], every, side="right")
        window = Window((0, first), (first, every.size), (low, high), two_way=True)
        found = within_window(z, every, np.concatenate(radius), window, most)
        return ScreenedWays(cut_ways(found, first))

    def nearest(self, z: Rows, codes: Rows, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        starts = class_starts(codes)
        return [
            nearest_in_ranges(z[a], starts[a], z[b], starts[b], k, a == b) for a, b in block_ways(z)
        ]

    def lengths(self, z: Rows, pairs: list[Pattern]) -> np.ndarray:
        found = [
            pair_lengths(z[a], z[b], way) for (a, b), way in zip(block_ways(z), pairs, strict=True)
        ]
        return np.concatenate(found)

    def moment(
        self, values: Rows, data: Rows, pairs: list[Pattern], weights: Rows, exact: bool
    ) -> np.ndarray:
        return moment(_edges(pairs, weights, values), values, data, exact=exact)

    def scatter(self, z: Rows, pairs: list[Pattern], weights: Rows) -> EdgeScatter:
        return scatter(_edges(pairs, weights, z), z)

    def hinge(
        self, z: Rows, data: Rows, triplets: CellTriplets, gamma: float, moment: str
    ) -> HingePart:
        sums = [
            hinge_sums(z[a], z[b], working, lengths, gamma, bounds)
            for (a, b), working, lengths, bounds in _working_sets(z, triplets)
        ]
        totals = np.sum([each.totals for each in sums], axis=0)
        push = None
        if moment:
            pushed, weights = [each.pushed for each in sums], [-each.push_weights for each in sums]
            exact = moment == "data"
            push = self.moment(data if exact else z, data, pushed, weights, exact)
        return HingePart(
            totals, [each.target_weights for each in sums], [each.target_hinge for each in sums],
            push,
        )  # fmt: skip

    def slopes(self, z: Rows, triplets: CellTriplets, gamma: float) -> list[Multipliers]:
        return [
            slopes(z[a], z[b], working, lengths, gamma, bounds)
            for (a, b), working, lengths, bounds in _working_sets(z, triplets)
        ]

    def carry_over(
        self, old: list[Multipliers], old_targets: list[Pattern], targets: list[Pattern]
    ) -> list[Multipliers]:
        return [carry_over(*each) for each in zip(old, old_targets, targets, strict=True)]

    def to_host(self, multipliers: list[Multipliers]) -> list[Multipliers]:
        return multipliers

    def totals(self, z: Rows, codes: Rows) -> Rows:
        return CellPowers(z, codes).totals()

    def products(self, z: Rows, data: Rows, codes: Rows, factors: Rows, full: bool) -> np.ndarray:
        return CellPowers(z, codes).moment(data, factors, full)


def _edges(pairs: list[Pattern], weights: Rows, z: Rows) -> list[Weighted]:
    """Pairs with their weights and blocks."""
    ways = zip(pairs, weights, block_ways(z), strict=True)
    return [Weighted(each, own, *blocks) for each, own, blocks in ways]


def _working_sets(
    z: Rows, triplets: CellTriplets
) -> list[tuple[tuple[int, int], WorkingSet, np.ndarray, Bounds]]:
    """Blocks, triplets, lengths of targets and bounds of candidates, by ways."""
    found = []
    ways, candidates = block_ways(z), triplets.candidates
    multipliers: Sequence[Multipliers | None] = triplets.multipliers or [None] * len(ways)
    trails: list[Trail | None] = triplets.trails or [None] * len(ways)
    for way, (a, b) in enumerate(ways):
        targets = Pattern(triplets.starts[a], triplets.lengths[a])
        working = WorkingSet(targets, candidates[way], multipliers[way])
        bounds = NO_BOUNDS
        if isinstance(candidates, ScreenedWays):
            bounds = candidates.bounds(way, trails[a], trails[b])
        found.append(((a, b), working, triplets.lengths[a], bounds))
    return found
