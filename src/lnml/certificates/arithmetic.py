"""Sums over pairs of rows in long double, each with a bound of its rounding error.

Every operation in floating point is exact up to a factor 1 + delta with
|delta| <= EPS / 2. A result of k operations in a row, none of which cancels, is exact up to a
factor 1 + delta with |delta| <= gamma(k). EPS is twice what is needed; the factor of two
covers products of such factors. Where the platform has no long double, EPS is that of double.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LONG = np.longdouble
EPS = LONG(np.finfo(LONG).eps)

# Rows or pairs that are summed up at a time: errors grow with the longest sum.
BLOCK = 128
# Reaches are computed in double: this covers their rounding.
ROUND_UP = 1.0 + 1e-9


def gamma(k: float) -> LONG:
    """Largest relative error of k operations in a row."""
    return k * EPS / (1 - k * EPS)


class Images(NamedTuple):
    """Images z = v B of rows v, with a bound of their rounding.

    Attributes
    ----------
    values : ndarray of shape (n, e)
        The images, in long double.
    reach : ndarray of shape (n,)
        Length of |v| |B|: at least that of z, and z is exact up to ``error(2)`` times this.
    n_features : int
        Length of v.
    """

    values: np.ndarray
    reach: np.ndarray
    n_features: int

    def error(self, k: float = 0) -> LONG:
        """Relative error of a sum of k squares of images, relative to squared reaches."""
        # Each image: a subtraction and d products and sums. A square has it twice.
        return gamma(2 * (self.n_features + 2) + k)


def images(rows: np.ndarray, matrix: np.ndarray) -> Images:
    """Map rows (n, d), exact up to one operation, by a matrix (d, e) that is exact."""
    sizes = np.abs(rows).astype(np.float64) @ np.abs(matrix).astype(np.float64)
    reach = np.linalg.norm(sizes, axis=1) * ROUND_UP
    return Images(rows @ matrix.astype(LONG), reach.astype(LONG), rows.shape[1])


def block_distances(points: Images, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of some rows to all, and their errors: both of shape (b, n)."""
    total = np.zeros((len(points.values[rows]), len(points.values)), dtype=LONG)
    for column in points.values.T:
        total += (column[rows, None] - column) ** 2
    errors = points.error(points.values.shape[1] + 2)
    return total, errors * (points.reach[rows, None] + points.reach) ** 2


def blocks(count: int) -> list[slice]:
    """Cut a range into blocks."""
    return [slice(low, min(low + BLOCK, count)) for low in range(0, count, BLOCK)]


class Matrix(NamedTuple):
    """A symmetric matrix; the true one differs by at most ``error`` in the spectral norm."""

    values: np.ndarray
    error: LONG


def edge_scatter(
    rows: np.ndarray,
    edges: np.ndarray,
    weights: np.ndarray,
    matrix: np.ndarray,
    *,
    weight_steps: int = 0,
) -> Matrix:
    """Sum of w v v^T over edges (i, j), v = B^T (x_i - x_j), from differences.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        X in long double.
    edges : ndarray of int, shape (m, 2)
        Pairs (i, j).
    weights : ndarray of shape (m,)
        Of any sign, the result of ``weight_steps`` operations without cancellation.
    matrix : ndarray of shape (d, e)
        B, exact.
    """
    total = np.zeros((matrix.shape[1],) * 2, dtype=LONG)
    size = LONG(0)
    parts = blocks(len(edges))
    for part in parts:
        first, second = edges[part].T
        mapped = images(rows[first] - rows[second], matrix)
        weighted = mapped.values * weights[part, None]
        total += weighted.T @ mapped.values
        size += (np.abs(weights[part]) * mapped.reach**2).sum()
    # The norm of an error matrix is at most the sum of |w| reach^2, times its relative size.
    steps = 2 * (rows.shape[1] + 2) + BLOCK + len(parts) + weight_steps + 4
    return Matrix((total + total.T) / 2, gamma(steps) * size)


class PairScatter:
    """Sum of w_ij v v^T over all pairs of rows, v = z_i - z_j, for weights w_ij >= 0.

    With Z the matrix of all z, it is Z^T (D - w - w^T) Z, where D is diagonal and holds the
    sums of the rows and of the columns of w.

    Parameters
    ----------
    points : Images
        z of all rows.
    weight_steps : int
        Operations in a row that made a weight.
    """

    def __init__(self, points: Images, weight_steps: int = 0) -> None:
        n, e = points.values.shape
        self.points = points
        self.weight_steps = weight_steps
        self.cross = np.zeros((e, e), dtype=LONG)
        self.degrees = np.zeros(n, dtype=LONG)

    def add(self, rows: slice, weights: np.ndarray) -> None:
        """Add the pairs of some rows with all; weights of shape (b, n)."""
        values = self.points.values
        self.cross += values[rows].T @ (weights @ values)
        self.degrees[rows] += weights.sum(axis=1)
        self.degrees += weights.sum(axis=0)

    def total(self) -> Matrix:
        """Return the sum over all that was added."""
        values, n = self.points.values, len(self.degrees)
        total = (values * self.degrees[:, None]).T @ values - self.cross - self.cross.T
        # |v|^2 <= 2 |z_i|^2 + 2 |z_j|^2; no sum has more than 3 n terms.
        size = 2 * (self.degrees * self.points.reach**2).sum()
        steps = 3 * n + BLOCK + self.weight_steps + 8
        return Matrix((total + total.T) / 2, self.points.error(steps) * size)


def cholesky(matrix: np.ndarray) -> np.ndarray | None:
    """Lower triangular factor in long double, or None if the factorisation breaks down."""
    lower = matrix.astype(LONG)
    for k in range(len(lower)):
        if not lower[k, k] > 0:
            return None
        lower[k:, k] /= np.sqrt(lower[k, k])
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], lower[k + 1 :, k])
    return np.tril(lower)


def cholesky_error(matrix: np.ndarray) -> LONG:
    """If :func:`cholesky` ends, R R^T differs from the matrix by at most this (Rump 2006)."""
    e = len(matrix)
    tiny = LONG(np.finfo(LONG).tiny)
    return gamma(e + 4) * np.trace(matrix) + 4 * e * (e + np.abs(matrix).max(initial=0)) * tiny


def is_positive(matrix: Matrix, slack: float = 0.0) -> bool:
    """Prove that the true matrix has no eigenvalue below -slack."""
    shifted = matrix.values + LONG(slack) * np.eye(len(matrix.values), dtype=LONG)
    # By Weyl, an error matrix lowers eigenvalues by at most its norm. If the shifted matrix has
    # a Cholesky factor, its eigenvalues are above minus the error of the factorisation.
    lowered = matrix.error + cholesky_error(shifted)
    return cholesky(shifted - lowered * np.eye(len(shifted), dtype=LONG)) is not None
