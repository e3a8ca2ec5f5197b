"""Objectives of finished metrics, summed from differences of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.proofs.rounding import gamma, sum_error


class Value(NamedTuple):
    """A number and how far it may be from the exact one."""

    value: float
    error: float

    def plus(self, other: Value, factor: float = 1.0) -> Value:
        """Return this plus a multiple of another."""
        value = self.value + factor * other.value
        rounding = gamma(2) * (abs(self.value) + abs(factor * other.value))
        return Value(value, self.error + abs(factor) * other.error + rounding)


class Lengths(NamedTuple):
    """Squared distances of some pairs, and the error of each."""

    values: np.ndarray
    errors: np.ndarray

    def total(self, weights: np.ndarray | None = None) -> Value:
        """Return their sum, each with its weight."""
        values, errors = self
        if weights is not None:
            values, errors = weights * values, np.abs(weights) * errors
        return Value(float(values.sum()), float(errors.sum()) * 1.01 + sum_error(values))


def hinge_sum(
    targets: Lengths, target_start: np.ndarray, impostors: Lengths, row: np.ndarray
) -> Value:
    """Sum of max(0, 1 + D_ij - D_il) over the targets j and impostors l of each row.

    Parameters
    ----------
    targets : Lengths
        Of target pairs, row by row.
    target_start : ndarray of shape (n + 1,)
        Where the targets of each row start.
    impostors : Lengths
        Of pairs (row, impostor).
    row : ndarray of int, shape (m,)
        The row of each of them.
    """
    counts = np.diff(target_start)[row]
    pair = np.repeat(np.arange(row.size), counts)
    first = np.cumsum(counts) - counts
    slot = np.arange(pair.size) - first[pair]
    target = target_start[row][pair] + slot
    margins = 1.0 + targets.values[target] - impostors.values[pair]
    errors = targets.errors[target] + impostors.errors[pair] + gamma(2) * np.abs(margins)
    active = margins > 0.0
    hinges = margins[active]
    error = 1.01 * float(errors[margins > -errors].sum()) + sum_error(hinges)
    return Value(float(hinges.sum()), error)
