"""Sums that do not depend on the order of their terms.

Terms are rounded to a common grid, on which additions are exact. So workers may add what
they have, in any grouping, and the total has the same bits for any number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

# Sums of multiples of a unit are exact up to 2**53 units; one bit is kept in reserve.
_BITS = 52
_LEAST_EXPONENT = -1020
# Values on a grid with a larger exponent are made smaller while they are rounded.
_LARGE_EXPONENT = 900
_SMALLER = 128


class _Rounding(NamedTuple):
    """Adding and subtracting a large number rounds to a multiple of its last bit.

    It is several times as fast as scaling by ``ldexp``.
    """

    large: np.ndarray
    scale: np.ndarray

    @classmethod
    def to(cls, exponent: np.ndarray) -> _Rounding:
        """Return the rounding to multiples of 2**exponent, of values below 2**(exponent + 51)."""
        down = np.where(exponent > _LARGE_EXPONENT, _SMALLER, 0)
        return cls(np.ldexp(1.5, exponent + _BITS - down), np.ldexp(1.0, -down))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values * self.scale + self.large - self.large) / self.scale)


@dataclass(frozen=True)
class Grid:
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
        # Twice the bound: its logarithm was rounded.
        coarse = np.maximum(np.ceil(bound).astype(np.int64) + 2 - _BITS, _LEAST_EXPONENT)
        fine = coarse + ceil(log2(max(n_terms, 1))) - _BITS
        return cls(coarse, np.maximum(fine, _LEAST_EXPONENT))

    @cached_property
    def _roundings(self) -> tuple[_Rounding, _Rounding]:
        return _Rounding.to(self.coarse), _Rounding.to(self.fine)

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Round to the coarse grid."""
        return self._roundings[0](values)

    def split(self, values: np.ndarray) -> np.ndarray:
        """Return multiples of both units, shape (2, ...), that add up to the values.

        What is lost is less than the fine unit, some hundred bits below the bound.
        """
        coarse = self.rounded(values)
        return np.stack([coarse, self._roundings[1](values - coarse)])


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

    def of_entries(self) -> Grid:
        """Return the grid of each entry, shape (r, d)."""
        return Grid.of(self.left[:, None] + self.right + self.log_weight, self.n_terms)

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
