"""Objectives that are made of a softmax over all rows: MCML and NCA.

The derivations are in docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lnml.proofs.all_pairs import Rows, Softmax, softmax_blocks
from lnml.proofs.differences import Moment
from lnml.proofs.hinges import Bound, limited_bound
from lnml.proofs.objective import Value
from lnml.proofs.rounding import UNIT, gamma, least_eigenvalue

# Shares of a strictly feasible dual point that are tried beyond the one the solver chose.
MORE = (0.0, 1e-9, 1e-6, 1e-4, 1e-2)


def divergence(
    rows: Rows, components: np.ndarray, ideal: Callable[[np.ndarray], np.ndarray]
) -> Value:
    """Sum over rows of KL(p0 | p_M).

    Parameters
    ----------
    rows : Rows
        The data.
    components : ndarray of shape (r, d)
        The metric.
    ideal : callable
        Maps row numbers (b,) to their p0 (b, n): one over the number of targets of a row, at
        its targets.
    """
    total = Value(0.0, 0.0)
    for block in softmax_blocks(rows, components):
        own = ideal(block.rows)
        counts = own.sum(axis=1) > 0.0
        n_targets = np.maximum((own > 0.0).sum(axis=1), 1)
        pull = (own * block.distances).sum(axis=1)
        each = np.where(counts, pull + block.log_normalizers - np.log(n_targets), 0.0)
        moved = (own * block.errors).sum(axis=1) + gamma(n_targets.max() + 4) * pull
        error = 1.01 * float(((moved + block.log_error) * counts).sum())
        total = total.plus(Value(float(each.sum()), error + gamma(each.size) * np.abs(each).sum()))
    return Value(max(total.value, 0.0), total.error)


def wrong_neighbors(rows: Rows, components: np.ndarray) -> Value:
    """Sum over rows of the chance that a random neighbour is of another class."""
    total, codes = Value(0.0, 0.0), rows.codes
    for block in softmax_blocks(rows, components):
        apart = codes[block.rows][:, None] != codes
        each = np.where(apart, block.probability, 0.0).sum(axis=1)
        error = float((2.02 * each * _largest_error(block) + gamma(len(codes) + 8) * each).sum())
        total = total.plus(Value(float(each.sum()), error))
    return total


def _largest_error(block: Softmax) -> np.ndarray:
    """Largest error of a distance that matters, for every row of a block."""
    return np.where(block.probability > UNIT, block.errors, 0.0).max(axis=1)


class SoftmaxDual(NamedTuple):
    """A dual point of MCML, seen through what a bound needs of it.

    ``expected`` is the expected scatter, ``entropy`` the sum of the entropies.
    """

    expected: Moment
    entropy: Value

    def mixed(self, other: SoftmaxDual, share: float) -> SoftmaxDual:
        """(1 - share) times this plus share times the other: entropy is concave."""
        if share == 0.0:
            return self
        expected = self.expected.times(1.0 - share).plus(other.expected.times(share))
        entropy = Value(0.0, 0.0).plus(self.entropy, 1.0 - share).plus(other.entropy, share)
        return SoftmaxDual(expected, entropy)


def entropy_bound(pull: Moment, duals: list[SoftmaxDual], share: float, log_sizes: float) -> Bound:
    """Bound of MCML's objective from one dual point, or from a mixture of two.

    Parameters
    ----------
    pull : Moment
        Scatter of p0.
    duals : list of SoftmaxDual
        The points; the second one is strictly feasible.
    share : float
        Share of the second one.
    log_sizes : float
        Sum of the logs of the numbers of targets.
    """
    best = Bound(0.0, 0.0)
    for more in MORE if len(duals) == 2 else (0.0,):
        at = min(share + more, 1.0)
        dual = duals[0].mixed(duals[-1], at) if len(duals) == 2 else duals[0]
        whole = pull.plus(dual.expected.times(-1.0))
        least = least_eigenvalue(whole.matrix, whole.error)
        value = dual.entropy.plus(Value(-log_sizes, gamma(4) * abs(log_sizes)))
        proved = value.value - value.error
        if least >= 0.0:
            return max(best, Bound(proved, at), key=lambda bound: bound.value)
        limited = limited_bound(whole, 1.0, proved)
        if limited.value > best.value:
            best = limited._replace(share=at)
    return best
