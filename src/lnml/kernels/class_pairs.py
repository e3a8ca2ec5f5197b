"""The scatter of all pairs of rows, from one pass over the rows.

A row y of weight w, seen from a common point, adds w (m y y^T - y s^T - s y^T + S) for its m
partners, s and S the sums of their y and y y^T. With y = u + the mean of its class, all terms are
sums of weight * u u^T over rows, and products of sums over classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class ClassSums(NamedTuple):
    """What pairs of different classes need of every class, on the host.

    Attributes
    ----------
    means : ndarray of shape (n_classes, d)
        Means of the classes, seen from a point near all rows.
    weights : ndarray of shape (n_classes,)
        Sums of the weights of rows for pairs with other classes.
    linear : ndarray of shape (n_classes, d)
        Sums of that weight times u, u = a row minus the mean of its class.
    """

    means: np.ndarray
    weights: np.ndarray
    linear: np.ndarray


class RowClasses(NamedTuple):
    """Size of the class of every row, and the sums of both weights over it: shape (n,) each."""

    sizes: Any
    same: Any
    other: Any


def row_factors(same: Any, other: Any, of_class: RowClasses, total: Any) -> Any:
    """Factor of u u^T of every row in the scatter of all pairs.

    Parameters
    ----------
    same, other : values of shape (n,)
        Weights of the pairs of each row with its class, and with others.
    of_class : RowClasses
        What is known of the class of each row.
    total : number
        Sum of ``other`` over all classes, so that nothing is left beside a class without others.
    """
    n = same.shape[0]
    own = of_class.sizes * same + of_class.same
    return own + (n - of_class.sizes) * other + (total - of_class.other)


def between_classes(sums: ClassSums, sizes: np.ndarray) -> np.ndarray:
    """Return the part of the scatter that depends on sums over classes alone, d x d."""
    means, weights, linear = sums
    n, total = sizes.sum(), weights.sum()
    all_means = sizes @ means
    first = linear + weights[:, None] * means
    beside = all_means - sizes[:, None] * means
    found = (n - sizes)[:, None] * (2.0 * linear + weights[:, None] * means)
    found += (total - weights)[:, None] * sizes[:, None] * means
    moment = found.T @ means - 2.0 * first.T @ beside
    return 0.5 * (moment + moment.T)
