"""Sums over all pairs of rows, from their differences, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lnml.proofs.differences import Moment, moment, no_moment, squared_lengths
from lnml.proofs.objective import Value
from lnml.proofs.rounding import gamma

# Pairs in a block of rows, about. Some twenty arrays of so many numbers live at a time.
BLOCK = 2**14


class Rows(NamedTuple):
    """Rows on the host, those of each class together.

    ``data`` is (n, d) in float64, ``class_start`` as in :class:`lnml.core.points.Points`.
    """

    data: np.ndarray
    class_start: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """Class of every row."""
        sizes = np.diff(self.class_start)
        return np.repeat(np.arange(sizes.size), sizes)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield row numbers, block by block, with the partners of each row: all n rows."""
        n = len(self.data)
        step = max(1, BLOCK // n)
        for lo in range(0, n, step):
            rows = np.arange(lo, min(lo + step, n))
            yield rows, np.broadcast_to(np.arange(n), (rows.size, n))


class Softmax(NamedTuple):
    """Distances and softmax of a block of rows over all others.

    Attributes
    ----------
    rows : ndarray of shape (b,)
        The rows.
    distances, errors : ndarrays of shape (b, n)
        Squared distances and their errors.
    probability : ndarray of shape (b, n)
        P; zero for a row itself.
    log_normalizers : ndarray of shape (b,)
        Logs of Z.
    """

    rows: np.ndarray
    distances: np.ndarray
    errors: np.ndarray
    probability: np.ndarray
    log_normalizers: np.ndarray

    @property
    def log_error(self) -> np.ndarray:
        """Error of the logs of Z, shape (b,)."""
        moved = (self.probability * self.errors).sum(axis=1)
        return 1.01 * moved + gamma(self.distances.shape[1] + 8) * (
            1.0 + np.abs(self.log_normalizers)
        )


def softmax_blocks(rows: Rows, components: np.ndarray) -> Iterator[Softmax]:
    """Yield the softmax of minus the squared distances under components (r, d)."""
    for some, partners in rows.blocks():
        i = np.repeat(some, partners.shape[1])
        lengths, errors = squared_lengths(rows.data, i, partners.ravel(), components)
        lengths, errors = lengths.reshape(partners.shape), errors.reshape(partners.shape)
        exponents = -lengths
        exponents[np.arange(some.size), some] = -np.inf
        largest = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - largest)
        total = weights.sum(axis=1, keepdims=True)
        log_normalizers = (np.log(total) + largest)[:, 0]
        yield Softmax(some, lengths, errors, weights / total, log_normalizers)


def mean_moment(
    rows: Rows, components: np.ndarray, counts: np.ndarray, coordinates: np.ndarray
) -> tuple[Moment, Value]:
    """Return the expected scatter of the softmax of some rows, and the sum of its entropies.

    Parameters
    ----------
    rows : Rows
        The data.
    components : ndarray of shape (r, d)
        Metric of the softmax.
    counts : ndarray of bool, shape (n,)
        The rows that count.
    coordinates : ndarray of shape (d, e)
        W.
    """
    n, total = len(rows.data), no_moment(coordinates)
    entropy = Value(0.0, 0.0)
    for block in softmax_blocks(rows, components):
        weights = block.probability * counts[block.rows, None]
        at, partner = np.nonzero(weights)
        i = block.rows[at]
        total = total.plus(moment(rows.data, i, partner, weights[at, partner], coordinates, n + 8))
        # -q log q of the weights as they are: any distribution is a dual point.
        logs = np.log(weights[at, partner])
        each = -weights[at, partner] * logs
        error = gamma(n + 8) * (weights.sum() + np.abs(each).sum() + (weights > 0).any(1).sum())
        # A certificate holds the metric, not the weights: whoever computes them again finds
        # others, by the rounding of the distances.
        own = np.bincount(at, each, len(block.rows))[at]
        moved = weights[at, partner] * np.abs(logs + own) * block.errors[at, partner]
        error += 2.0 * float(moved.sum())
        entropy = entropy.plus(Value(float(each.sum()), float(error)))
    return total, entropy


def same_class(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all pairs of two rows of one class, block by block."""
    codes, n = rows.codes, len(rows.data)
    for some, partners in rows.blocks():
        chosen = (codes[some][:, None] == codes) & (some[:, None] != np.arange(n))
        yield some[np.nonzero(chosen)[0]], partners[chosen]


def other_class(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all pairs of two rows of different classes, block by block."""
    codes = rows.codes
    for some, partners in rows.blocks():
        chosen = codes[some][:, None] != codes
        yield some[np.nonzero(chosen)[0]], partners[chosen]


def class_moment(rows: Rows, weights: np.ndarray, coordinates: np.ndarray) -> Moment:
    """Return the sum over all pairs of each class of its weight times z z^T."""
    total, codes = no_moment(coordinates), rows.codes
    for i, j in same_class(rows):
        total = total.plus(moment(rows.data, i, j, weights[codes[i]], coordinates))
    return total
