"""Torch's face of the kernel protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from lnml.core.pairs import Hinge, Multipliers, Pattern, Ranked, RowSample
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.torch import assignment as _assignment
from lnml.kernels.torch import class_softmax as _class_softmax
from lnml.kernels.torch import columns as _columns
from lnml.kernels.torch import device as _device
from lnml.kernels.torch import laplacian as _laplacian
from lnml.kernels.torch import patterns as _patterns
from lnml.kernels.torch import roots as _roots
from lnml.kernels.torch import search as _search
from lnml.kernels.torch import softmax as _softmax
from lnml.kernels.torch.basics import to_numpy, to_tensor
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.hinge import Triplets
from lnml.kernels.torch.nearest import NearestSearch
from lnml.kernels.torch.patterns import TorchMultipliers, TorchPattern


class TorchKernels:
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
        """Context in which a whole fit runs."""
        return _device.fit_session(self.device, lambda: self.n_rows)

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        """Bring class-sorted data onto the device."""
        data = to_tensor(data, self.device).contiguous()
        return Points(data, np.asarray(class_start, dtype=np.int64))

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        """Rows of X in class order, shifted by a value near the mean."""
        self.n_rows = X.shape[0]
        _device.check_room(self.device, X.shape[0], X.shape[1], X.itemsize)
        start = np.asarray(class_start, dtype=np.int64)
        return _columns.training_points(to_tensor(X, self.device), order, start)

    def array(self, values: Any) -> torch.Tensor:
        """Bring values onto the device."""
        return to_tensor(values, self.device)

    def to_host(self, values: torch.Tensor) -> np.ndarray:
        """Bring values to the host."""
        return to_numpy(values)

    def pattern(self, pairs: Pattern) -> TorchPattern:
        """Bring given pairs onto the device."""
        return _patterns.as_pattern(pairs, self.device)

    def pair_budget(self, pair_bytes: int) -> int:
        """Return how many pairs fit a share of the memory."""
        if self.device.type == "cpu":
            return int(_device.free_bytes(self.device) / pair_bytes)
        return int(_device.PAIR_SHARE * self.free / _device.PAIR_BYTES)

    def columns(self, points: Points) -> Columns:
        """Mean, spread and range of every column."""
        return _columns.columns(points)

    def standardized(self, points: Points, mean: np.ndarray, scale: np.ndarray) -> Points:
        """Return (data - mean) / scale."""
        return _columns.standardized(points, mean, scale)

    def mapped(self, points: Points, matrix: np.ndarray) -> Points:
        """Return data @ matrix."""
        return _columns.mapped(points, matrix)

    def widened(self, points: Points) -> Points:
        """Return the same data in float64."""
        return Points(points.data.double(), points.class_start)

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        """Sum over pairs of each class of its weight times v v^T."""
        return _columns.class_scatter(points, weights)

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        """Coordinates of the points under ``components``."""
        right = to_tensor(components, self.device, points.data.dtype)
        return Embedding(points.data @ right.T, points)

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        """Coordinates of a few rows in float64 on the host."""
        return to_numpy(embedding.coordinates[to_tensor(indices, self.device)].double())

    def nearest(
        self, embedding: Embedding, k: int, *, same_class: bool, queries: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return squared distances and indices of the k nearest rows."""
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
        """Pairs of different class closer than a radius per row (a superset)."""
        radius = to_tensor(radius, self.device, torch.float64)
        return _search.within(embedding, radius, rows, max_pairs, self.room)

    def distances(self, embedding: Embedding, pairs: Pattern) -> torch.Tensor:
        """Squared distance of every pair of a pattern."""
        pairs, z = self.pattern(pairs), embedding.coordinates
        return pair_distances(z, pairs.rows, z, pairs.indices, self.room).double()

    def row_maximum(self, values: torch.Tensor, pairs: Pattern) -> torch.Tensor:
        """Largest value of each row of a pattern; -inf for rows without pairs."""
        return _patterns.row_maximum(values, self.pattern(pairs))

    def per_pair(self, row_values: torch.Tensor, pairs: Pattern) -> torch.Tensor:
        """Value of the row of every pair."""
        return row_values.double()[self.pattern(pairs).rows]

    def per_row(self, class_values: np.ndarray, points: Points) -> torch.Tensor:
        """Value of the class of every row."""
        return self.array(class_values)[_columns.row_classes(points)]

    def log(self, values: torch.Tensor) -> torch.Tensor:
        """Logarithm of every value."""
        return values.double().log()

    def sample_rows(
        self, values: torch.Tensor, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        """Pick rows that have pairs, with their values."""
        return _patterns.sample_rows(values, self.pattern(pairs), count, rng)

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        """Return the number of (target, impostor) pairs of all rows."""
        given = None if impostors is None else self.pattern(impostors)
        return _patterns.count_triplets(points, self.pattern(targets), given)

    def carry_over(
        self, old: Multipliers, old_targets: Pattern, targets: Pattern
    ) -> TorchMultipliers:
        """Multipliers of the triplets whose target pair is still one."""
        multipliers = _patterns.as_multipliers(old, self.device)
        return _patterns.carry_over(multipliers, self.pattern(old_targets), self.pattern(targets))

    def listed(self, columns: torch.Tensor) -> tuple[TorchPattern, torch.Tensor]:
        """Pattern of the columns that are not -1, and where they stood."""
        return _assignment.listed(columns)

    def ranked(
        self,
        columns: torch.Tensor,
        distances: torch.Tensor,
        costs: torch.Tensor,
        position: torch.Tensor,
    ) -> Ranked:
        """Partners with their costs, which never fall along a row."""
        return _assignment.ranked(columns, distances, costs, position)

    def choose(
        self, ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None
    ) -> tuple[TorchPattern, float]:
        """Return the pairs of least total cost, and that cost."""
        numbers = None if row_numbers is None else self.array(row_numbers)
        return _assignment.choose(ranked, k_min, k_av, k_max, numbers)

    def hinge(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        gamma: float = 0.0,
        multipliers: Multipliers | None = None,
        first_row: int = 0,
    ) -> Hinge:
        """Hinge terms, their smoothed value and slopes."""
        return self._triplets(embedding, targets, candidates, multipliers, first_row).hinge(gamma)

    def slopes(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        gamma: float,
        multipliers: Multipliers | None,
    ) -> TorchMultipliers:
        """Return the non-zero maximising slopes of the smoothed hinge."""
        return self._triplets(embedding, targets, candidates, multipliers, 0).slopes(gamma)

    def _triplets(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        multipliers: Multipliers | None,
        first_row: int,
    ) -> Triplets:
        given = None if multipliers is None else _patterns.as_multipliers(multipliers, self.device)
        pairs = (self.pattern(targets), self.pattern(candidates))
        return Triplets(embedding, *pairs, given, first_row, self.room)

    def laplacian(
        self, edges: list[tuple[Pattern, torch.Tensor | None, float]], values: torch.Tensor
    ) -> torch.Tensor:
        """Lap(W + W^T) @ values."""
        there = [(self.pattern(pairs), weights, factor) for pairs, weights, factor in edges]
        return _laplacian.laplacian(there, values, self.room)

    def log_normalizers(self, embedding: Embedding) -> torch.Tensor:
        """Log of the sum over j != i of exp(-D_ij) for every row i."""
        return _softmax.log_normalizers(embedding, self.room)

    def softmax(
        self, embedding: Embedding, row_weights: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, np.ndarray]:
        """Return log Z_i and values^T Lap(P + P^T) data for the row-weighted softmax P."""
        return _softmax.softmax(embedding, row_weights, values, self.room)

    def class_softmax(
        self, embedding: Embedding, values: torch.Tensor
    ) -> tuple[torch.Tensor, np.ndarray]:
        """Return the share of each row's softmax within its class, and NCA's moment."""
        return _class_softmax.class_softmax(embedding, values, self.room)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of the distances over pairs of different class, and its gradient in M."""
        return _roots.root_sums(embedding, self.room)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of |L x| over rows x, and its gradient in M."""
        return _roots.length_sums(points, components)

    def gram(self, left: torch.Tensor, right: torch.Tensor, *, exact: bool = True) -> np.ndarray:
        """left.T @ right in float64 on the host."""
        return _columns.gram(left, right, exact=exact)
