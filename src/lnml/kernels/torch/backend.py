"""The kernel protocol on a torch device: each operation is documented there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from lnml.core.pairs import (
    PAIR_BYTES,
    SEARCH_SLACK,
    Edge,
    EdgeScatter,
    Hinge,
    MixedSlopes,
    Multipliers,
    Partners,
    Pattern,
    Search,
    Streamed,
    WorkingSet,
)
from lnml.core.points import Columns, Embedding, Points
from lnml.core.trail import Trail
from lnml.kernels.protocol import Kernels
from lnml.kernels.torch import assignment as _assignment
from lnml.kernels.torch import class_softmax as _class_softmax
from lnml.kernels.torch import columns as _columns
from lnml.kernels.torch import device as _device
from lnml.kernels.torch import first_use
from lnml.kernels.torch import hinge as _hinge
from lnml.kernels.torch import laplacian as _laplacian
from lnml.kernels.torch import patterns as _patterns
from lnml.kernels.torch import roots as _roots
from lnml.kernels.torch import search as _search
from lnml.kernels.torch import softmax as _softmax
from lnml.kernels.torch import streamed as _streamed
from lnml.kernels.torch.basics import to_numpy, to_tensor
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.embedding import TorchEmbedding
from lnml.kernels.torch.nearest import NearestSearch, nearest_again
from lnml.kernels.torch.patterns import TorchPattern
from lnml.kernels.torch.trail import SMALL, TorchTrail
from lnml.kernels.torch.working_set import TorchWorkingSet, as_working_set


class TorchKernels(Kernels):
    """See :class:`lnml.kernels.protocol.Kernels`; handles hold tensors of one device.

    Parameters
    ----------
    name : str
        "cuda", "cuda:1", ... or "torch:cpu".
    """

    def __init__(self, name: str) -> None:
        self.device = _device.parse_device(name)
        # Asked once: the driver takes its time to answer.
        self.free = _device.free_bytes(self.device)
        self.room = _device.tile_bytes(self.free)
        self.n_rows = 0

    def session(self) -> AbstractContextManager[None]:
        if self.device.type == "cuda":
            first_use.start_programs(self.device)
        return _device.fit_session(self.device, lambda: self.n_rows)

    def points(self, data: Any, class_start: np.ndarray, order: np.ndarray | None = None) -> Points:
        start = np.asarray(class_start, dtype=np.int64)
        if order is None:
            return Points(to_tensor(data, self.device).contiguous(), start)
        self.n_rows = data.shape[0]
        _device.check_room(self.device, data.shape[0], data.shape[1], data.itemsize)
        return _columns.training_points(to_tensor(data, self.device), order, start)

    def pattern(self, pairs: Pattern) -> TorchPattern:
        return _patterns.as_pattern(pairs, self.device)

    def to_host(self, values: Any) -> Any:
        if isinstance(values, Multipliers):
            parts = values.indptr, values.impostor, values.slot, values.value
            return Multipliers(*(to_numpy(part) for part in parts))
        return to_numpy(values) if isinstance(values, torch.Tensor) else values

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        return to_numpy(embedding.coordinates[to_tensor(indices, self.device)].double())

    def trail(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> Trail:
        if components.size < SMALL:
            return Trail(components, most_bytes, most_pairs)
        return TorchTrail(components, most_bytes, most_pairs, device=self.device)

    def columns(self, points: Points) -> Columns:
        return _columns.columns(points)

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
        return _columns.mapped(points, matrix, shift, scale, far, wide)

    def pair_scatter(self, points: Points, same: Any, other: Any = None) -> np.ndarray:
        return _columns.pair_scatter(points, same, other)

    def edge_scatter(self, points: Points, edges: list[Edge]) -> EdgeScatter:
        return _laplacian.edge_scatter(points, edges, self.room)

    def embed(self, points: Points, components: Any) -> Embedding:
        return TorchEmbedding(points, components)

    def nearest(
        self, embedding: Embedding, queries: Any, k: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z = embedding.coordinates
        queries = to_tensor(queries, self.device, z.dtype).contiguous()
        search = NearestSearch(queries, z, k, exclude_self=False, room=self.room)
        return search.run(*(np.array([0, rows.shape[0]]) for rows in (queries, z)))

    def partners(self, embedding: Embedding, k: int, near: Pattern | None = None) -> Partners:
        z, ranges = embedding.coordinates, embedding.points.class_start
        found = None if near is None else nearest_again(embedding, k, self.pattern(near), self.room)
        if found is None:
            search = NearestSearch(z, z, k, exclude_self=True, room=self.room)
            found = search.run(ranges, ranges)
        distances, columns = found
        return Partners(columns, distances, *_assignment.listed(columns))

    def choose(
        self,
        partners: Partners,
        costs: torch.Tensor,
        k_min: int,
        k_av: int,
        k_max: int,
        numbers: np.ndarray,
    ) -> tuple[TorchPattern, float]:
        ranked = _assignment.ranked(partners, to_tensor(costs, self.device), k_max)
        there = to_tensor(numbers, self.device)
        return _assignment.choose(ranked, k_min, k_av, k_max, there)

    def distances(
        self, embedding: Embedding, pairs: Pattern, *, longest: bool = False
    ) -> torch.Tensor:
        pairs, z = self.pattern(pairs), embedding.coordinates
        found = pair_distances(z, pairs.rows, z, pairs.indices, self.room).double()
        if not longest:
            return found
        return torch.segment_reduce(found, "max", offsets=pairs.indptr, initial=-torch.inf)

    def within(
        self,
        embedding: Embedding,
        radius: Any,
        *,
        known: Search | None = None,
        needed: Any = None,
        limited: bool = True,
    ) -> Search:
        radius = to_tensor(radius, self.device, torch.float64)
        if known is not None:
            least = radius if needed is None else to_tensor(needed, self.device, torch.float64)
            if bool((SEARCH_SLACK * least <= known.radius).all()):
                return known
        # A search that looks further than it must is not worth what one that must is.
        share = _device.PAIR_SHARE if needed is None else _device.MARGIN_SHARE
        most = self._pair_budget(share) if limited else None
        found = _search.within(embedding, radius, self.room, most)
        return Search(embedding.components, radius, found)

    def _pair_budget(self, share: float) -> int:
        """Return how many pairs of a working set a share of a GPU has room for."""
        if self.device.type == "cpu":
            return int(_device.free_bytes(self.device) / PAIR_BYTES)
        return int(share * self.free / _device.PAIR_BYTES)

    def working_set(
        self, targets: Pattern, candidates: Pattern | None, multipliers: Multipliers | None = None
    ) -> TorchWorkingSet:
        if candidates is None:
            targets = self.pattern(targets)
            candidates = TorchPattern(torch.zeros_like(targets.indptr), targets.indices[:0])
        return as_working_set(WorkingSet(targets, candidates, multipliers), self.device)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        multipliers = _patterns.as_multipliers(old, self.device)
        return _patterns.carry_over(multipliers, self.pattern(old_targets), self.pattern(targets))

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, moment: str = ""
    ) -> Hinge:
        if isinstance(working, Streamed):
            targets = self.pattern(working.targets)
            reach = 1.0 + self.distances(embedding, targets, longest=True)
            return self._streamed(embedding, targets, reach, gamma, moment)
        working = as_working_set(working, self.device)
        return _hinge.hinge(embedding, working, gamma, moment, self.room, again=True)

    def _streamed(
        self, embedding: Embedding, targets: TorchPattern, radius: Any, gamma: float, moment: str
    ) -> Hinge:
        most = self._pair_budget(_device.MARGIN_SHARE) // 2
        return _streamed.hinge(embedding, targets, radius, gamma, moment, self.room, most)

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        working = as_working_set(working, self.device)
        return _hinge.Triplets.of(embedding.coordinates, working, self.room).slopes(gamma)

    def mixed_slopes(self, parts: list[tuple[float, Multipliers]], targets: Pattern) -> MixedSlopes:
        there = [(share, _patterns.as_multipliers(each, self.device)) for share, each in parts]
        try:
            return _patterns.mixed_slopes(there, self.pattern(targets))
        except torch.cuda.OutOfMemoryError:
            # The fit is solved: it shall not end for lack of room to prove it.
            return super().mixed_slopes(there, targets)

    def target_hinges(self, embedding: Embedding, targets: Pattern, radius: Any) -> torch.Tensor:
        radius = to_tensor(radius, self.device, torch.float64)
        found = self._streamed(embedding, self.pattern(targets), radius, 0.0, "")
        hinges: torch.Tensor = found.target_hinge
        return hinges

    def softmax(
        self, embedding: Embedding, targets: Pattern | None, *, full: bool | None
    ) -> tuple[float, np.ndarray]:
        points = embedding.points
        if targets is None:
            sizes = to_tensor(points.class_sizes - 1, self.device)[_columns.row_classes(points)]
        else:
            sizes = self.pattern(targets).sizes
        return _softmax.softmax(embedding, sizes > 0, full, self.room)

    def softmax_costs(self, embedding: Embedding, pairs: Pattern) -> torch.Tensor:
        pairs = self.pattern(pairs)
        distances = self.distances(embedding, pairs)
        return _softmax.softmax_costs(embedding, pairs, distances, self.room)

    def class_softmax(self, embedding: Embedding, *, full: bool | None) -> tuple[float, np.ndarray]:
        return _class_softmax.class_softmax(embedding, full, self.room)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        return _roots.root_sums(embedding, self.room)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        return _roots.length_sums(points, components)
