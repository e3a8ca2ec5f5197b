"""Distances and scatter of pairs of rows: differences first, then products.

Rows may share a huge value in a column. Their difference there is exactly zero, and
nothing of it is left in their distance; after a product it would be rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.proofs.rounding import gamma

# Pairs worked on at once.
CHUNK = 4096


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


def squared_lengths(
    rows: np.ndarray, i: np.ndarray, j: np.ndarray, components: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return |L (x_i - x_j)|^2 of every pair, and the error of each.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The data, in float64.
    i, j : ndarrays of int, shape (m,)
        The pairs.
    components : ndarray of shape (r, d)
        L.
    """
    rank, dimension = components.shape
    sizes = np.linalg.norm(components, axis=0)
    lengths, errors = np.empty(i.size), np.empty(i.size)
    for lo in range(0, i.size, CHUNK):
        part = slice(lo, lo + CHUNK)
        v = rows[i[part]] - rows[j[part]]
        z = v @ components.T
        lengths[part] = np.einsum("ij,ij->i", z, z)
        shift = gamma(dimension + 3) * (np.abs(v) @ sizes)
        errors[part] = 2.0 * np.sqrt(lengths[part]) * shift + shift**2
    return lengths, errors + gamma(rank + 2) * lengths


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
        The data, in float64.
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
    total, squares, columns = np.zeros((width, width)), np.zeros(width), np.zeros(dimension)
    for lo in range(0, i.size, CHUNK):
        part = slice(lo, lo + CHUNK)
        v, weight = rows[i[part]] - rows[j[part]], weights[part]
        z, size = v @ coordinates, np.abs(weight)
        total += (z * weight[:, None]).T @ z
        squares += size @ z**2
        columns += size @ v**2
    # The roots of the sums of squares of z and of its rounding, by Minkowski's inequality.
    shift = gamma(dimension + 3) * (np.sqrt(columns) @ np.abs(coordinates))
    squares = (np.sqrt(squares) + shift) ** 2 * (1.0 + gamma(i.size + 8))
    n_terms = min(i.size, CHUNK) + i.size // CHUNK + summed + 4
    return Moment(total, squares, _product_error(np.sqrt(squares), shift, gamma(n_terms)))


def _product_error(sizes: np.ndarray, shifts: np.ndarray, share: float) -> np.ndarray:
    """Diagonal that dominates |a b^T + b a^T| + share * a a^T for sizes a and shifts b >= 0.

    A matrix with entries up to E_kl lies below the diagonal of sum_l E_kl s_l / s_k, for
    any s > 0; here s = 1 / a.
    """
    ratio = float(np.divide(shifts, sizes, out=np.zeros_like(sizes), where=sizes > 0.0).sum())
    own = sizes.size * sizes * (shifts + share * sizes)
    return 1.01 * (sizes**2 * ratio + own)


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
    for lo in range(0, i.size, CHUNK):
        part = slice(lo, lo + CHUNK)
        v, weight = rows[i[part]] - rows[j[part]], weights[part]
        z, size = v @ columns, np.abs(weight)
        shift = gamma(dimension + 3) * (np.abs(v) @ np.abs(columns))
        total += weight @ z**2
        squares += size @ z**2
        error += size @ (2.0 * np.abs(z) * shift + shift**2)
    return total, 1.01 * error + gamma(i.size + 8) * squares
