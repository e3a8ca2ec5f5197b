"""Whether the coordinates of a certificate leave out nothing in which rows differ.

A bound is about metrics M = W A W^T. If the columns of W and some others, U, are a basis, and
rows do not differ along U, then every metric acts on the differences of rows as one of this
form does. Any U will do.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import LONG, gamma, power_of_two
from lnml.certificates.certificate import Certificate
from lnml.certificates.images import images
from lnml.certificates.matrices import balanced, inverse_norm
from lnml.certificates.problem import demand

# Rows agree along a direction if they differ by no more than so many roundings to double of
# the largest value in each column.
ROUNDINGS = 64
UNIT = LONG(2) ** -53
# The same for every single row, in roundings of its own values or typical ones. Else a code
# like 1e20 in two columns would hide all that other rows say about their difference.
ROW_ROUNDINGS = 2.0**20
# Coordinates whose projection is a smaller share of them would be made of rounding. It is above 0.9
# in fits (docs/certificates.md).
LEAST_SHARE = 1e-3
# Times a direction is improved before it is checked.
TRIALS = 3
# Values so many times a typical one of their column are huge; rows to find that out from.
HUGE, SAMPLE = 1e6, 1000
LEFT_OUT = "rows differ in a direction that the coordinates leave out"


def check_coordinates(certificate: Certificate, rows: np.ndarray) -> np.ndarray:
    """Check the coordinates against the rows (n, d) in double, and return U, shape (d, m).

    If nothing is left out, it is enough that W is not singular. A diagonal metric needs the
    columns themselves.
    """
    W = certificate.coordinates
    largest, axes = np.abs(rows).max(axis=0).astype(LONG), np.eye(len(W), dtype=LONG)
    if certificate.parameters.get("diagonal"):
        # Constant columns may be left out; others are seen if W has a multiple of their axis.
        moved, seen = np.abs(rows.astype(LONG) - rows[0]).max(axis=0), W.any(axis=1)
        demand((seen | (moved <= ROUNDINGS * UNIT * largest)).all(), LEFT_OUT)
        return axes[:, ~seen]
    # Columns that are constant and not part of W are left out as they are.
    spread = np.ptp(rows.astype(LONG), axis=0)
    kept = W.any(axis=1) | (spread > 0)
    rows, W, largest, spread = rows[:, kept], W[kept], largest[kept], spread[kept]
    # In units of the columns; powers of two, so that nothing is rounded.
    unit = power_of_two(np.where(spread > 0, spread, largest))
    basis = W * unit[:, None]
    basis /= power_of_two(np.abs(basis).max(axis=0, initial=0))
    others = _complement(basis.astype(np.float64)).astype(LONG)
    if others.shape[1]:
        others = _improved(rows / unit.astype(np.float64), basis, others)
        demand(_are_constant(rows, others / unit[:, None], largest), LEFT_OUT)
    whole = np.hstack([basis, others])
    demand(
        whole.shape[0] == whole.shape[1] and np.isfinite(inverse_norm(balanced(whole)[0])),
        "the coordinates are not proved to be independent of each other",
    )
    return np.hstack([axes[:, ~kept], axes[:, kept] @ (others / unit[:, None])])


def without(directions: np.ndarray, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of a matrix (d, e), less their projection on directions (d, m).

    Also returns the length (e,) by which rounding may have moved each of them.
    """
    known: list[np.ndarray] = []
    for vector in directions.T:
        known.append(_projected(vector / np.sqrt((vector**2).sum()), known))
        known[-1] /= np.sqrt((known[-1] ** 2).sum())
    found = _projected(matrix, known)
    before, after = (np.sqrt((each**2).sum(axis=0)) for each in (matrix, found))
    demand((after >= LEAST_SHARE * before).all(), "the coordinates lie along directions left out")
    # Each step rounds a product of d terms, a multiple and a difference.
    steps = 2 * len(known) * (len(matrix) + 3)
    return found, gamma(steps) * before


def _projected(matrix: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    """Less the projection on orthonormal vectors; twice, for rounding."""
    for unit in known * 2:
        along = unit @ matrix
        matrix = matrix - (np.outer(unit, along) if matrix.ndim == 2 else unit * along)
    return matrix


def _complement(basis: np.ndarray) -> np.ndarray:
    """Orthonormal basis of all that is orthogonal to some columns (d, e): shape (d, d - e)."""
    if basis.shape[0] <= basis.shape[1]:
        return np.zeros((basis.shape[0], 0))
    return np.asarray(np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :])


def _improved(rows: np.ndarray, basis: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Others plus multiples of the basis, such that rows differ least along them."""
    wide = rows.astype(LONG)
    seen = ((wide - wide[0]) @ basis).astype(np.float64)
    size = np.maximum(np.abs(seen).max(axis=0, initial=0), np.finfo(np.float64).tiny)
    seen /= size
    for _ in range(TRIALS):
        rest = _differences(rows, others).astype(np.float64)
        if not (np.isfinite(seen).all() and np.isfinite(rest).all()):
            break
        found = np.linalg.lstsq(seen, rest, rcond=None)[0]
        others = others - basis @ (found / size[:, None]).astype(LONG)
    return others


def _differences(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Differences of all rows from the first, along directions (d, m): shape (n, m)."""
    every = np.arange(len(rows))
    return images(rows, directions).between(every, np.zeros_like(every))


def _are_constant(rows: np.ndarray, directions: np.ndarray, largest: np.ndarray) -> bool:
    """Whether rows differ along directions (d, m) by no more than rounding."""
    moved = np.abs(_differences(rows, directions))
    if not (moved <= ROUNDINGS * UNIT * (largest @ np.abs(directions))).all():
        return False
    sizes = np.maximum(np.abs(rows), typical_sizes(rows)).astype(LONG) @ np.abs(directions)
    # Compared with a row of small values, since a large one hides the others.
    base, every = sizes.argmin(axis=0), np.arange(len(rows))
    along = images(rows, directions)
    for k, b in enumerate(base):
        moved = np.abs(along.between(every, np.full_like(every, b))[:, k])
        if not (moved <= ROW_ROUNDINGS * UNIT * (sizes[:, k] + sizes[b, k])).all():
            return False
    return True


def typical_sizes(rows: np.ndarray) -> np.ndarray:
    """Median size of the values of every column that are not zero; zero if all are."""
    sizes = np.sort(np.abs(rows), axis=0)
    zeros = (sizes == 0).sum(axis=0)
    middle = np.minimum((zeros + len(sizes)) // 2, len(sizes) - 1)
    return np.asarray(sizes[middle, np.arange(rows.shape[1])])


def has_huge_values(largest: np.ndarray, some: np.ndarray) -> bool:
    """Whether the largest value of a column (d,) is far beyond those of some rows (m, d)."""
    return bool((largest > HUGE * typical_sizes(some)).any())


def hidden(coordinates: np.ndarray, rows: np.ndarray) -> bool:
    """Whether outliers hide differences of other rows (n, d) that the coordinates leave out.

    Quick for ordinary rows: without huge values, what is left out is rounding.
    """
    differ = (rows != rows[0]).any(axis=0)
    if coordinates.shape[1] >= differ.sum():
        return False
    some = rows[:: max(len(rows) // SAMPLE, 1)][:, differ]
    if not has_huge_values(np.abs(rows[:, differ]).max(axis=0), some):
        return False
    unit = power_of_two(np.ptp(rows.astype(LONG), axis=0)[differ])
    basis = coordinates[differ] * unit[:, None]
    basis /= power_of_two(np.abs(basis).max(axis=0, initial=0))
    others = _complement(basis.astype(np.float64)).astype(LONG)
    rows = rows[:, differ]
    others = _improved(rows / unit.astype(np.float64), basis, others)
    return not _are_constant(rows, others / unit[:, None], np.abs(rows).max(axis=0).astype(LONG))
