"""What every device has to offer: the only code that does n x n work.

Rows are sorted by class before they come here, so the rows of one class are a
contiguous range and "another class" is the complement of a range. Objectives
and solvers speak to a device through :class:`Kernels` alone; the arrays inside
the handles of :mod:`lnml.core` belong to the device. Each operation is
documented here and nowhere else.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import EdgeScatter, Hinge, Multipliers, Pattern, Ranked, RowSample, WorkingSet
from lnml.core.points import Columns, Embedding, Points


class Arrays(Protocol):
    """Verbs for the arrays of a device: nothing here is an algorithm."""

    def array(self, values: np.ndarray) -> Any:
        """Bring values onto the device."""

    def to_host(self, values: Any) -> np.ndarray:
        """Bring values of the device, a result of a fit, to the host."""

    def log(self, values: Any) -> Any:
        """Logarithm of every value, in float64."""

    def per_pair(self, row_values: Any, pairs: Pattern) -> Any:
        """Value of the row of every pair, in float64."""

    def per_row(self, class_values: np.ndarray, points: Points) -> Any:
        """Value of the class of every row."""

    def row_maximum(self, values: Any, pairs: Pattern) -> Any:
        """Largest value of each row of a pattern; -inf for rows without pairs."""

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        """Coordinates of a few rows, in float64 on the host."""


class Kernels(Protocol):
    """Algorithms a device implements. Weights count a pair (i, j) once.

    For points that are ``far``, softmax and root sums take distances, and products with
    Laplacians, from differences of rows: exact where matrix products are not, and slower.

    Attributes
    ----------
    arrays : Arrays
        Its array verbs.
    """

    arrays: Arrays

    def session(self) -> AbstractContextManager[None]:
        """Context in which a whole fit runs."""

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        """Bring class-sorted data onto the device."""

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        """Bring rows ``order`` of X onto the device, shifted where that is exact.

        A common offset would cost digits, so it is taken away: in a column whose
        values have one sign, the longest at most twice the shortest, the value
        nearest to the mean is subtracted. No such difference is rounded. Other
        columns stay as they are: their offset is no longer than their range. So
        differences of rows are those of the rows of X.
        """

    def pattern(self, pairs: Pattern) -> Neighborhoods:
        """Bring given pairs onto the device."""

    def pair_budget(self, pair_bytes: int) -> int:
        """Return how many pairs of a working set there is room for.

        ``pair_bytes`` is what one takes on the CPU; a device may need another amount.
        """

    def columns(self, points: Points) -> Columns:
        """Mean, spread and range of every column."""

    def standardized(self, points: Points, mean: np.ndarray, scale: np.ndarray) -> Points:
        """Return (data - mean) / scale, computed in float64 and kept in the type of the data."""

    def mapped(
        self,
        points: Points,
        matrix: np.ndarray,
        shift: np.ndarray | None = None,
        far: bool = False,
    ) -> Points:
        """Return (data - shift) @ matrix (d x e), computed in float64 and kept in the data's type.

        ``far`` says whether the new points are (see :class:`lnml.core.points.Points`).
        """

    def widened(self, points: Points) -> Points:
        """Return the same data in float64, as far as before."""

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        """Sum over pairs (i, j) of each class of its weight times v v^T, v = x_i - x_j."""

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        """Coordinates of the points under ``components`` (r x d)."""

    def nearest(
        self, embedding: Embedding, k: int, *, same_class: bool, queries: Any = None
    ) -> tuple[Any, Any]:
        """Return squared distances and row numbers of the k nearest rows, nearest first.

        Ties go to the lowest row number. Short rows are filled with -1 / inf.
        With ``queries`` (m x r coordinates) all rows are candidates; without,
        a row is never its own neighbour.
        """

    def within(
        self,
        embedding: Embedding,
        radius: Any,
        *,
        rows: tuple[int, int] | None = None,
        max_pairs: int | None = None,
    ) -> Pattern:
        """Return a superset of the pairs of different class with D_il < radius_i."""

    def distances(self, embedding: Embedding, pairs: Pattern) -> Any:
        """Squared distance of every pair of a pattern, in float64."""

    def sample_rows(
        self, values: Any, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        """Pick ``count`` rows that have pairs (all if there are fewer), with their values."""

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        """Return the number of (target, impostor) pairs of all rows.

        Without ``impostors``, all rows of other classes count as impostors.
        """

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        """Keep the multipliers of triplets whose target pair is also in ``targets``."""

    def listed(self, columns: Any) -> tuple[Neighborhoods, Any]:
        """Pattern of the columns (n x k) that are not -1, and where they stood.

        The second is the flat position of every pair of the pattern in ``columns``.
        """

    def ranked(self, columns: Any, distances: Any, costs: Any, position: Any) -> Ranked:
        """Partners with their costs, which come in the order of :meth:`listed`.

        Costs that fall along a row are raised to the one before: rank order and
        cost order must agree, and up to rounding they do.
        """

    def choose(
        self, ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None
    ) -> tuple[Neighborhoods, float]:
        """Return the pairs of least total cost, and that cost.

        Between k_min and k_max partners a row, k_av on average: see
        docs/neighborhoods.md. ``row_numbers`` decide ties between rows where
        they are not the positions of the rows.
        """

    def working_set(
        self, targets: Pattern, candidates: Pattern, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        """Return the triplets that the next three operations look at."""

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, first_row: int = 0
    ) -> Hinge:
        """Hinge terms, their smoothed value and slopes (see :class:`lnml.core.pairs.Hinge`).

        Row i of the patterns is row ``first_row + i`` of the embedding.
        """

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        """Return the non-zero maximising slopes: the next multipliers."""

    def slope_laplacian(self, working: WorkingSet, terms: Hinge, values: Any) -> Any:
        """Lap(W + W^T) @ values, W = the slopes at target pairs minus those at candidates."""

    def laplacian(self, edges: list[tuple[Pattern, Any, float]], values: Any) -> Any:
        """Lap(W + W^T) @ values for W = the sum of factor * weights over edges.

        Weights are in the order of the pattern; None stands for ones.
        """

    def edge_scatter(
        self, points: Points, edges: list[tuple[Pattern, Any, float]], shift: np.ndarray
    ) -> EdgeScatter:
        """Sum of factor * weight * v v^T over edges, v = x_i - x_j, in float64.

        ``shift`` is near the rows, so that what is left of them is short. A bound of the
        rounding comes with the sum.
        """

    def log_normalizers(self, embedding: Embedding) -> Any:
        """Log of Z_i = the sum over j != i of exp(-D_ij) for every row i, streamed."""

    def softmax(
        self, embedding: Embedding, row_weights: Any, *, full: bool
    ) -> tuple[Any, np.ndarray]:
        """Return log Z_i and V^T Lap(P + P^T) data, P_ij = row_weight_i exp(-D_ij) / Z_i.

        V are the data, which gives the expected scatter (d x d), if ``full``; else the
        coordinates (r x d), which is cheaper where r is below d / 2.
        """

    def class_softmax(self, embedding: Embedding, *, full: bool) -> tuple[Any, np.ndarray]:
        """Return p_i = the sum of P_ij over the class of i, and V^T Lap(W + W^T) data.

        P_ij = exp(-D_ij) / Z_i; W_ij = P_ij (1 - p_i) within the class, -P_ij p_i
        outside. V as in :meth:`softmax`.
        """

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of sqrt(D_il) over pairs of different class, and its gradient in M.

        The gradient, d x d, is data^T Lap(W + W^T) data with W_il = 1 / (2 sqrt(D_il)).
        Pairs (i, l) and (l, i) both count. A root s below a tiny share of the
        typical one is continued by its tangent in D, so that W stays finite. The
        share is that of rounding where points are far: most roots may be short there.
        """

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of |L x| over rows x, and its gradient in M = L^T L (d x d).

        Short lengths are continued by a tangent, as in :meth:`root_sums`.
        """

    def gram(self, left: Any, right: Any, *, exact: bool = True) -> np.ndarray:
        """left.T @ right, in float64 on the host.

        Without ``exact`` products of float32 data may be float32: enough for a
        gradient, not for a certificate.
        """
