"""What slopes of hinges prove: LMNN, and the methods with a Frobenius norm.

For slopes a in [0, 1] of the triplets, max(0, h) >= a h. So an objective is at least
the sum of the slopes plus a linear function of the metric, whose matrix is a sum over
pairs. The derivations are in docs/certificates.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from lnml.proofs.differences import Moment, entrywise, moment
from lnml.proofs.rounding import (
    UNIT,
    gamma,
    is_positive,
    least_eigenvalue,
    least_slack,
    sum_error,
)
from lnml.proofs.slopes import Slopes

# Largest trace of metrics that a bound covers which does not hold for all metrics.
LARGEST = 1e30
# Slack that costs no more than this share of a bound is given to every check: its rounding differs.
ROOM = 1e-15
# A share of the slopes is this much below the one that seems to be feasible.
CAUTION = 1e-9
# A pair does not differ along a direction if it differs by less than this share of others.
UNSEEN = 1e-14
# Times a dominating matrix is enlarged before its proof is given up.
TRIALS = 6


class Bound(NamedTuple):
    """A proved lower bound.

    Attributes
    ----------
    value : float
        No metric has a lower objective.
    share : float
        Multiple of the slopes that proves it.
    slack, limit : float
        Where the dual matrix is only above -slack, metrics are covered whose trace in the
        coordinates of the proof is at most ``limit``.
    dominator : ndarray or None
        What else belongs to the dual point: the matrix or weights that bound the norm.
    """

    value: float
    share: float = 1.0
    slack: float = 0.0
    limit: float = np.inf
    dominator: np.ndarray | None = None


class Pairs(NamedTuple):
    """Target pairs of rows, on the host.

    ``rows`` is (n, d) in float64, ``i`` and ``j`` are the ends of each pair.
    """

    rows: np.ndarray
    i: np.ndarray
    j: np.ndarray


class Edges(NamedTuple):
    """Pairs (i, j) with weights: what slopes of triplets come down to.

    ``summed`` is the largest number of slopes that a weight is the sum of.
    """

    i: np.ndarray
    j: np.ndarray
    weights: np.ndarray
    summed: int


def slope_edges(pairs: Pairs, slopes: Slopes) -> Edges:
    """Return target pairs with their slopes, and impostors with minus theirs."""
    own = slopes.per_target(pairs.i.size)
    rows, impostors, slope = slopes.impostor_pairs(pairs.i)
    used = own > 0.0
    counts = (np.bincount(slopes.target, minlength=1), np.bincount(pairs.i, minlength=1))
    return Edges(
        np.concatenate([pairs.i[used], rows]),
        np.concatenate([pairs.j[used], impostors]),
        np.concatenate([own[used], -slope]),
        max(int(count.max()) for count in counts),
    )


def push_moment(pairs: Pairs, slopes: Slopes, coordinates: np.ndarray) -> Moment:
    """Sum of slope * (z_ij z_ij^T - z_il z_il^T) over triplets."""
    i, j, weights, summed = slope_edges(pairs, slopes)
    return moment(pairs.rows, i, j, weights, coordinates, summed)


def unseen(pairs: Pairs, slopes: Slopes, directions: np.ndarray) -> Slopes:
    """Return the slopes of triplets whose impostors do not differ along directions (d, m)."""
    v = pairs.rows[pairs.i[slopes.target]] - pairs.rows[slopes.impostor]
    along = np.abs(v @ directions).max(axis=1, initial=0.0)
    kept = along <= UNSEEN * along.max(initial=0.0)
    return Slopes(*(part[kept] for part in slopes))


def slope_total(slopes: Slopes, weight: float) -> float:
    """Weight times the sum of the slopes, rounded down."""
    total = float(slopes.value.sum()) - sum_error(slopes.value)
    return max(weight * total * (1.0 - 4.0 * UNIT), 0.0)


def pull_bound(pull: Moment, push: Moment, pull_weight: float, total: float) -> Bound:
    """Bound of pull_weight <S, M> + hinges, in coordinates where S is about the identity.

    Parameters
    ----------
    pull : Moment
        S.
    push : Moment
        Sum of slope * (z_ij z_ij^T - z_il z_il^T), times the weight of the hinges.
    pull_weight : float
        Its weight.
    total : float
        Sum of the slopes, times the weight of the hinges.
    """
    weighted = pull.times(pull_weight)
    whole = weighted.plus(push)
    least = least_eigenvalue(whole.matrix, whole.error)
    if least > 0.0:
        return Bound(total)
    if least == 0.0:
        # A matrix of zeros: a check, with its own rounding, needs some slack.
        return limited_bound(whole, 1.0, total)
    pulled = max(least_eigenvalue(weighted.matrix, weighted.error), 0.0) * (1.0 - 4.0 * UNIT)
    share = pulled / (pulled - least) * (1.0 - 8.0 * UNIT) if pulled > 0.0 else 0.0
    best = Bound(share * total * (1.0 - 4.0 * UNIT), share)
    # Directions without pull: there, slopes cannot be made feasible by a share of them.
    for share in (1.0 - CAUTION, (1.0 - CAUTION) * pull_weight / (pull_weight - least)):
        whole = weighted.plus(push.times(share))
        best = max(best, limited_bound(whole, share, total), key=lambda bound: bound.value)
    return best


def limited_bound(whole: Moment, share: float, total: float) -> Bound:
    """Return what slopes prove about metrics of any but an absurd size.

    ``whole`` is the dual matrix for a share of the slopes, whose sum is ``total``.
    """
    slack = max(least_slack(whole.matrix, whole.error), ROOM * share * total / LARGEST)
    value = (share * total - slack * LARGEST) * (1.0 - 4.0 * UNIT)
    return Bound(value, share, slack, LARGEST) if value > 0.0 else Bound(0.0, 0.0)


def norm_bound(push: Moment, total: float, coordinates: np.ndarray, inverse: np.ndarray) -> Bound:
    """Bound of 1/2 |M|_F^2 + hinges over all M >= 0.

    Any Y with Y >= B, B the matrix that the hinges ask for, proves total - 1/2 |Y|_F^2.

    Parameters
    ----------
    push : Moment
        -B in the coordinates of the proof.
    total : float
        Sum of the slopes, times the weight of the hinges.
    coordinates, inverse : ndarrays of shape (d, e) and (e, d)
        From the data to the coordinates of the proof, and back on their span.
    """
    span, root = np.linalg.qr(inverse.T)
    wanted = np.diag(push.error) - push.matrix
    values, vectors = np.linalg.eigh(root @ wanted @ root.T)
    factor = span @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    for _ in range(TRIALS):
        dominator = factor @ factor.T
        sizes = np.sqrt(np.diag(dominator)) @ np.abs(coordinates)
        rounding = entrywise(gamma(2 * len(coordinates) + 6), sizes**2 + push.squares)
        inside = coordinates.T @ dominator @ coordinates + push.matrix
        if is_positive(inside, push.error + rounding):
            return _with_dominator(dominator, total)
        # Lift the directions that are too low; along others the norm would pay for nothing.
        factor = np.hstack([factor, inverse.T @ _lift(inside, push.error + 2.0 * rounding)])
    return Bound(0.0, 0.0)


def _lift(matrix: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return F such that matrix + F F^T is above diag(error), and not by much."""
    unit = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 2.0 * error))
    unit = np.where(unit > 0.0, unit, 1.0)
    values, vectors = np.linalg.eigh((matrix - np.diag(error)) / unit[:, None] / unit)
    least = 1e3 * len(unit) ** 2 * UNIT
    return unit[:, None] * vectors * np.sqrt(np.maximum(least - values, 0.0))


def _with_dominator(dominator: np.ndarray, total: float) -> Bound:
    """Bound proved by the best multiple, at most one, of slopes and dominator."""
    square = float(np.vdot(dominator, dominator)) * (1.0 + gamma(dominator.size + 2))
    share = 1.0 if square <= total else total / square
    value = (share * total - 0.5 * share**2 * square) * (1.0 - 8.0 * UNIT)
    return Bound(max(value, 0.0), share, dominator=share * dominator)


def weights_bound(gains: np.ndarray, errors: np.ndarray, total: float, basis: np.ndarray) -> Bound:
    """Bound of 1/2 |A W A^T|_F^2 + hinges over diagonal W >= 0.

    Weights u with Q u >= b prove total - 1/2 u^T Q u, Q the entrywise square of A^T A.

    Parameters
    ----------
    gains, errors : ndarrays of shape (m,)
        b, what the hinges ask for along each column of A, and its error.
    total : float
        Sum of the slopes, times the weight of the hinges.
    basis : ndarray of shape (d, m)
        A.
    """
    lengths = np.linalg.norm(basis, axis=0)
    used = lengths > 0.0
    squares = lengths[used] ** 2
    units = basis[:, used] / lengths[used]
    products = (units.T @ units) ** 2
    wanted = (gains + errors)[used] / squares * (1.0 + np.sign(gains + errors)[used] * 8.0 * UNIT)
    values, vectors = np.linalg.eigh(products)
    kept = values > len(values) * 4.0 * UNIT * values.max(initial=0.0)
    factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    found, _ = nnls(factor, (vectors[:, kept].T / np.sqrt(values[kept])[:, None]) @ wanted)
    rounding = gamma(2 * len(basis) + 8)
    # Q has no negative entry and ones on its diagonal: what is missing can simply be added.
    lower = products @ found * (1.0 - rounding) - rounding * found.sum()
    found = found + np.maximum(wanted - lower, 0.0) * (1.0 + 4.0 * rounding)
    square = float(found @ products @ found) * (1.0 + rounding) + rounding * found.sum() ** 2
    share = 1.0 if square <= total else total / square
    weights = np.zeros(basis.shape[1])
    weights[used] = share * found / squares
    value = (share * total - 0.5 * share**2 * square) * (1.0 - 8.0 * UNIT)
    return Bound(max(value, 0.0), share, dominator=weights)
