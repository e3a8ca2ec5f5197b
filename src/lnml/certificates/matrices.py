"""Symmetric matrices with the rounding errors of their entries, and what is proved about them.

No proof depends on the units of rows and columns: matrices are scaled by powers of two, which
is exact, before anything is factorised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.certificates.arithmetic import EPS, LONG, TINY, blocks, gamma, power_of_two
from lnml.certificates.images import STEPS, Images


class Matrix(NamedTuple):
    """A symmetric matrix; entries of the true one differ by at most ``errors``."""

    values: np.ndarray
    errors: np.ndarray

    def plus(self, other: Matrix) -> Matrix:
        """Return the sum of two matrices."""
        values = self.values + other.values
        rounding = gamma(2) * (np.abs(self.values) + np.abs(other.values))
        return Matrix(values, self.errors + other.errors + rounding)

    def times(self, factor: LONG) -> Matrix:
        """Return a multiple of the matrix."""
        values = factor * self.values
        return Matrix(values, np.abs(factor) * self.errors + gamma(2) * np.abs(values))

    def scaled(self, scale: np.ndarray) -> Matrix:
        """Rows and columns times powers of two."""
        both = scale[:, None] * scale
        return Matrix(self.values * both, self.errors * both)

    def lowered(self) -> np.ndarray:
        """Return a matrix that the true one exceeds by a positive semidefinite one.

        A symmetric matrix with entries up to E_kl lies below the diagonal of
        sum_l E_kl s_l / s_k, for any s > 0: here s_k is one over the root of E_kk.
        """
        roots = np.sqrt(np.maximum(np.diag(self.errors), TINY))
        # The last factor is for the rounding of this function.
        diagonal = roots * (self.errors @ (1 / roots)) * (1 + gamma(len(roots) + 8))
        diagonal += gamma(2) * np.abs(np.diag(self.values))
        return np.asarray(self.values - np.diag(diagonal))


class Scatter:
    """Sum of w z z^T over pairs of rows, z the difference of their images.

    Parameters
    ----------
    points : Images
        Images of all rows.
    weight_steps : int
        Operations in a row that made a weight.
    """

    def __init__(self, points: Images, weight_steps: int = 0) -> None:
        e = points.high.shape[1]
        self.points = points
        self.weight_steps = weight_steps
        self.values = np.zeros((e, e), dtype=LONG)
        self.squares = np.zeros(e, dtype=LONG)
        self.weight = LONG(0)
        self.longest = self.parts = 0

    def add(
        self,
        first: np.ndarray | int,
        second: np.ndarray,
        weights: np.ndarray,
        sizes: np.ndarray | None = None,
    ) -> None:
        """Add some pairs.

        Parameters
        ----------
        first, second : ndarrays of int, shape (m,)
            The pairs; one row may stand for all first ones.
        weights : ndarray of shape (m,)
            Weights of any sign.
        sizes : ndarray of shape (m,), or None
            The weights are exact relative to these; default: to themselves.
        """
        z = self.points.between(first, second)
        sizes = np.abs(weights) if sizes is None else sizes
        # Contiguous factors are twice as fast.
        self.values += np.dot(np.ascontiguousarray((z * weights[:, None]).T), z)
        self.squares += sizes @ z**2
        self.weight += sizes.sum()
        self.longest, self.parts = max(self.longest, len(second)), self.parts + 1

    def add_upper(self, rows: slice, weights: np.ndarray, sizes: np.ndarray | None = None) -> None:
        """Add pairs (i, j), i < j, of some rows; weights of shape (b, n - rows.start)."""
        for place, i in enumerate(range(rows.start, rows.stop)):
            row = weights[place] if sizes is None else sizes[place]
            used = place + 1 + np.flatnonzero(row[place + 1 :])
            if used.size:
                chosen = None if sizes is None else row[used]
                self.add(i, rows.start + used, weights[place, used], chosen)

    def total(self) -> Matrix:
        """Return the sum over all that was added."""
        c = self.points.sizes(self.squares, self.weight)
        # An error of z is at most gamma(STEPS) of c; by Cauchy and Schwarz, that of an entry
        # is at most this share of the product of two.
        share = gamma(self.longest + self.parts + self.weight_steps + 4 * STEPS)
        errors = share * c[:, None] * c + self.longest * self.parts * TINY
        return Matrix((self.values + self.values.T) / 2, errors)


def edge_scatter(
    points: Images, edges: np.ndarray, weights: np.ndarray, weight_steps: int = 0
) -> Matrix:
    """Sum of w z z^T over edges (m, 2); see :class:`Scatter`."""
    scatter = Scatter(points, weight_steps)
    for part in blocks(len(edges)):
        first, second = edges[part].T
        scatter.add(first, second, weights[part])
    return scatter.total()


def cholesky(matrix: np.ndarray) -> np.ndarray | None:
    """Lower triangular factor in long double, or None if the factorisation breaks down."""
    lower = matrix.astype(LONG)
    if not np.isfinite(lower).all():
        return None
    for k in range(len(lower)):
        if not lower[k, k] > 0:
            return None
        lower[k:, k] /= np.sqrt(lower[k, k])
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], lower[k + 1 :, k])
    return np.tril(lower)


def cholesky_error(matrix: np.ndarray) -> LONG:
    """If :func:`cholesky` ends, R R^T differs from the matrix by at most this (Rump 2006)."""
    e = len(matrix)
    return gamma(e + 4) * np.trace(matrix) + 4 * e * (e + np.abs(matrix).max(initial=0)) * TINY


def is_positive(matrix: Matrix, slack: float = 0.0) -> bool:
    """Prove that the true matrix has no eigenvalue below -slack."""
    size = len(matrix.values)
    shifted = matrix.lowered() + LONG(slack) * np.eye(size, dtype=LONG)
    # The sum was rounded: by no more than this.
    diagonal = np.diag(shifted) - gamma(2) * (np.abs(np.diag(matrix.values)) + LONG(slack))
    if not (diagonal > 0).all():
        return False
    np.fill_diagonal(shifted, diagonal)
    scale = 1 / power_of_two(np.sqrt(diagonal))
    shifted = shifted * scale[:, None] * scale
    # If what is left has a Cholesky factor, the shifted matrix is positive semidefinite.
    return cholesky(shifted - cholesky_error(shifted) * np.eye(size, dtype=LONG)) is not None


class Determinant(NamedTuple):
    """Logarithm of |det| and its error."""

    log: LONG
    error: LONG


def balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide rows and columns by powers of two, so that their largest entries are near one.

    Returns the matrix, and the powers of rows and columns.
    """
    matrix = matrix.astype(LONG)
    rows = power_of_two(np.abs(matrix).max(axis=1, initial=0))
    columns = power_of_two(np.abs(matrix / rows[:, None]).max(axis=0, initial=0))
    return matrix / rows[:, None] / columns, rows, columns


def inverse_norm(matrix: np.ndarray) -> LONG:
    """Return a bound of the Frobenius norm of the inverse; infinity if there is no proof of one.

    If |I - K B| <= 1/2 for a guess K, the inverse is (I - (I - K B))^-1 K: its norm is at most
    2 |K|.
    """
    matrix = matrix.astype(LONG)
    size = len(matrix)
    guess = _inverse(matrix)
    if guess is None or not np.isfinite(guess).all():
        return LONG(np.inf)
    rest = np.abs(np.eye(size, dtype=LONG) - np.dot(guess, matrix))
    rest += gamma(size + 4) * (np.dot(np.abs(guess), np.abs(matrix)) + np.eye(size, dtype=LONG))
    if not np.sqrt((rest**2).sum()) * LONG(1.01) <= 0.5:
        return LONG(np.inf)
    return LONG(2.02) * np.sqrt((guess**2).sum())


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Inverse in long double, by Gauss and Jordan; None if a pivot is zero."""
    size = len(matrix)
    both = np.hstack([matrix, np.eye(size, dtype=LONG)])
    for k in range(size):
        best = k + int(np.argmax(np.abs(both[k:, k])))
        both[[k, best]] = both[[best, k]]
        if both[k, k] == 0:
            return None
        both[k] /= both[k, k]
        others = both[:, k].copy()
        others[k] = 0
        both -= np.outer(others, both[k])
    return both[:, size:]


def log_determinant(matrix: np.ndarray) -> Determinant | None:
    """Return log |det| of a square matrix that is exact, by Gaussian elimination; None if zero."""
    upper, rows, columns = balanced(matrix)
    size, given = len(upper), upper.copy()
    lower = np.zeros((size, size), dtype=LONG)
    for k in range(size):
        best = k + int(np.argmax(np.abs(upper[k:, k])))
        for array in (upper, lower):
            array[[k, best]] = array[[best, k]]
        if upper[k, k] == 0:
            return None
        lower[k, k] = 1
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :, k:] -= np.outer(lower[k + 1 :, k], upper[k, k:])
        upper[k + 1 :, k] = 0
    # What was factorised is the matrix plus E with |E| <= gamma |lower| |upper|. The logarithm
    # moves by at most 2 sqrt(size) |matrix^-1 E|, if that norm is at most 1/2.
    moved = gamma(size + 2) * np.sqrt((np.dot(np.abs(lower), np.abs(upper)) ** 2).sum())
    share = LONG(1.01) * moved * inverse_norm(given)
    if not share <= 0.5:
        return Determinant(LONG(0), LONG(np.inf))
    logs = np.concatenate([np.log(np.abs(np.diag(upper))), np.log(rows), np.log(columns)])
    error = 2 * np.sqrt(LONG(size)) * share + gamma(3 * size + 4) * np.abs(logs).sum()
    return Determinant(LONG(logs.sum()), LONG(error))


def least_log_determinant(matrix: Matrix) -> LONG | None:
    """Return a lower bound of log det of the true matrix; None if it may not be positive.

    B >= R R^T - e I, so det B >= det(R R^T) prod_i (1 - e m_i) with the eigenvalues m_i of the
    inverse of R R^T. Their sum is |R^-1|^2, and log(1 - x) >= -2 x for x <= 1/2.
    """
    below = matrix.lowered()
    lower = cholesky(below)
    if lower is None:
        return None
    error = cholesky_error(below) + 2 * EPS * np.abs(np.diag(below)).max(initial=0)
    lost = error * inverse_norm(lower) ** 2 * LONG(1.01)
    if not lost <= 0.5:
        return None
    logs = np.log(np.diag(lower))
    return LONG(2 * (logs.sum() - lost - gamma(len(logs) + 4) * np.abs(logs).sum()))
