"""What every device has to offer: the only code that does n x n work.

Rows are sorted by class before they come here, so the rows of one class are a
contiguous range and "another class" is the complement of a range. Objectives
and solvers speak to a device through :class:`Kernels` alone; the arrays inside
the handles below belong to the device.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from lnml.neighborhoods.graph import Neighborhoods

# Distances are rounded to 53 - 16 significant bits before they are compared.
TIE_SPLIT = float(2**16 + 1)


def round_ties(values: Any) -> Any:
    """Round float64 values to 37 significant bits (Veltkamp's splitting).

    Numbers that are equal in exact arithmetic differ by rounding only; after
    this they compare equal and the tie rule decides (docs/neighborhoods.md).
    """
    scaled = TIE_SPLIT * values
    return scaled - (scaled - values)


@dataclass(frozen=True, eq=False)
class Points:
    """Class-sorted data on a device.

    Attributes
    ----------
    data : array of shape (n, d)
        Rows in class order, float32 or float64.
    class_start : ndarray of shape (n_classes + 1,)
        Rows ``class_start[c]:class_start[c + 1]`` belong to class ``c``.
    """

    data: Any
    class_start: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.data.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, as NumPy calls them."""
        return np.dtype(np.float32 if self.data.itemsize == 4 else np.float64)

    @property
    def precision(self) -> float:
        """Distance from one to the next larger number of this type."""
        return float(np.finfo(self.dtype).eps)

    @property
    def row_class(self) -> np.ndarray:
        """Class code of every row, shape (n,)."""
        sizes = np.diff(self.class_start)
        return np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Points under a metric: ``coordinates = data @ L.T``, shape (n, r)."""

    coordinates: Any
    points: Points


@dataclass(frozen=True, eq=False)
class Pattern:
    """For every row a sorted list of other rows, in CSR form.

    ``indices[indptr[i]:indptr[i + 1]]`` are the partners of row ``i``.
    """

    indptr: Any
    indices: Any

    @property
    def size(self) -> int:
        """Number of stored pairs."""
        return self.indices.shape[0]

    @property
    def sizes(self) -> Any:
        """Number of partners of every row, shape (n,)."""
        return self.indptr[1:] - self.indptr[:-1]


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Non-zero multipliers of triplets (i, target, impostor), row by row.

    ``slot`` is the position of the target in its row's list; entries of a row
    are sorted by (impostor, slot).
    """

    indptr: Any
    impostor: Any
    slot: Any
    value: Any

    @property
    def largest(self) -> float:
        """Largest multiplier; zero if there is none."""
        return float(self.value.max()) if self.value.shape[0] else 0.0


class Columns(NamedTuple):
    """What the columns of some data look like: four vectors on the host, in float64."""

    mean: np.ndarray
    spread: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


class RowSample(NamedTuple):
    """Some rows of a pattern, on the host.

    ``rows`` are row numbers, ``values`` the values of the pairs of each; ``n_filled``
    is how many rows of the pattern have any pair.
    """

    rows: np.ndarray
    values: list[np.ndarray]
    n_filled: int


class Ranked(NamedTuple):
    """The cheapest partners of every row, cheapest first.

    ``columns`` is (n, K_max), -1 where a row has fewer partners; ``costs`` and
    ``distances`` are inf there.
    """

    columns: Any
    costs: Any
    distances: Any


class Hinge(NamedTuple):
    """The hinge terms of all triplets (i, target, candidate impostor).

    Attributes
    ----------
    smoothed : float
        Sum of max over a in [0, 1] of a*h - gamma/2 (a - multiplier)^2.
    exact : float
        Sum of max(0, h).
    slope_sum : float
        Sum of the maximising a.
    n_active : int
        Number of triplets with h > 0.
    target_weights, candidate_weights : arrays aligned with the two patterns
        Sum of a over the triplets that a pair takes part in.
    target_hinge : array aligned with the targets
        Sum of max(0, h) over the triplets of a target pair.
    target_distances : array aligned with the targets
        Squared distance of every target pair.
    """

    smoothed: float
    exact: float
    slope_sum: float
    n_active: int
    target_weights: Any
    candidate_weights: Any
    target_hinge: Any
    target_distances: Any


class TooManyPairs(Exception):
    """A search found more pairs than its caller has room for."""


class Kernels(Protocol):
    """Operations a device implements. Weights count a pair (i, j) once."""

    def session(self) -> AbstractContextManager[None]:
        """Context in which a whole fit runs."""

    def points(self, data: Any, class_start: np.ndarray) -> Points:
        """Bring class-sorted data onto the device."""

    def training_points(self, X: Any, order: np.ndarray, class_start: np.ndarray) -> Points:
        """Bring rows ``order`` of X onto the device, shifted.

        A common offset would cost digits, so in each column the value nearest
        to the mean is subtracted: a value of the data, because then differences
        of whole numbers stay exact.
        """

    def array(self, values: np.ndarray) -> Any:
        """Bring values onto the device."""

    def to_host(self, values: Any) -> np.ndarray:
        """Bring values of the device, a result of a fit, to the host."""

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

    def mapped(self, points: Points, matrix: np.ndarray) -> Points:
        """Return data @ matrix (d x e), computed in float64 and kept in the type of the data."""

    def widened(self, points: Points) -> Points:
        """Return the same data in float64."""

    def class_scatter(self, points: Points, weights: np.ndarray) -> np.ndarray:
        """Sum over pairs (i, j) of each class of its weight times v v^T, v = x_i - x_j."""

    def embed(self, points: Points, components: np.ndarray) -> Embedding:
        """Coordinates of the points under ``components`` (r x d)."""

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        """Coordinates of a few rows, in float64 on the host."""

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

    def row_maximum(self, values: Any, pairs: Pattern) -> Any:
        """Largest value of each row of a pattern; -inf for rows without pairs."""

    def per_pair(self, row_values: Any, pairs: Pattern) -> Any:
        """Value of the row of every pair, in float64."""

    def per_row(self, class_values: np.ndarray, points: Points) -> Any:
        """Value of the class of every row."""

    def log(self, values: Any) -> Any:
        """Logarithm of every value, in float64."""

    def sample_rows(
        self, values: Any, pairs: Pattern, count: int, rng: np.random.Generator
    ) -> RowSample:
        """Pick ``count`` rows that have pairs (all if there are fewer), with their values."""

    def count_triplets(self, points: Points, targets: Pattern, impostors: Pattern | None) -> int:
        """Return the number of (target, impostor) pairs of all rows.

        Without ``impostors`` all rows of other classes are.
        """

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        """Multipliers of the triplets whose target pair is still one."""

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

    def hinge(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        gamma: float,
        multipliers: Multipliers | None,
        first_row: int = 0,
    ) -> Hinge:
        """Hinge terms, their smoothed value and slopes (see :class:`Hinge`).

        Row i of the patterns is row ``first_row + i`` of the embedding.
        """

    def slopes(
        self,
        embedding: Embedding,
        targets: Pattern,
        candidates: Pattern,
        gamma: float,
        multipliers: Multipliers | None,
    ) -> Multipliers:
        """Return the non-zero maximising slopes: the next multipliers."""

    def laplacian(self, edges: list[tuple[Pattern, Any, float]], values: Any) -> Any:
        """Lap(W + W^T) @ values for W = the sum of factor * weights over edges.

        Weights are in the order of the pattern; None stands for ones.
        """

    def log_normalizers(self, embedding: Embedding) -> Any:
        """Log of Z_i = the sum over j != i of exp(-D_ij) for every row i, streamed."""

    def softmax(
        self, embedding: Embedding, row_weights: Any, values: Any
    ) -> tuple[Any, np.ndarray]:
        """Return log Z_i and values^T Lap(P + P^T) data, P_ij = row_weight_i exp(-D_ij) / Z_i.

        ``values`` are the data themselves, which gives the expected scatter
        (d x d), or the coordinates (r x d), cheaper where r is below d / 2.
        """

    def class_softmax(self, embedding: Embedding, values: Any) -> tuple[Any, np.ndarray]:
        """Return p_i = the sum of P_ij over the class of i, and values^T Lap(W + W^T) data.

        P_ij = exp(-D_ij) / Z_i; W_ij = P_ij (1 - p_i) within the class, -P_ij p_i
        outside. ``values`` as in :meth:`softmax`.
        """

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of sqrt(D_il) over pairs of different class, and its gradient in M.

        The gradient, d x d, is data^T Lap(W + W^T) data with W_il = 1 / (2 sqrt(D_il)).
        Pairs (i, l) and (l, i) both count. A root s below a tiny share of the
        typical one is continued by its tangent in D, so that W stays finite.
        """

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of |L x| over rows x, and its gradient in M = L^T L (d x d).

        Short ones are bent as in :meth:`root_sums`.
        """

    def gram(self, left: Any, right: Any, *, exact: bool = True) -> np.ndarray:
        """left.T @ right, in float64 on the host.

        Without ``exact`` products of float32 data may be float32: enough for a
        gradient, not for a certificate.
        """
