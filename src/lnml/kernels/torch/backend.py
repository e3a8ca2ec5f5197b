"""The kernel protocol on a torch device: each operation is documented there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lnml.core.pairs import EdgeScatter, Hinge, Multipliers, Pattern, Ranked, RowSample, WorkingSet
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.protocol import Kernels
from lnml.kernels.torch import assignment as _assignment
from lnml.kernels.torch import class_softmax as _class_softmax
from lnml.kernels.torch import columns as _columns
from lnml.kernels.torch import device as _device
from lnml.kernels.torch import laplacian as _laplacian
from lnml.kernels.torch import patterns as _patterns
from lnml.kernels.torch import roots as _roots
from lnml.kernels.torch import search as _search
from lnml.kernels.torch import softmax as _softmax
from lnml.kernels.torch.arrays import TorchArrays
from lnml.kernels.torch.basics import to_tensor
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.hinge import Triplets
from lnml.kernels.torch.nearest import NearestSearch
from lnml.kernels.torch.patterns import TorchPattern
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
        self.arrays = TorchArrays(self.device)
        # Asked once: the driver takes its time to answer.
        self.free = _device.free_bytes(self.device)
        self.room = _device.tile_bytes(self.free)
        self.n_rows = 0

    def session(self) -> AbstractContextManager[None]:
        return _device.fit_session(self.device, lambda: self.n_rows)

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        data = to_tensor(data, self.device).contiguous()
        return Points(data, np.asarray(class_start, dtype=np.int64))

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        self.n_rows = X.shape[0]
        _device.check_room(self.device, X.shape[0], X.shape[1], X.itemsize)
        start = np.asarray(class_start, dtype=np.int64)
        return _columns.training_points(to_tensor(X, self.device), order, start)

    def pattern(self, pairs: Pattern) -> TorchPattern:
        return _patterns.as_pattern(pairs, self.device)

    def pair_budget(self, pair_bytes: int) -> int:
        if self.device.type == "cpu":
            return int(_device.free_bytes(self.device) / pair_bytes)
        return int(_device.PAIR_SHARE * self.free / _device.PAIR_BYTES)

    def columns(self, points: Points) -> Columns:
        return _columns.columns(points)

    def standardized(self, points: Points, mean: np.ndarray, scale: np.ndarray) -> Points:
        return _columns.standardized(points, mean, scale)

    def mapped(
        self,
        points: Points,
        matrix: np.ndarray,
        shift: np.ndarray | None = None,
        far: bool = False,
    ) -> Points:
        return _columns.mapped(points, matrix, shift, far)

    def widened(self, points: Points) -> Points:
        return replace(points, data=points.data.double())

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        return _columns.class_scatter(points, weights)

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        right = to_tensor(components, self.device, points.data.dtype)
        return Embedding(points.data @ right.T, points)

    def nearest(
        self, embedding: Embedding, k: int, *, same_class: bool, queries: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z = embedding.coordinates
        everything = np.array([0, z.shape[0]])
        if queries is not None:
            queries = to_tensor(queries, self.device, z.dtype).contiguous()
            search = NearestSearch(queries, z, k, exclude_self=False, room=self.room)
            return search.run(np.array([0, queries.shape[0]]), everything)
        ranges = embedding.points.class_start if same_class else everything
        return NearestSearch(z, z, k, exclude_self=True, room=self.room).run(ranges, ranges)

    def within(
        self,
        embedding: Embedding,
        radius: Any,
        *,
        rows: tuple[int, int] | None = None,
        max_pairs: int | None = None,
    ) -> TorchPattern:
        radius = to_tensor(radius, self.device, torch.float64)
        return _search.within(embedding, radius, rows, max_pairs, self.room)

    def distances(self, embedding: Embedding, pairs: Pattern) -> torch.Tensor:
        pairs, z = self.pattern(pairs), embedding.coordinates
        return pair_distances(z, pairs.rows, z, pairs.indices, self.room).double()

    def sample_rows(
        self, values: torch.Tensor, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        return _patterns.sample_rows(values, self.pattern(pairs), count, rng)

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        given = None if impostors is None else self.pattern(impostors)
        return _patterns.count_triplets(points, self.pattern(targets), given)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        multipliers = _patterns.as_multipliers(old, self.device)
        return _patterns.carry_over(multipliers, self.pattern(old_targets), self.pattern(targets))

    def listed(self, columns: torch.Tensor) -> tuple[TorchPattern, torch.Tensor]:
        return _assignment.listed(columns)

    def ranked(
        self,
        columns: torch.Tensor,
        distances: torch.Tensor,
        costs: torch.Tensor,
        position: torch.Tensor,
    ) -> Ranked:
        return _assignment.ranked(columns, distances, costs, position)

    def choose(
        self, ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None
    ) -> tuple[TorchPattern, float]:
        numbers = None if row_numbers is None else self.arrays.array(row_numbers)
        return _assignment.choose(ranked, k_min, k_av, k_max, numbers)

    def working_set(
        self, targets: Pattern, candidates: Pattern, multipliers: Multipliers | None = None
    ) -> TorchWorkingSet:
        return as_working_set(WorkingSet(targets, candidates, multipliers), self.device)

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, first_row: int = 0
    ) -> Hinge:
        triplets = as_working_set(working, self.device)
        return Triplets(embedding, triplets, first_row, self.room).hinge(gamma)

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        triplets = as_working_set(working, self.device)
        return Triplets(embedding, triplets, 0, self.room).slopes(gamma)

    def slope_laplacian(
        self, working: WorkingSet, terms: Hinge, values: torch.Tensor
    ) -> torch.Tensor:
        triplets = as_working_set(working, self.device)
        return _laplacian.slope_laplacian(triplets, terms, values, self.room)

    def laplacian(
        self, edges: list[tuple[Pattern, torch.Tensor | None, float]], values: torch.Tensor
    ) -> torch.Tensor:
        there = [(self.pattern(pairs), weights, factor) for pairs, weights, factor in edges]
        return _laplacian.laplacian(there, values, self.room)

    def edge_scatter(
        self,
        points: Points,
        edges: list[tuple[Pattern, torch.Tensor | None, float]],
        shift: np.ndarray,
    ) -> EdgeScatter:
        there = [(self.pattern(pairs), weights, factor) for pairs, weights, factor in edges]
        return _laplacian.edge_scatter(points, there, self.room)

    def log_normalizers(self, embedding: Embedding) -> torch.Tensor:
        return _softmax.log_normalizers(embedding, self.room)

    def softmax(
        self, embedding: Embedding, row_weights: torch.Tensor, *, full: bool
    ) -> tuple[torch.Tensor, np.ndarray]:
        return _softmax.softmax(embedding, row_weights, full, self.room)

    def class_softmax(self, embedding: Embedding, *, full: bool) -> tuple[torch.Tensor, np.ndarray]:
        return _class_softmax.class_softmax(embedding, full, self.room)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        return _roots.root_sums(embedding, self.room)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        return _roots.length_sums(points, components)

    def gram(self, left: torch.Tensor, right: torch.Tensor, *, exact: bool = True) -> np.ndarray:
        return _columns.gram(left, right, exact=exact)
