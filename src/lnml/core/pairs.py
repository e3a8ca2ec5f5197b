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


class TooManyPairs(Exception):
    """A search found more pairs than its caller has room for."""
