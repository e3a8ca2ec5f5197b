"""How far a computed number can be from the exact one: the few rules that proofs use.

Derivations are in docs/certificates.md.
"""

from __future__ import annotations

import numpy as np

# Half the distance from one to the next float64.
UNIT = 2.0**-53
# Amounts that are tried as the slack of a matrix without a proof.
SLACKS = (1e-280, 1e-60, 1e-52, 1e-46, 1e-42, 1e-38, 1e-35, 1e-33)
# Times a lower shift is tried before a proof is given up.
TRIALS = 60


def gamma(n: float, unit: float = UNIT) -> float:
    """Relative error of a sum of n products: n u / (1 - n u)."""
    return n * unit / (1.0 - n * unit) if n * unit < 0.5 else np.inf


def sum_error(values: np.ndarray) -> float:
    """Error of ``values.sum()``, whatever the order of the additions."""
    return gamma(values.size) * float(np.abs(values).sum())


def least_eigenvalue(matrix: np.ndarray, error: np.ndarray) -> float:
    """Lower bound of the least eigenvalue of all symmetric matrices near a given one.

    They differ from it by no more than diag(error). A Cholesky factorisation that runs
    to its end proves that a matrix has no eigenvalue below -gamma * trace.
    """
    size = matrix.shape[0]
    if size == 0:
        return np.inf
    if not (np.isfinite(matrix).all() and np.isfinite(error).all()):
        return -np.inf
    matrix = (matrix + matrix.T) / 2 - np.diag(error * (1.0 + 4.0 * UNIT))
    scale = float(np.abs(matrix).sum(axis=1).max())
    if scale == 0.0:
        return 0.0
    shift, step = float(np.linalg.eigvalsh(matrix)[0]), size * UNIT * scale
    for _ in range(TRIALS):
        shift -= step
        shifted = matrix - shift * np.eye(size)
        if _has_factor(shifted):
            return shift - gamma(size + 6) * float(np.trace(shifted))
        step *= 2.0
    return -np.inf


def is_positive(matrix: np.ndarray, error: np.ndarray) -> bool:
    """Whether all symmetric matrices near a given one are proved to be positive semidefinite.

    The answer does not depend on the units of rows and columns.
    """
    diagonal = np.diag(matrix) - error * (1.0 + 4.0 * UNIT)
    if not (diagonal > 0.0).all():
        return False
    scale = 1.0 / np.sqrt(diagonal)
    unit = (matrix + matrix.T) / 2 * scale[:, None] * scale
    # One on the diagonal, so its trace is its size; four roundings of each entry.
    share = gamma(len(matrix) + 12) * len(matrix)
    np.fill_diagonal(unit, 1.0 - 2.0 * share)
    return _has_factor(unit)


def least_slack(matrix: np.ndarray, error: np.ndarray) -> float:
    """Slack s such that all matrices near a given one are proved to be above -s.

    Only what is far below any other number is of use: infinity stands for all else.
    """
    unit = np.eye(len(matrix))
    for slack in SLACKS:
        if is_positive(matrix + slack * unit, error):
            return slack
    return np.inf


def _has_factor(matrix: np.ndarray) -> bool:
    """Whether a Cholesky factorisation runs to its end."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
