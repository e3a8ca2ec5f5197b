"""The CPU's face of the kernel protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from lnml.kernels.cpu import hinge as _hinge
from lnml.kernels.cpu import laplacian as _laplacian
from lnml.kernels.cpu import roots as _roots
from lnml.kernels.cpu import search as _search
from lnml.kernels.cpu import softmax as _softmax
from lnml.kernels.cpu.distances import pattern_distances
from lnml.kernels.cpu.nearest import nearest_in_ranges
from lnml.kernels.cpu.products import gram, times_transposed
from lnml.kernels.cpu.threads import run_tiles, single_threaded_blas
from lnml.kernels.protocol import Embedding, Hinge, Multipliers, Pattern, Points


class CPUKernels:
    """See :class:`lnml.kernels.protocol.Kernels`; handles hold NumPy arrays."""

    def session(self) -> AbstractContextManager[None]:
        """BLAS at one thread for the whole of a fit: the tiles keep all cores busy.

        A threaded BLAS waits on its threads between small products, which costs
        ten times their work when another process wants a core; and results
        would depend on the number of threads.
        """
        return single_threaded_blas()

    def points(self, data: np.ndarray, class_start: np.ndarray) -> Points:
        """Bring class-sorted data onto the device."""
        return Points(np.ascontiguousarray(data), np.asarray(class_start, dtype=np.int64))

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
        self, edges: list[tuple[Pattern, np.ndarray, float]], values: np.ndarray
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
        return _softmax.softmax(embedding, row_weights, values)

    def class_softmax(
        self, embedding: Embedding, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of each row's softmax within its class, and NCA's moment."""
        return _softmax.class_softmax(embedding, values)

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of the distances over pairs of different class, and its gradient in M."""
        return _roots.root_sums(embedding)

    def gram(self, left: np.ndarray, right: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """left.T @ right in float64."""
        return gram(left, right, exact=exact)
