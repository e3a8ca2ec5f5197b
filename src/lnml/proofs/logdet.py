"""Objective and bound of ITML, from its constraint vectors.

For a tightness t of each constraint, the cost of its slack is at least (1 - t) q + log t,
q = w^T M w. What is left is least at M = A^-1, A = I + gamma * sum of (1 - t) w w^T, and
proves log det A + gamma * sum of log t. See docs/certificates.md.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lu

from lnml.proofs.differences import moment, squared_lengths
from lnml.proofs.objective import Value
from lnml.proofs.rounding import gamma, sum_error

# A log-determinant is given up if its relative rounding may exceed this.
MOST_ROUNDING = 0.1


def logdet_objective(
    vectors: np.ndarray, similar: np.ndarray, weight: float, components: np.ndarray
) -> Value:
    """Return LogDet(M, I) plus ``weight`` times the slack, at components (d, d).

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        Constraint vectors in units of their bounds.
    similar : ndarray of bool, shape (m,)
        Whether w^T M w should be at most one; otherwise at least one.
    weight : float
        Weight of the slack.
    components : ndarray of shape (d, d)
        The metric as it is returned.
    """
    data, at, zero = _as_rows(vectors)
    lengths, errors = squared_lengths(data, at, zero, components)
    violated = np.where(similar, lengths > 1.0, lengths < 1.0)
    q, moved = lengths[violated], errors[violated]
    excess = q - 1.0
    near = np.abs(excess) < 0.5
    slack = excess - np.where(near, np.log1p(np.where(near, excess, 0.0)), np.log(q))
    slope = np.abs(1.0 - 1.0 / q) + moved / np.maximum(q - moved, 1e-300) ** 2
    error = float((moved * slope).sum()) * 1.01 + gamma(8) * float(np.abs(excess).sum())
    total = Value(float(slack.sum()), error + sum_error(slack))
    square = float(np.vdot(components, components))
    prior = Value(square - len(components), gamma(components.size + 2) * square)
    return prior.plus(log_det(components), -2.0).plus(total, weight)


def log_det(matrix: np.ndarray) -> Value:
    """Logarithm of |det| of a square matrix, by its LU factors."""
    permuted, upper = lu(matrix, permute_l=True)
    diagonal = np.abs(np.diag(upper))
    if not (diagonal > 0.0).all():
        return Value(-np.inf, np.inf)
    logs = np.log(diagonal)
    # The factors are exact for a matrix that differs by gamma |L| |U|.
    moved = np.abs(np.linalg.inv(matrix)).T * (np.abs(permuted) @ np.abs(upper))
    share = gamma(len(matrix) + 4) * float(moved.sum())
    error = 1.2 * share if share < MOST_ROUNDING else np.inf
    return Value(float(logs.sum()), error + 2.0 * sum_error(logs))


def logdet_bound(
    vectors: np.ndarray, tightness: np.ndarray, weight: float, factor: np.ndarray
) -> float:
    """Return the bound that a tightness (m,) proves; -inf if rounding leaves nothing.

    ``factor`` F (d, d) is near a root of A^-1: then F A F^T is near the identity, and its
    determinant is computed without loss.
    """
    size = vectors.shape[1]
    data, at, zero = _as_rows(np.vstack([vectors, np.eye(size)]))
    weights = np.concatenate([weight * (1.0 - tightness), np.ones(size)])
    found = moment(data, at, zero, weights, factor.T, summed=4)
    matrix = found.matrix - np.diag(found.error)
    share = 2.0 * gamma(size + 8) * float(np.abs(np.diag(matrix)).sum())
    try:
        root = np.linalg.cholesky(matrix - share * np.eye(size))
    except np.linalg.LinAlgError:
        return -np.inf
    logs = 2.0 * np.log(np.diag(root))
    inside = Value(float(logs.sum()), 2.0 * sum_error(logs) + gamma(4) * size)
    logs = np.log(tightness)
    given = Value(float(logs.sum()), 2.0 * sum_error(logs))
    whole = inside.plus(log_det(factor), -2.0).plus(given, weight)
    return whole.value - whole.error


def _as_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and pairs of them whose differences are the vectors."""
    data = np.vstack([np.zeros((1, vectors.shape[1])), vectors])
    at = np.arange(1, len(data))
    return data, at, np.zeros_like(at)
