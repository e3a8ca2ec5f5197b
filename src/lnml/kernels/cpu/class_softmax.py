"""Softmax sums that tell rows of the same class from others, for NCA.

The weights of a block of rows are those of :mod:`lnml.kernels.cpu.softmax`; the
columns of a row's own class are one range, since rows are sorted by class.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from lnml.kernels.cpu.products import centred
from lnml.kernels.cpu.softmax import (
    TILE_COLUMNS,
    Block,
    BlockWeights,
    PowersOfTwo,
    moment,
    sum_over_groups,
)
from lnml.kernels.protocol import Embedding


def class_softmax(embedding: Embedding, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.class_softmax`."""
    data = embedding.points.data
    symmetric = values is data
    values = centred(values)
    powers = PowersOfTwo(embedding)
    n = data.shape[0]
    start, row_class = embedding.points.class_start, embedding.points.row_class
    own_range = np.stack([start[row_class], start[row_class + 1]], axis=1)
    share = np.empty(n)
    row_sums = np.empty_like(values)
    lend = BlockWeights.lender(powers, values)

    def sum_group(blocks: list[Block]) -> tuple[np.ndarray, np.ndarray]:
        """W @ values of some rows; their part of the column sums of W and of W^T @ values.

        W_ij = P_ij (1 - share_i) within the class, -P_ij share_i outside.
        """
        degree = np.zeros(n)
        column_sums = np.zeros((0 if symmetric else n, values.shape[1]))
        with lend() as weights:
            for lo, hi in blocks:
                weights.fill(lo, hi)
                own = own_range[lo:hi]
                own_totals, own_product = np.zeros(hi - lo), np.zeros_like(weights.product)
                _own_sums(weights.room, n, own, values, own_totals, own_product)
                share[lo:hi] = np.minimum(own_totals / weights.totals, 1.0)
                inside = 1.0 / weights.totals
                outside = -share[lo:hi] * inside
                row_sums[lo:hi] = outside[:, None] * weights.product
                row_sums[lo:hi] += inside[:, None] * own_product
                weights.add_column_sums(outside, degree, column_sums)
                inside = inside.astype(values.dtype)
                weighted = inside[:, None] * values[lo:hi]
                _add_own_column_sums(weights.room, n, own, inside, weighted, degree, column_sums)
        return degree, column_sums

    # Rows of W sum to zero, so only its columns have a degree.
    degree, column_sums = sum_over_groups(sum_group, n)
    return share, moment(data, values, degree, row_sums, column_sums, symmetric)


@njit(nogil=True, cache=True)
def _own_sums(room, n, own_range, values, totals, product):
    """Add up the weights within each row's class, and weights times values there."""
    n_rows = totals.size
    ones = np.ones(TILE_COLUMNS, room.dtype)
    first = 0
    while first < n_rows:
        last = _same_range(own_range, first)
        begin, end = own_range[first]
        for lo in range(begin - begin % TILE_COLUMNS, end, TILE_COLUMNS):
            left, right = max(lo, begin), min(lo + TILE_COLUMNS, end)
            part = _tile_part(room, n, n_rows, first, last, lo, left, right)
            totals[first:last] += np.dot(part, ones[: right - left])
            product[first:last] += np.dot(part, values[left:right])
        first = last


@njit(nogil=True, cache=True)
def _add_own_column_sums(room, n, own_range, factors, weighted, degree, column_sums):
    """Column sums as in BlockWeights.add_column_sums, within each row's class only."""
    n_rows = factors.size
    first = 0
    while first < n_rows:
        last = _same_range(own_range, first)
        begin, end = own_range[first]
        for lo in range(begin - begin % TILE_COLUMNS, end, TILE_COLUMNS):
            left, right = max(lo, begin), min(lo + TILE_COLUMNS, end)
            part = _tile_part(room, n, n_rows, first, last, lo, left, right)
            degree[left:right] += np.dot(factors[first:last], part)
            if column_sums.shape[0] > 0:
                column_sums[left:right] += np.dot(part.T, weighted[first:last])
        first = last


@njit(nogil=True, cache=True)
def _same_range(own_range, first):
    """Return the end of the run of rows whose class is that of row ``first``."""
    last = first + 1
    while last < own_range.shape[0] and own_range[last, 0] == own_range[first, 0]:
        last += 1
    return last


@njit(nogil=True, cache=True)
def _tile_part(room, n, n_rows, first, last, lo, left, right):
    """Weights of rows first..last at columns left..right, inside the tile that starts at lo."""
    hi = min(lo + TILE_COLUMNS, n)
    tile = room[n_rows * lo : n_rows * hi].reshape(n_rows, hi - lo)
    return np.ascontiguousarray(tile[first:last, left - lo : right - lo])
