"""Whether the coordinates of a certificate leave out nothing in which rows differ.

A bound is about metrics M = W A W^T. If the columns of W and some others, U, are a basis, and
rows do not differ along U, then every metric acts on the differences of rows as one of this
form does. Any U will do.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import LONG, power_of_two
from lnml.certificates.certificate import Certificate
from lnml.certificates.images import images
from lnml.certificates.matrices import balanced, inverse_norm
from lnml.certificates.problem import demand

# Rows agree along a direction if they differ by no more than so many roundings to double of
# the largest value in each column.
ROUNDINGS = 64
UNIT = LONG(2) ** -53
# Times a direction is improved before it is checked.
TRIALS = 3
LEFT_OUT = "rows differ in a direction that the coordinates leave out"


def check_coordinates(certificate: Certificate, rows: np.ndarray) -> None:
    """Check the coordinates against the rows (n, d) in double.

    If nothing is left out, it is enough that W is not singular. A diagonal metric needs the
    columns themselves.
    """
    W = certificate.coordinates
    largest = np.abs(rows).max(axis=0).astype(LONG)
    if certificate.parameters.get("diagonal"):
        # Constant columns may be left out; others are seen if W has a multiple of their axis.
        moved = np.abs(rows.astype(LONG) - rows[0]).max(axis=0)
        demand((W.any(axis=1) | (moved <= ROUNDINGS * UNIT * largest)).all(), LEFT_OUT)
        return
    # Columns that are constant and not part of W are left out as they are.
    spread = np.ptp(rows.astype(LONG), axis=0)
    kept = W.any(axis=1) | (spread > 0)
    rows, W, largest, spread = rows[:, kept], W[kept], largest[kept], spread[kept]
    # In units of the columns; powers of two, so that nothing is rounded.
    unit = power_of_two(np.where(spread > 0, spread, largest))
    basis = W * unit[:, None]
    basis /= power_of_two(np.abs(basis).max(axis=0, initial=0))
    others = _complement(basis.astype(np.float64))
    whole = np.hstack([basis, others])
    demand(
        whole.shape[0] == whole.shape[1] and np.isfinite(inverse_norm(balanced(whole)[0])),
        "the coordinates are not proved to be independent of each other",
    )
    if others.shape[1]:
        # With a multiple of W added to U, both together are still a basis.
        free = _improved(rows / unit.astype(np.float64), basis.astype(np.float64), others)
        demand(_are_constant(rows, free / unit[:, None], largest), LEFT_OUT)


def _complement(basis: np.ndarray) -> np.ndarray:
    """Orthonormal basis of all that is orthogonal to some columns (d, e): shape (d, d - e)."""
    if basis.shape[0] <= basis.shape[1]:
        return np.zeros((basis.shape[0], 0))
    return np.asarray(np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :])


def _improved(rows: np.ndarray, basis: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Others plus multiples of the basis, such that rows differ least along them."""
    wide, matrix = rows.astype(LONG), others.astype(LONG)
    seen = ((wide - wide[0]) @ basis.astype(LONG)).astype(np.float64)
    size = np.maximum(np.abs(seen).max(axis=0, initial=0), np.finfo(np.float64).tiny)
    for _ in range(TRIALS):
        mapped = images(rows, matrix)
        rest = mapped.between(np.arange(len(rows)), np.zeros(len(rows), dtype=int))
        found = np.linalg.lstsq(seen / size, rest.astype(np.float64), rcond=None)[0]
        matrix = matrix - basis.astype(LONG) @ (found / size[:, None]).astype(LONG)
    return matrix


def _are_constant(rows: np.ndarray, directions: np.ndarray, largest: np.ndarray) -> bool:
    """Whether rows differ along directions (d, m) by no more than rounding."""
    mapped = images(rows, directions)
    moved = np.abs(mapped.between(np.arange(len(rows)), np.zeros(len(rows), dtype=int)))
    return bool((moved <= ROUNDINGS * UNIT * (largest @ np.abs(directions))).all())
