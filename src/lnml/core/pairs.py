"""Pairs and triplets of rows, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

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
class Pattern:
    """For every row a sorted list of other rows, in CSR form.

    ``indices[indptr[i]:indptr[i + 1]]`` are the partners of row ``i``.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import Pattern
    >>> pattern = Pattern(np.array([0, 2, 3, 3]), np.array([1, 2, 0]))
    >>> pattern.size, pattern.sizes, pattern.n_filled
    (3, array([2, 1, 0]), 2)
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

    @property
    def n_filled(self) -> int:
        """Number of rows that have partners."""
        return int((self.sizes > 0).sum())

    def counts_in(self, starts: np.ndarray) -> np.ndarray:
        """Count the pairs whose row lies in each range ``starts[c]:starts[c + 1]``."""
        return np.diff([int(self.indptr[row]) for row in starts])


class Edge(NamedTuple):
    """Pairs with weights: factor * the weight of the pair * that of the class of its row.

    Attributes
    ----------
    pairs : Pattern
        The pairs.
    weights : pair values, or None
        Weight of each pair; None for ones.
    factor : float
        Common factor.
    by_class : ndarray of shape (n_classes,), or None
        Further factor of the pairs of each class.
    shared : bool
        Whether the pairs of a row share a weight of one.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import Edge, Pattern
    >>> pattern = Pattern(np.array([0, 2, 3, 3]), np.array([1, 2, 0]))
    >>> Edge(pattern, factor=0.5).total
    1.5
    """

    pairs: Pattern
    weights: Any = None
    factor: float = 1.0
    by_class: np.ndarray | None = None
    shared: bool = False

    @property
    def total(self) -> float:
        """Sum of the weights, if these are neither given nor by class."""
        assert self.weights is None and self.by_class is None
        return self.factor * (self.pairs.n_filled if self.shared else self.pairs.size)


# Bytes that one candidate pair takes in a working set and its evaluation, on the host.
PAIR_BYTES = 24
# Bytes that the slope of one triplet takes: as a multiplier, and in a proof.
SLOPE_BYTES = 100
# A search serves a radius this much smaller than its own, whatever the rounding.
SEARCH_SLACK = 1.0 + 1e-3


@dataclass(frozen=True, eq=False)
class Search:
    """All impostors within a radius of each row, at one metric.

    Attributes
    ----------
    components : ndarray of shape (r, e), or None
        The metric of the search; None stands for the identity.
    radius : row values
        How far it looked, as a squared distance.
    found : Pattern
        What it found.
    """

    components: np.ndarray | None
    radius: Any
    found: Pattern

    def made_at(self, components: np.ndarray) -> bool:
        """Whether it was made at this very metric."""
        return self.components is not None and np.array_equal(self.components, components)


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


@dataclass(frozen=True, eq=False)
class WorkingSet:
    """The triplets that are looked at: targets, candidate impostors, and their multipliers.

    Attributes
    ----------
    targets : Pattern
        Target pairs.
    candidates : Pattern
        Impostors that may act, row by row.
    multipliers : Multipliers or None
        Slopes around which hinges are smoothed; None if all are zero.
    """

    targets: Pattern
    candidates: Pattern
    multipliers: Multipliers | None = None

    def with_multipliers(self, multipliers: Multipliers | None) -> Self:
        """Return the same triplets with other multipliers."""
        return replace(self, multipliers=multipliers)

    def rest(self) -> None:
        """Let go of what makes evaluations near the last one fast; later ones may still come.

        Here there is nothing to let go of.
        """


@dataclass(frozen=True, eq=False)
class Streamed(WorkingSet):
    """All triplets of some targets, whatever the metric: their impostors are not kept.

    Each operation finds them again, a few rows at a time. There are no multipliers, and
    ``candidates`` is empty.
    """

    @classmethod
    def of(cls, empty: WorkingSet) -> Self:
        """Make one from a working set without candidates."""
        return cls(empty.targets, empty.candidates)


class Hinge(NamedTuple):
    """The hinge terms of all triplets (i, target, candidate impostor).

    Where components are a tensor and a moment is asked for, the numbers and the moment are tensors:
    a descent brings them to the host itself.

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
    target_hinge : pair values of the targets, or None
        Sum of max(0, h) over the triplets of a target pair. It may be left out if a moment was
        asked for.
    moment : ndarray of shape (r, d) or (d, d), or None
        The sum over slopes that was asked for.
    target_slopes : pair values of the targets, or None
        Sum of the slopes of the triplets of a target pair; with a ``scatter`` alone.
    scatter : EdgeScatter or None
        The moment of the data with a bound of its rounding, if that was asked for.
    """

    smoothed: Any
    exact: Any
    slope_sum: Any
    n_active: Any
    target_hinge: Any
    moment: Any = None
    target_slopes: Any = None
    scatter: EdgeScatter | None = None


class HingeSums(NamedTuple):
    """Sums over the triplets of some rows, where the pairs are.

    Attributes
    ----------
    totals : shape (4,)
        The four numbers of a :class:`Hinge`.
    target_weights, candidate_weights : pair values of the two patterns
        Sum of the slopes of the triplets that a pair takes part in.
    target_hinge : pair values of the targets
        Sum of max(0, h) over the triplets of a target pair.
    """

    totals: Any
    target_weights: Any
    candidate_weights: Any
    target_hinge: Any


class EdgeScatter(NamedTuple):
    """A sum of weight * v v^T over pairs, v = x_i - x_j, on the host.

    Attributes
    ----------
    matrix : ndarray of shape (d, d)
        The sum.
    squares : ndarray of shape (d,)
        Sum of |weight| * v_c^2.
    left, right : ndarrays of shape (d,)
        Entry (c, k) differs from the exact one by at most left_c * right_k, or by the same
        with c and k exchanged.
    """

    matrix: np.ndarray
    squares: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def plus(self, other: EdgeScatter) -> EdgeScatter:
        """Return the sum of two; the rounding of this sum is left to who uses it."""
        # By Cauchy's inequality, ab + cd is at most the product of |(a, c)| and |(b, d)|.
        left, right = np.hypot(self.left, other.left), np.hypot(self.right, other.right)
        matrix, squares = self.matrix + other.matrix, self.squares + other.squares
        return EdgeScatter(matrix, squares, left * (1.0 + 1e-14), right)


class MixedSlopes(NamedTuple):
    """Slopes of triplets, mixed from shares of others: one by one, and added up by pair.

    Attributes
    ----------
    triplets : one pair of whole numbers per slope, shape (t, 2)
        Position of the target pair in its pattern, and row of the impostor.
    slopes : shape (t,)
        The slopes that may not be zero.
    targets : pair values of the targets
        Sum of the slopes of the triplets of each target pair.
    pairs : Pattern
        Pairs (row, impostor) of the triplets.
    impostors : pair values of these
        Sum of the slopes of the triplets of each of them.
    most : int
        None of these sums has more terms.
    total : float
        Sum of all slopes.
    """

    triplets: Any
    slopes: Any
    targets: Any
    pairs: Pattern
    impostors: Any
    most: int
    total: float


class Partners(NamedTuple):
    """The nearest other rows of its class for every row, nearest first.

    Attributes
    ----------
    columns : row numbers, shape (n, k)
        The partners; -1 where a row has fewer.
    distances : shape (n, k)
        Their squared distances, rounded for ties; inf where a row has fewer.
    pairs : Neighborhoods
        The same pairs as lists.
    position : one number per pair
        Where each pair of the lists stands in ``columns``, read row by row.
    """

    columns: Any
    distances: Any
    pairs: Any
    position: Any


class Ranked(NamedTuple):
    """The cheapest partners of every row, cheapest first.

    ``columns`` is (n, K_max), -1 where a row has fewer partners; ``costs`` and
    ``distances`` are inf there.
    """

    columns: Any
    costs: Any
    distances: Any


class TooManyPairs(Exception):
    """A search found more pairs than there is room for; ``most`` is how many there is."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most

    def __str__(self) -> str:
        return f"more than {self.most:,} pairs"
