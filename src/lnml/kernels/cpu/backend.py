"""The kernel protocol on the CPU: each operation is documented there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import (
    SEARCH_SLACK,
    Edge,
    EdgeScatter,
    Hinge,
    Multipliers,
    Partners,
    Pattern,
    Search,
    Streamed,
    WorkingSet,
)
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.cpu import assignment as _assignment
from lnml.kernels.cpu import columns as _columns
from lnml.kernels.cpu import hinge as _hinge
from lnml.kernels.cpu import laplacian as _laplacian
from lnml.kernels.cpu import patterns as _patterns
from lnml.kernels.cpu import roots as _roots
from lnml.kernels.cpu import search as _search
from lnml.kernels.cpu import softmax as _softmax
from lnml.kernels.cpu import streamed as _streamed
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.partners import nearest_of_class
from lnml.kernels.cpu.products import times_transposed
from lnml.kernels.cpu.screen import bounds_of, screened
from lnml.kernels.cpu.threads import (
    block_budget,
    pair_budget,
    single_threaded_blas,
    slope_budget,
)
from lnml.kernels.protocol import Kernels


class CPUKernels(Kernels):
    """See :class:`lnml.kernels.protocol.Kernels`; handles hold NumPy arrays."""

    @property
    def most_slopes(self) -> float:  # type: ignore[override]
        return slope_budget()

    def session(self) -> AbstractContextManager[None]:
        # BLAS at one thread for the whole of a fit: the tiles keep all cores busy. A threaded
        # BLAS waits on its threads between small products, which costs ten times their work
        # when another process wants a core; and results would depend on the number of threads.
        return single_threaded_blas()

    def points(self, data: Any, class_start: np.ndarray, order: np.ndarray | None = None) -> Points:
        if order is None:
            return _columns.make_points(data, class_start)
        return _columns.training_points(data, order, class_start)

    def pattern(self, pairs: Pattern) -> Neighborhoods:
        if isinstance(pairs, Neighborhoods):
            return pairs
        return Neighborhoods(pairs.indptr, pairs.indices)

    def to_host(self, values: Any) -> Any:
        return values

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        return embedding.coordinates[indices].astype(np.float64)

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
        return _laplacian.edge_scatter(points, edges)

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        return Embedding(times_transposed(points.data, components), points, components)

    def nearest(
        self, embedding: Embedding, queries: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        z = embedding.coordinates
        queries = np.ascontiguousarray(queries, dtype=z.dtype)
        ranges = (np.array([0, rows.shape[0]]) for rows in (queries, z))
        return nearest_in_ranges(queries, next(ranges), z, next(ranges), k, False)

    def partners(self, embedding: Embedding, k: int, near: Pattern | None = None) -> Partners:
        distances, columns = nearest_of_class(embedding, k, near)
        return Partners(columns, distances, *_assignment.listed(columns))

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
        return _assignment.choose(ranked, k_min, k_av, k_max, numbers)

    def distances(
        self, embedding: Embedding, pairs: Pattern, *, longest: bool = False
    ) -> np.ndarray:
        z = embedding.coordinates
        out = _hinge.pair_lengths(z, z, pairs)
        return _patterns.row_maximum(out, pairs) if longest else out

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
        found = _search.within(embedding, radius, pair_budget() if limited else None)
        return Search(embedding.components, radius, found)

    def working_set(
        self, targets: Pattern, candidates: Pattern | None, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        if candidates is None:
            candidates = Pattern(np.zeros_like(targets.indptr), np.zeros(0, np.int32))
        return screened(WorkingSet(targets, candidates, multipliers))

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        return _patterns.carry_over(old, old_targets, targets)

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, moment: str = ""
    ) -> Hinge:
        targets = working.targets
        distances = self.distances(embedding, targets)
        if not isinstance(working, Streamed):
            return _hinge.hinge(embedding, working, distances, gamma, moment)
        reach = 1.0 + _patterns.row_maximum(distances, targets)
        room = block_budget()
        return _streamed.hinge(embedding, targets, distances, reach, gamma, moment, room)

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        distances = self.distances(embedding, working.targets)
        z = embedding.coordinates
        return _hinge.slopes(z, z, working, distances, gamma, bounds_of(working, z))

    def target_hinges(
        self, embedding: Embedding, targets: Pattern, radius: np.ndarray
    ) -> np.ndarray:
        distances, room = self.distances(embedding, targets), block_budget()
        terms = _streamed.hinge(embedding, targets, distances, radius, 0.0, "", room)
        found: np.ndarray = terms.target_hinge
        return found

    def softmax(
        self, embedding: Embedding, targets: Pattern | None, *, full: bool | None
    ) -> tuple[float, np.ndarray]:
        points = embedding.points
        sizes = points.class_sizes[points.row_class] - 1 if targets is None else targets.sizes
        return _softmax.softmax(embedding, sizes > 0, full)

    def softmax_costs(self, embedding: Embedding, pairs: Pattern) -> np.ndarray:
        return _softmax.softmax_costs(embedding, pairs, self.distances(embedding, pairs))

    def class_softmax(self, embedding: Embedding, *, full: bool | None) -> tuple[float, np.ndarray]:
        return _softmax.class_softmax(embedding, full)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        return _roots.root_sums(embedding)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        return _roots.length_sums(points, components)
