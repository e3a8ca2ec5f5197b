"""The scatter of all pairs of rows, from moments of the classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class WeightedMoments(NamedTuple):
    """Sums over the rows u of a class, around its mean, times weights w.

    Attributes
    ----------
    weight : float
        Sum of w.
    linear : ndarray of shape (d,)
        Sum of w u.
    scatter : ndarray of shape (d, d)
        Sum of w u u^T.
    """

    weight: float
    linear: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, weight: float, n_rows: int, scatter: np.ndarray) -> WeightedMoments:
        """Sums with the same weight for all rows, given the scatter without weights."""
        return cls(weight * n_rows, np.zeros(len(scatter)), weight * scatter)


class ClassMoments(NamedTuple):
    """What the scatter of pairs needs of a class.

    Attributes
    ----------
    n_rows : int
        Number of its rows.
    mean : ndarray of shape (d,)
        Their mean, seen from a point near all rows.
    scatter : ndarray of shape (d, d)
        Sum of u u^T, u = a row minus the mean.
    weighted : list of two WeightedMoments
        The same with the weights of pairs of the same class, and with those of others.
    """

    n_rows: int
    mean: np.ndarray
    scatter: np.ndarray
    weighted: list[WeightedMoments]


def combined_scatter(classes: list[ClassMoments]) -> np.ndarray:
    """Sum of weight_i * v v^T over all ordered pairs of rows, v = x_i - x_j, d x d.

    With rows y around a common point, a row i of weight w adds
    w (m y_i y_i^T - y_i s^T - s y_i^T + S) for its m partners, s and S the sums of their y and
    y y^T. Partners of the same class have s = 0 around the mean of the class.
    """
    n = sum(each.n_rows for each in classes)
    every = sum(each.scatter + each.n_rows * np.outer(each.mean, each.mean) for each in classes)
    sums = sum(each.n_rows * each.mean for each in classes)
    total = np.zeros_like(classes[0].scatter)
    for each in classes:
        same, other = each.weighted
        total += each.n_rows * same.scatter + same.weight * each.scatter
        if other.weight == 0.0 and not other.scatter.any():
            continue
        beside = every - each.scatter - each.n_rows * np.outer(each.mean, each.mean)
        crossed = np.outer(other.linear, each.mean)
        own = other.scatter + crossed + crossed.T + other.weight * np.outer(each.mean, each.mean)
        mixed = np.outer(other.linear + other.weight * each.mean, sums - each.n_rows * each.mean)
        total += (n - each.n_rows) * own + other.weight * beside - mixed - mixed.T
    return 0.5 * (total + total.T)
