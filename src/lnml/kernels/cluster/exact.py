"""Sums that do not depend on the order of their terms.

Terms are rounded to a common grid, on which additions are exact. So workers may add what
they have, in any grouping, and the total has the same bits for any number of workers.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

# Sums of multiples of a unit are exact up to 2**53 units; one bit is kept in reserve.
_BITS = 52
_LEAST_EXPONENT = -1074


class Grid(NamedTuple):
    """Units of a coarse and a fine grid, as powers of two, for each entry of a sum.

    Attributes
    ----------
    coarse, fine : ndarrays of int
        Their exponents; they broadcast with the terms.
    """

    coarse: np.ndarray
    fine: np.ndarray

    @classmethod
    def of(cls, log_bound: Any, n_terms: int) -> Grid:
        """Return the grid for terms whose absolute values sum up to 2**log_bound at most.

        A bound of zero is that of zeros, for which any grid will do.
        """
        bound = np.where(np.isfinite(log_bound), log_bound, 0.0)
        coarse = np.maximum(np.ceil(bound).astype(np.int64) + 1 - _BITS, _LEAST_EXPONENT)
        fine = coarse + ceil(log2(max(n_terms, 1))) - _BITS
        return cls(coarse, np.maximum(fine, _LEAST_EXPONENT))

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Round to the coarse grid."""
        return np.asarray(np.ldexp(np.rint(np.ldexp(values, -self.coarse)), self.coarse))

    def split(self, values: np.ndarray) -> np.ndarray:
        """Return multiples of both units, shape (2, ...), that add up to the values.

        What is lost is less than the fine unit, some hundred bits below the bound.
        """
        coarse = self.rounded(values)
        rest = np.ldexp(np.rint(np.ldexp(values - coarse, -self.fine)), self.fine)
        return np.stack([coarse, rest])


class OuterGrid(NamedTuple):
    """The grid of matrices whose entries (c, k) are bounded by products: much less to send.

    Attributes
    ----------
    left, right : ndarrays of shapes (r,), (d,)
        Logarithms of the factors, to base two.
    log_weight : float
        That of a factor of all entries.
    n_terms : int
        Number of terms of a sum.
    """

    left: np.ndarray
    right: np.ndarray
    log_weight: float
    n_terms: int

    @classmethod
    def of(cls, left: np.ndarray, right: np.ndarray, weight: float, n_terms: int) -> OuterGrid:
        """Return the grid for terms that sum up to weight * left_c * right_k at most."""
        with np.errstate(divide="ignore"):
            return cls(np.log2(left), np.log2(right), float(np.log2(weight)), n_terms)

    @property
    def nbytes(self) -> int:
        """Bytes of a matrix on the grid."""
        return 16 * self.left.size * self.right.size

    def split(self, values: np.ndarray) -> np.ndarray:
        """See :meth:`Grid.split`."""
        bound = self.left[:, None] + self.right + self.log_weight
        return Grid.of(bound, self.n_terms).split(values)

    def lost(self) -> np.ndarray:
        """Bound what entry (c, k) of a sum of :meth:`split` terms has lost, by a_c * a_k.

        Left and right factors must be the same: units, rounded up to powers of two, are at most
        twice the root of those of (c, c) and (k, k).
        """
        fine = Grid.of(self.left + self.right + self.log_weight, self.n_terms).fine
        return np.sqrt(np.ldexp(float(self.n_terms), fine))


def joined(parts: np.ndarray) -> np.ndarray:
    """Return the values of a sum of :meth:`Grid.split` parts."""
    return np.asarray(parts[0] + parts[1])
