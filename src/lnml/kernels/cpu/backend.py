"""The CPU's face of the kernel protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn import get_config

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Hinge, Multipliers, Pattern, Ranked, RowSample
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.cpu import assignment as _assignment
from lnml.kernels.cpu import columns as _columns
from lnml.kernels.cpu import hinge as _hinge
from lnml.kernels.cpu import laplacian as _laplacian
from lnml.kernels.cpu import patterns as _patterns
from lnml.kernels.cpu import roots as _roots
from lnml.kernels.cpu import search as _search
from lnml.kernels.cpu import softmax as _softmax
from lnml.kernels.cpu.distances import pattern_distances
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.products import gram, times_transposed
from lnml.kernels.cpu.threads import run_tiles, single_threaded_blas


class CPUKernels:
    """See :class:`lnml.kernels.protocol.Kernels`; handles hold NumPy arrays."""

    def session(self) -> AbstractContextManager[None]:
        """BLAS at one thread for the whole of a fit: the tiles keep all cores busy.

        A threaded BLAS waits on its threads between small products, which costs
        ten times their work when another process wants a core; and results
        would depend on the number of threads.
        """
        return single_threaded_blas()

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        """Bring class-sorted data onto the device."""
        return _columns.make_points(data, class_start)

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        """Rows of X in class order, shifted by a value near the mean."""
        return _columns.training_points(X, order, class_start)

    def array(self, values: np.ndarray) -> np.ndarray:
        """Values are where they belong."""
        return values

    def to_host(self, values: np.ndarray) -> np.ndarray:
        """Values are where they belong."""
        return values

    def pattern(self, pairs: Pattern) -> Neighborhoods:
        """Pairs as neighbourhoods."""
        if isinstance(pairs, Neighborhoods):
            return pairs
        return Neighborhoods(pairs.indptr, pairs.indices)

    def pair_budget(self, pair_bytes: int) -> int:
        """Return how many pairs fit scikit-learn's ``working_memory``."""
        return int(get_config()["working_memory"] * 2**20 / pair_bytes)

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
        return self.points(points.data.astype(np.float64), points.class_start)

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        """Sum over pairs of each class of its weight times v v^T."""
        return _columns.class_scatter(points, weights)

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        """Coordinates of the points under ``components``."""
        return Embedding(times_transposed(points.data, components), points)

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        """Coordinates of a few rows in float64."""
        return embedding.coordinates[indices].astype(np.float64)

    def nearest(
        self,
        embedding: Embedding,
        k: int,
        *,
        same_class: bool,
        queries: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and indices of the k nearest rows."""
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
        """Pairs of different class closer than a radius per row (a superset)."""
        return _search.within(embedding, radius, rows, max_pairs)

    def distances(self, embedding: Embedding, pairs: Pattern) -> np.ndarray:
        """Squared distance of every pair of a pattern."""
        out = np.empty(pairs.size)
        run_tiles(
            lambda tile: pattern_distances(
                embedding.coordinates, pairs.indptr, pairs.indices, tile[0], tile[1], out
            ),
            _hinge.work_tiles(pairs),
        )
        return out

    def row_maximum(self, values: np.ndarray, pairs: Pattern) -> np.ndarray:
        """Largest value of each row of a pattern; -inf for rows without pairs."""
        return _patterns.row_maximum(values, pairs)

    def per_pair(self, row_values: np.ndarray, pairs: Pattern) -> np.ndarray:
        """Value of the row of every pair."""
        return np.repeat(row_values.astype(np.float64, copy=False), pairs.sizes)

    def per_row(self, class_values: np.ndarray, points: Points) -> np.ndarray:
        """Value of the class of every row."""
        return class_values[points.row_class]

    def log(self, values: np.ndarray) -> np.ndarray:
        """Logarithm of every value."""
        return np.log(values)

    def sample_rows(
        self, values: np.ndarray, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        """Pick rows that have pairs, with their values."""
        return _patterns.sample_rows(values, pairs, count, rng)

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        """Return the number of (target, impostor) pairs of all rows."""
        return _patterns.count_triplets(points, targets, impostors)

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        """Multipliers of the triplets whose target pair is still one."""
        return _patterns.carry_over(old, old_targets, targets)

    def listed(self, columns: np.ndarray) -> tuple[Neighborhoods, np.ndarray]:
        """Pattern of the columns that are not -1, and where they stood."""
        return _assignment.listed(columns)

    def ranked(
        self, columns: np.ndarray, distances: np.ndarray, costs: np.ndarray, position: np.ndarray
    ) -> Ranked:
        """Partners with their costs, which never fall along a row."""
        return _assignment.ranked(columns, distances, costs, position)

    def choose(
        self, ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None
    ) -> tuple[Neighborhoods, float]:
        """Return the pairs of least total cost, and that cost."""
        return _assignment.choose(ranked, k_min, k_av, k_max, row_numbers)

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
        multipliers = multipliers or _hinge.no_multipliers(targets.indptr.size - 1)
        return _hinge.hinge(embedding, targets, candidates, gamma, multipliers, first_row)

    def slopes(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        gamma: float,
        multipliers: Multipliers | None,
    ) -> Multipliers:
        """Return the non-zero maximising slopes of the smoothed hinge."""
        multipliers = multipliers or _hinge.no_multipliers(targets.indptr.size - 1)
        return _hinge.slopes(embedding, targets, candidates, gamma, multipliers)

    def laplacian(
        self, edges: list[tuple[Pattern, np.ndarray | None, float]], values: np.ndarray
    ) -> np.ndarray:
        """Lap(W + W^T) @ values."""
        return _laplacian.laplacian(edges, values)

    def log_normalizers(self, embedding: Embedding) -> np.ndarray:
        """Log of the sum over j != i of exp(-D_ij) for every row i."""
        return _softmax.log_normalizers(embedding)

    def softmax(
        self, embedding: Embedding, row_weights: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log Z_i and values^T Lap(P + P^T) data for the row-weighted softmax P."""
        weights = np.asarray(row_weights, dtype=np.float64)
        return _softmax.softmax(embedding, weights, values)

    def class_softmax(
        self, embedding: Embedding, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of each row's softmax within its class, and NCA's moment."""
        return _softmax.class_softmax(embedding, values)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of the distances over pairs of different class, and its gradient in M."""
        return _roots.root_sums(embedding)

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of |L x| over rows x, and its gradient in M."""
        return _roots.length_sums(points, components)

    def gram(self, left: np.ndarray, right: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """left.T @ right in float64."""
        return gram(left, right, exact=exact)
