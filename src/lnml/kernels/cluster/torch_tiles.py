"""The tiles of a torch device: see :class:`lnml.kernels.cluster.tiles.Tiles`.

The rows of two blocks are put one after the other, so that most kernels see a cell as one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import torch

from lnml.core.pairs import Edge, EdgeScatter, Multipliers, Pattern
from lnml.core.points import Points
from lnml.core.text import memory_text
from lnml.kernels.cluster.layout import join_starts, join_ways
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.tiles import (
    CellTriplets,
    HingePart,
    MappedRows,
    Tiles,
    block_ways,
    class_starts,
)
from lnml.kernels.cluster.torch_pairs import DeviceMultipliers, DevicePairs
from lnml.kernels.cluster.torch_softmax import CellWeights
from lnml.kernels.cpu.threads import single_threaded_blas
from lnml.kernels.torch.basics import to_numpy, to_tensor
from lnml.kernels.torch.columns import gram, moved_rows
from lnml.kernels.torch.device import free_bytes, parse_device, settings_of_a_fit
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.hinge import Triplets
from lnml.kernels.torch.laplacian import edge_scatter, laplacian
from lnml.kernels.torch.nearest import NearestSearch
from lnml.kernels.torch.patterns import TorchPattern, as_pattern, carry_over
from lnml.kernels.torch.search import Window, WindowSearch
from lnml.kernels.torch.working_set import Joined, join, n_slots

# Bytes that tiles may take. The same on every GPU, since it decides in which order sums are added.
ROOM = 2**29

Rows = list[torch.Tensor]
Host = list[np.ndarray]


class TorchTiles(Tiles):
    """The kernels of torch, for one task at a time.

    Parameters
    ----------
    name : str
        "cuda", "cuda:1", ... or "torch:cpu".
    """

    def __init__(self, name: str) -> None:
        self.device = parse_device(name)
        self._lock = RLock()

    @contextmanager
    def session(self) -> Iterator[None]:
        # Settings of torch are those of the process, and tasks would share the memory of the GPU.
        with self._lock, single_threaded_blas(), settings_of_a_fit(self.device):
            try:
                yield
            except torch.cuda.OutOfMemoryError as error:
                free = memory_text(free_bytes(self.device))
                raise MemoryError(
                    f"{self.device} of a worker ran out of memory, {free} were free: use "
                    f"more workers, one for each GPU, or free memory that others use"
                ) from error

    def forget(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def mapped(self, rows: Any, row_map: RowMap) -> torch.Tensor:
        placed, dtype = self._there(rows), getattr(torch, np.dtype(row_map.dtype).name)
        if row_map.matrix is None and row_map.shift is None:
            found = placed.to(dtype)
        else:
            narrow = row_map.matrix is not None and not row_map.wide
            kind = dtype if narrow else torch.float64
            found = moved_rows(placed, row_map.shift, None, row_map.matrix, dtype, kind)
        if row_map.offset is not None:
            found = (found.double() - self._there(row_map.offset)).to(dtype)
        return found

    def trail(self, found: MappedRows, before: MappedRows | None) -> None:
        # Candidates have no bounds on a GPU.
        return None

    def _there(self, values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Values on the device."""
        return to_tensor(values, self.device, dtype)

    def search(self, z: Rows, codes: Host, radius: Host, most: int | None) -> DevicePairs:
        first, n = len(z[0]), sum(map(len, z))
        parts = [(0, n)] if len(z) == 1 else [(0, first), (first, n)]
        windows = [Window(parts[a], parts[b]) for a, b in block_ways(z)]
        own = [
            parts[b][0] + np.searchsorted(codes[b], codes[a], side)
            for side in ("left", "right")
            for a, b in block_ways(z)
        ]
        left_out = self._there(np.concatenate(own).reshape(2, n).T)
        reach = self._there(np.concatenate(radius), torch.float64)
        search = WindowSearch(_of_cell(z), reach, left_out, ROOM)
        return DevicePairs(search.run(windows, most), first)

    def nearest(self, z: Rows, codes: Host, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
        starts, found = class_starts(codes), []
        for a, b in block_ways(z):
            search = NearestSearch(z[a], z[b], k, exclude_self=a == b, room=ROOM)
            distances, numbers = search.run(starts[a], starts[b])
            found.append((to_numpy(distances), to_numpy(numbers)))
        return found

    def lengths(self, z: Rows, pairs: list[Pattern]) -> np.ndarray:
        found = []
        for (a, b), way in zip(block_ways(z), pairs, strict=True):
            there = as_pattern(way, self.device)
            found.append(pair_distances(z[a], there.rows, z[b], there.indices, ROOM).double())
        return to_numpy(torch.cat(found))

    def moment(
        self, values: Rows, data: Rows, pairs: list[Pattern], weights: Host, exact: bool
    ) -> np.ndarray:
        graph = join((as_pattern(join_ways(pairs), self.device),))
        given = self._there(np.concatenate(weights), torch.float64)
        return _moment(graph, given, _of_cell(values), data, exact)

    def scatter(self, z: Rows, pairs: list[Pattern], weights: Host) -> EdgeScatter:
        rows = _of_cell(z)
        points = Points(rows, np.array([0, len(rows)]))
        return edge_scatter(points, [Edge(join_ways(pairs), np.concatenate(weights))], ROOM)

    def hinge(
        self, z: Rows, data: Rows, triplets: CellTriplets, gamma: float, moment: str
    ) -> HingePart:
        candidates, found = self._triplets(z, triplets)
        if moment:
            # Joined first: that takes most memory, and the weights are not there yet.
            graph = candidates.graph
        sums, push = found.sums(gamma), None
        if moment:
            exact = moment == "data"
            values = _of_cell(data) if exact else found.z
            push = _moment(graph, -sums.candidate_weights, values, data, exact)
        sizes = [len(own) for own in triplets.lengths]
        weights, hinges = (
            [to_numpy(part) for part in each.split(sizes)]
            for each in (sums.target_weights, sums.target_hinge)
        )
        return HingePart(to_numpy(sums.totals), weights, hinges, push)

    def _triplets(self, z: Rows, given: CellTriplets) -> tuple[DevicePairs, Triplets]:
        """Candidates of a cell, and all its triplets."""
        rows = _of_cell(z)
        lengths = self._there(np.concatenate(given.lengths), torch.float64)
        starts = self._there(join_starts(given.starts), torch.int64)
        # Of the targets only the lengths of their lists are read.
        targets = TorchPattern(starts, lengths)
        candidates = DevicePairs.of(given.candidates, self.device)
        previous = candidates.aligned(given.multipliers, n_slots(targets), rows.dtype)
        return candidates, Triplets(rows, targets, lengths, candidates.whole, previous, ROOM)

    def slopes(self, z: Rows, triplets: CellTriplets, gamma: float) -> DeviceMultipliers:
        _, found = self._triplets(z, triplets)
        return DeviceMultipliers(found.slopes(gamma), len(z[0]))

    def carry_over(
        self, old: Any, old_targets: list[Pattern], targets: list[Pattern]
    ) -> DeviceMultipliers:
        known = DeviceMultipliers.of(old, self.device)
        # Partners of the first block are renumbered, but in both patterns.
        before, after = (
            as_pattern(join_ways(each), self.device) for each in (old_targets, targets)
        )
        return DeviceMultipliers(carry_over(known.whole, before, after), known.first)

    def to_host(self, multipliers: Any) -> list[Multipliers]:
        return DeviceMultipliers.of(multipliers, self.device).on_host()

    def totals(self, z: Rows, codes: Host) -> Host:
        return [to_numpy(part) for part in CellWeights(z, codes, ROOM).totals()]

    def products(self, z: Rows, data: Rows, codes: Host, factors: Host, full: bool) -> np.ndarray:
        return CellWeights(z, codes, ROOM).moment(data, factors, full)


def _of_cell(blocks: Rows) -> torch.Tensor:
    """Return the rows of all blocks of a cell, one after the other."""
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


def _moment(
    graph: Joined, weights: torch.Tensor, values: torch.Tensor, data: Rows, exact: bool
) -> np.ndarray:
    """V^T Lap(W + W^T) X, given the rows of V of a cell and those of X of each block."""
    moved = laplacian(graph, weights, values, ROOM)
    parts = zip(moved.split([len(rows) for rows in data]), data, strict=True)
    return np.sum([gram(part, rows, exact=exact) for part, rows in parts], axis=0)
