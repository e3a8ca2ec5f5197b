"""Images of rows under a matrix, with twice the digits of long double.

Rows may share a huge value in a column, and a matrix may cancel what is left of large
differences. With z = B^T x in twice the digits, the difference of two images is exact to
nearly all digits of long double, whatever cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.certificates.arithmetic import EPS, LONG, TINY, gamma, two_product, two_sum

# Relative error of a difference of images, in operations; twice what is needed.
STEPS = 4


class Images(NamedTuple):
    """Images z = B^T x of rows x.

    A difference of two of them, as :meth:`between` computes it, is exact up to gamma(STEPS)
    times itself plus the errors of the two.

    Attributes
    ----------
    high, low : ndarrays of shape (n, e)
        z is their sum.
    error : ndarray of shape (n, e)
        What is left to z, and to its part in a difference: about EPS^2 of |B|^T |x|.
    """

    high: np.ndarray
    low: np.ndarray
    error: np.ndarray

    def between(self, first: np.ndarray | int, second: np.ndarray) -> np.ndarray:
        """Differences of images, shape (m, e)."""
        return np.asarray(
            (self.high[first] - self.high[second]) + (self.low[first] - self.low[second])
        )

    def sizes(self, squares: np.ndarray, weight: LONG) -> np.ndarray:
        """Sizes c of a weighted sum over differences z, shape (e,).

        With the weights w >= 0, neither the root of the sum of w z_k^2 exceeds c_k, nor that of
        the sum of w d_k^2 exceeds gamma(STEPS) c_k, where d is the error of z (Minkowski).

        Parameters
        ----------
        squares : ndarray of shape (e,)
            Sum of w z_k^2, exact up to one in a thousand.
        weight : longdouble
            Sum of w.
        """
        largest = 2 * self.error.max(axis=0, initial=0) / gamma(STEPS)
        return np.asarray(LONG(1.01) * (np.sqrt(squares) + np.sqrt(weight) * largest))


def images(rows: np.ndarray, matrix: np.ndarray) -> Images:
    """Map rows (n, d) by a matrix (d, e); both are exact.

    The dot products are those of Ogita, Rump and Oishi: errors of all products and sums are
    added up beside the sums.
    """
    n, d = rows.shape
    matrix = matrix.astype(LONG)
    high = np.zeros((n, matrix.shape[1]), dtype=LONG)
    low, reach = np.zeros_like(high), np.zeros_like(high)
    for column, along in zip(rows.astype(LONG).T, matrix, strict=True):
        product, product_rest = two_product(column[:, None], along[None])
        high, sum_rest = two_sum(high, product)
        low += product_rest + sum_rest
        reach += np.abs(product)
    high, low = two_sum(high, low)
    return Images(high, low, gamma(2 * d + 4) ** 2 * reach + 8 * d * TINY)


def block_distances(
    points: Images, rows: slice, columns: slice | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of some rows to others (default all), and their errors: (b, m)."""
    columns = slice(None) if columns is None else columns
    total = np.zeros((len(points.high[rows]), len(points.high[columns])), dtype=LONG)
    step, rest = np.empty_like(total), np.empty_like(total)
    for high, low in zip(points.high.T, points.low.T, strict=True):
        np.subtract(high[rows, None], high[columns], out=step)
        np.subtract(low[rows, None], low[columns], out=rest)
        step += rest
        step *= step
        total += step
    own = _distance_errors(points)
    errors = gamma(points.high.shape[1] + 4 * STEPS) * total
    errors += own[rows, None] + own[columns]
    return total, errors


def pair_distances(
    points: Images, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances of pairs, and their errors: both of shape (m,)."""
    total = (points.between(first, second) ** 2).sum(axis=1)
    own = _distance_errors(points)
    return total, gamma(points.high.shape[1] + 4 * STEPS) * total + own[first] + own[second]


def _distance_errors(points: Images) -> np.ndarray:
    """Part of each row in the errors of its squared distances, beyond their relative error."""
    # A difference z is exact up to g |z| + t, and 2 |z| t <= EPS |z|^2 + t^2 / EPS.
    return np.asarray(8 / EPS * (points.error**2).sum(axis=1) + 8 * points.high.shape[1] * TINY)
