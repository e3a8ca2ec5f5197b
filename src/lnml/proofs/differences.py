"""Distances and scatter of pairs of rows: differences first, then products.

Rows may share a huge value in a column. Their difference there is exactly zero, and
nothing of it is left in their distance; after a product it would be rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.proofs.rounding import UNIT, gamma

# Pairs worked on at once: so many, or fewer where their differences have more numbers than these.
CHUNK, LEAST_CHUNK = 4096, 256
CHUNK_NUMBERS = 2**16


class Moment(NamedTuple):
    """A sum of weight * z z^T over pairs, z = W^T v.

    Attributes
    ----------
    matrix : ndarray of shape (e, e)
        The sum.
    squares : ndarray of shape (e,)
        Sum of |weight| * z_k^2: no entry (k, l) exceeds the root of squares k and l.
    error : ndarray of shape (e,)
        The exact sum differs by a matrix between -diag(error) and diag(error).
    """

    matrix: np.ndarray
    squares: np.ndarray
    error: np.ndarray

    def times(self, factor: float) -> Moment:
        """Return a multiple of the sum."""
        size = abs(factor)
        error = size * (self.error + entrywise(gamma(1), self.squares))
        return Moment(factor * self.matrix, size * self.squares, error)

    def plus(self, other: Moment) -> Moment:
        """Return this plus another."""
        squares = self.squares + other.squares
        error = self.error + other.error + entrywise(gamma(2), squares)
        return Moment(self.matrix + other.matrix, squares, error)


def entrywise(share: float, squares: np.ndarray) -> np.ndarray:
    """Diagonal that dominates a matrix with entries up to share * sqrt(squares_k squares_l)."""
    return share * squares.size * squares


def chunk_of(dimension: int) -> int:
    """Return how many pairs of rows with so many columns are worked on at once."""
    return min(CHUNK, max(LEAST_CHUNK, CHUNK_NUMBERS // max(dimension, 1)))


def unit_of(rows: np.ndarray) -> float:
    """Half the distance from one to the next number of the type of some rows."""
    return 0.5 * float(np.finfo(rows.dtype).eps)


def squared_lengths(
    rows: np.ndarray, i: np.ndarray, j: np.ndarray, components: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return |L (x_i - x_j)|^2 of every pair, and the error of each.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The data, in float64 or long double: their type is that of all sums.
    i, j : ndarrays of int, shape (m,)
        The pairs.
    components : ndarray of shape (r, d)
        L.
    """
    rank, dimension = components.shape
    sizes, unit = np.linalg.norm(components, axis=0), unit_of(rows)
    lengths, errors, step = np.empty(i.size), np.empty(i.size), chunk_of(dimension)
    for lo in range(0, i.size, step):
        part = slice(lo, lo + step)
        v = rows[i[part]] - rows[j[part]]
        z = v @ components.T
        lengths[part] = np.einsum("ij,ij->i", z, z)
        shift = gamma(dimension + 3, unit) * (np.abs(v) @ sizes)
        errors[part] = 2.0 * np.sqrt(lengths[part]) * shift + shift**2
    return lengths, 1.01 * errors + (gamma(rank + 2, unit) + 2.0 * UNIT) * lengths


def moment(
    rows: np.ndarray,
    i: np.ndarray,
    j: np.ndarray,
    weights: np.ndarray,
    coordinates: np.ndarray,
    summed: int = 0,
) -> Moment:
    """Return the sum of weight * z z^T over pairs, z = W^T (x_i - x_j).

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The data, in float64 or long double: their type is that of all sums.
    i, j : ndarrays of int, shape (m,)
        The pairs.
    weights : ndarray of shape (m,)
        Weights of any sign.
    coordinates : ndarray of shape (d, e)
        W.
    summed : int
        Number of terms that each weight is itself a sum of.
    """
    dimension, width = coordinates.shape
    unit, dtype, step = unit_of(rows), rows.dtype, chunk_of(dimension)
    total = np.zeros((width, width), dtype)
    squares, columns = np.zeros(width, dtype), np.zeros(dimension, dtype)
    for lo in range(0, i.size, step):
        part = slice(lo, lo + step)
        v, weight = rows[i[part]] - rows[j[part]], weights[part]
        z, size = v @ coordinates, np.abs(weight)
        total += (z * weight[:, None]).T @ z
        squares += size @ z**2
        columns += size @ v**2
    # The roots of the sums of squares of z and of its rounding, by Minkowski's inequality.
    shift = gamma(dimension + 3, unit) * (np.sqrt(columns) @ np.abs(coordinates))
    squares = (np.sqrt(squares) + shift) ** 2 * (1.0 + gamma(i.size + 8))
    n_terms = min(i.size, step) + i.size // step + 4
    # Weights are sums in float64, and so is the matrix that is returned.
    share = gamma(n_terms, unit) + gamma(summed + 2)
    sizes, shift = (part.astype(np.float64) for part in (np.sqrt(squares), shift))
    return Moment(total.astype(np.float64), sizes**2, product_error(sizes, shift, share))


def product_error(sizes: np.ndarray, shifts: np.ndarray, share: float) -> np.ndarray:
    """Diagonal that dominates |a b^T + b a^T| + share * a a^T for sizes a and shifts b >= 0.

    A matrix with entries up to E_kl lies below the diagonal of sum_l E_kl s_l / s_k, for
    any s > 0. Here s is 1 / a, or less where pairs hardly differ: the shift of such a
    direction must not spoil the others.
    """
    if sizes.size == 0:
        return np.zeros(0)
    units = sizes + np.sqrt(shifts * sizes.max())
    units = np.where(units > 0.0, units, 1.0)
    moved, own = float((shifts / units).sum()), float((sizes / units).sum())
    return 1.01 * units * (sizes * moved + (shifts + share * sizes) * own)


def no_moment(coordinates: np.ndarray) -> Moment:
    """Return the sum over no pairs, in coordinates (d, e)."""
    width = coordinates.shape[1]
    return Moment(np.zeros((width, width)), np.zeros(width), np.zeros(width))


def column_moments(
    rows: np.ndarray, i: np.ndarray, j: np.ndarray, weights: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of weight * (a_k . v)^2 over pairs for every column a_k, and its error.

    Parameters are those of :func:`moment`; ``columns`` is (d, m).
    """
    dimension, width = columns.shape
    total, error, squares = np.zeros(width), np.zeros(width), np.zeros(width)
    unit, step = unit_of(rows), chunk_of(dimension)
    for lo in range(0, i.size, step):
        part = slice(lo, lo + step)
        v, weight = rows[i[part]] - rows[j[part]], weights[part]
        z, size = v @ columns, np.abs(weight)
        shift = gamma(dimension + 3, unit) * (np.abs(v) @ np.abs(columns))
        total += (weight @ z**2).astype(np.float64)
        squares += (size @ z**2).astype(np.float64)
        error += (size @ (2.0 * np.abs(z) * shift + shift**2)).astype(np.float64)
    return total, 1.01 * error + gamma(i.size + 8) * squares
