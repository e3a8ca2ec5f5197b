"""Sums over all triplets at a metric, from differences of the rows, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lnml.proofs.all_pairs import Rows
from lnml.proofs.differences import Moment, entrywise, moment, no_moment, squared_lengths
from lnml.proofs.objective import Value
from lnml.proofs.rounding import UNIT, gamma


class Triplets(NamedTuple):
    """The rows of a problem, and their target pairs.

    ``start`` (n + 1) says where the pairs (i, j) of each row begin.
    """

    rows: Rows
    start: np.ndarray
    i: np.ndarray
    j: np.ndarray


class Block(NamedTuple):
    """Margins of the triplets of some rows.

    Attributes
    ----------
    pairs : slice
        The target pairs of these rows.
    margins, errors : ndarrays of shape (p, n)
        1 + D_ij - D_il for each of these pairs and each row l, minus infinity where l has the
        class of i; and how far rounding may have moved it.
    """

    pairs: slice
    margins: np.ndarray
    errors: np.ndarray


def margin_blocks(triplets: Triplets, components: np.ndarray) -> Iterator[Block]:
    """Yield the margins of all triplets under components (r, d)."""
    rows, start, i, j = triplets
    codes = rows.codes
    for some, partners in rows.blocks():
        pairs = slice(int(start[some[0]]), int(start[some[-1] + 1]))
        if pairs.start == pairs.stop:
            continue
        first = np.repeat(some, partners.shape[1])
        lengths, errors = squared_lengths(rows.data, first, partners.ravel(), components)
        lengths, errors = lengths.reshape(partners.shape), errors.reshape(partners.shape)
        at, near = i[pairs] - some[0], j[pairs]
        margins = 1.0 + lengths[at, near][:, None] - lengths[at]
        moved = errors[at, near][:, None] + errors[at] + gamma(2) * np.abs(margins)
        margins[codes[i[pairs]][:, None] == codes] = -np.inf
        yield Block(pairs, margins, moved)


def hinge_total(triplets: Triplets, components: np.ndarray) -> Value:
    """Sum of the hinges of all triplets."""
    total = Value(0.0, 0.0)
    for block in margin_blocks(triplets, components):
        value = float(np.maximum(block.margins, 0.0).sum())
        moved = 1.01 * float(block.errors[block.margins > -block.errors].sum())
        total = total.plus(Value(value, moved + gamma(block.margins.size) * value))
    return total


class Implied(NamedTuple):
    """What slopes min(max(h / smoothing, 0), 1) at a metric prove.

    Attributes
    ----------
    total : float
        Their sum, rounded down.
    push : Moment
        Sum of slope * (z_ij z_ij^T - z_il z_il^T).
    """

    total: float
    push: Moment


def implied_sums(
    triplets: Triplets, components: np.ndarray, smoothing: float, coordinates: np.ndarray
) -> Implied:
    """Sum up slopes at components (r, d), in coordinates W (d, e).

    A check computes the slopes again. It finds others by no more than the rounding of both, and
    only where a margin is between 0 and the smoothing, or so near that rounding may move it there
    (docs/certificates.md). That is taken off the total, and added to the error.
    """
    rows, start, i, j = triplets
    push, room = no_moment(coordinates), no_moment(coordinates)
    own, own_room = np.zeros((2, i.size))
    summed = int(np.diff(start).max(initial=1))
    for pairs, margins, errors in margin_blocks(triplets, components):
        slopes = np.clip(margins / smoothing, 0.0, 1.0)
        may_move = (margins > -errors) & (margins < smoothing + errors)
        moved = np.where(may_move, np.minimum(2.02 * errors / smoothing + 4.0 * UNIT, 1.0), 0.0)
        own[pairs], own_room[pairs] = slopes.sum(axis=1), moved.sum(axis=1)
        filled, firsts = np.unique(i[pairs], return_index=True)
        for weights, sign in ((slopes, -1.0), (moved, 1.0)):
            far = np.add.reduceat(weights, firsts, axis=0)
            at, impostor = np.nonzero(far)
            of_pairs = rows.data, filled[at], impostor, sign * far[at, impostor]
            found = moment(*of_pairs, coordinates, summed)
            push, room = (push.plus(found), room) if sign < 0.0 else (push, room.plus(found))
    n = len(rows.data)
    push = push.plus(moment(rows.data, i, j, own, coordinates, n))
    room = room.plus(moment(rows.data, i, j, own_room, coordinates, n))
    total = float(own.sum()) * (1.0 - gamma(own.size + n + 4)) - 1.01 * float(own_room.sum())
    # The slopes of the check make a matrix that differs by one between -R and R, R the sum over
    # what they may move by; R lies below the diagonal of its squares.
    error = push.error + 1.01 * entrywise(1.0, room.squares)
    return Implied(max(total, 0.0), push._replace(error=error))
