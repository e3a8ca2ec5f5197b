"""The kernel protocol on the CPU: each operation is documented there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import EdgeScatter, Hinge, Multipliers, Pattern, Ranked, RowSample, WorkingSet
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.cpu import assignment as _assignment
from lnml.kernels.cpu import columns as _columns
from lnml.kernels.cpu import hinge as _hinge
from lnml.kernels.cpu import laplacian as _laplacian
from lnml.kernels.cpu import patterns as _patterns
from lnml.kernels.cpu import roots as _roots
from lnml.kernels.cpu import search as _search
from lnml.kernels.cpu import softmax as _softmax
from lnml.kernels.cpu.arrays import NumpyArrays
from lnml.kernels.cpu.distances import pattern_distances
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.products import gram, times_transposed
from lnml.kernels.cpu.threads import run_tiles, single_threaded_blas
from lnml.kernels.protocol import Kernels


class CPUKernels(Kernels):
    """See :class:`lnml.kernels.protocol.Kernels`; handles hold NumPy arrays."""

    def __init__(self) -> None:
        self.arrays = NumpyArrays()

    def session(self) -> AbstractContextManager[None]:
        # BLAS at one thread for the whole of a fit: the tiles keep all cores busy. A threaded
        # BLAS waits on its threads between small products, which costs ten times their work
        # when another process wants a core; and results would depend on the number of threads.
        return single_threaded_blas()

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        return _columns.make_points(data, class_start)

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        return _columns.training_points(X, order, class_start)

    def pattern(self, pairs: Pattern) -> Neighborhoods:
        if isinstance(pairs, Neighborhoods):
            return pairs
        return Neighborhoods(pairs.indptr, pairs.indices)

    def pair_budget(self, pair_bytes: int) -> int:
        # Scikit-learn counts its working memory in MiB.
        return int(get_config()["working_memory"] * 2**20 / pair_bytes)

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
        return replace(points, data=points.data.astype(np.float64, copy=False))

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        return _columns.class_scatter(points, weights)

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        return Embedding(times_transposed(points.data, components), points)

    def nearest(
        self,
        embedding: Embedding,
        k: int,
        *,
        same_class: bool,
        queries: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        z = embedding.coordinates
        everything = np.array([0, z.shape[0]])
        if queries is not None:
            queries = np.ascontiguousarray(queries, dtype=z.dtype)
            ranges = np.array([0, queries.shape[0]])
            return nearest_in_ranges(queries, ranges, z, everything, k, False)
        ranges = embedding.points.class_start if same_class else everything
        return nearest_in_ranges(z, ranges, z, ranges, k, True)

    def within(
        self,
        embedding: Embedding,
        radius: np.ndarray,
        *,
        rows: tuple[int, int] | None = None,
        max_pairs: int | None = None,
    ) -> Pattern:
        return _search.within(embedding, radius, rows, max_pairs)

    def distances(self, embedding: Embedding, pairs: Pattern) -> np.ndarray:
        out = np.empty(pairs.size)
        run_tiles(
            lambda tile: pattern_distances(
                embedding.coordinates, pairs.indptr, pairs.indices, tile[0], tile[1], out
            ),
            _hinge.work_tiles(pairs),
        )
        return out

    def sample_rows(
        self, values: np.ndarray, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        return _patterns.sample_rows(values, pairs, count, rng)

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        return _patterns.count_triplets(points, targets, impostors)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        return _patterns.carry_over(old, old_targets, targets)

    def listed(self, columns: np.ndarray) -> tuple[Neighborhoods, np.ndarray]:
        return _assignment.listed(columns)

    def ranked(
        self, columns: np.ndarray, distances: np.ndarray, costs: np.ndarray, position: np.ndarray
    ) -> Ranked:
        return _assignment.ranked(columns, distances, costs, position)

    def choose(
        self, ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None
    ) -> tuple[Neighborhoods, float]:
        return _assignment.choose(ranked, k_min, k_av, k_max, row_numbers)

    def working_set(
        self, targets: Pattern, candidates: Pattern, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        return WorkingSet(targets, candidates, multipliers)

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, first_row: int = 0
    ) -> Hinge:
        return _hinge.hinge(embedding, working, gamma, first_row)

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        return _hinge.slopes(embedding, working, gamma)

    def slope_laplacian(self, working: WorkingSet, terms: Hinge, values: np.ndarray) -> np.ndarray:
        return _laplacian.slope_laplacian(working, terms, values)

    def laplacian(
        self, edges: list[tuple[Pattern, np.ndarray | None, float]], values: np.ndarray
    ) -> np.ndarray:
        return _laplacian.laplacian(edges, values)

    def edge_scatter(
        self,
        points: Points,
        edges: list[tuple[Pattern, np.ndarray | None, float]],
        shift: np.ndarray,
    ) -> EdgeScatter:
        return _laplacian.edge_scatter(points, edges, shift)

    def log_normalizers(self, embedding: Embedding) -> np.ndarray:
        return _softmax.log_normalizers(embedding)

    def softmax(
        self, embedding: Embedding, row_weights: np.ndarray, *, full: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = np.asarray(row_weights, dtype=np.float64)
        return _softmax.softmax(embedding, weights, full)

    def class_softmax(self, embedding: Embedding, *, full: bool) -> tuple[np.ndarray, np.ndarray]:
        return _softmax.class_softmax(embedding, full)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        return _roots.root_sums(embedding)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        return _roots.length_sums(points, components)

    def gram(self, left: np.ndarray, right: np.ndarray, *, exact: bool = True) -> np.ndarray:
        return gram(left, right, exact=exact)
