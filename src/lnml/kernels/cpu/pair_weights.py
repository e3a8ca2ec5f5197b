"""Compiled sums over the weights exp(-D_ij) of all pairs of rows, a tile at a time.

The weights are symmetric, so each pair i < j is visited once and added to the sums
of both its rows. Distances are in units of log 2, so that weights are powers of two.
All weights are multiplied by 2**SHIFT, so that those of long distances do not underflow.

Arguments of both functions:

rows : tuple of arrays
    ``z`` (n, r), coordinates; ``columns`` (n * r,), twice the same, transposed within each
    block, one block after the other (so BLAS is fastest); ``norms`` (n,), squared
    lengths; ``own_first``, ``own_end`` (n,), the range of each row's class among the columns.
window : tuple (row_end, column_first)
    Rows before the one are paired with those from the other on, i < j. Blocks of columns begin
    there. (n, 0) stands for all pairs.
constants : PowerConstants
    Those of the type of z.
group : int
    Which pairs to sum: those of the rows in block group, group + GROUPS ..
"""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.compiling import helper, loop
from lnml.kernels.cpu.exponential import EXACT_ORDER, shifted_power
from lnml.kernels.cpu.threads import thread_count

# Rows and columns of a tile: 288 KiB in float64, found by measurement (docs/performance.md).
BLOCK = 192
# Blocks of rows are summed in this many groups whatever the number of threads, so that
# the result does not depend on it; no more threads than this can help.
GROUPS = 32


def scratch_bytes(n_rows: int) -> int:
    """Bytes that the tiles of all threads and the sums of all groups take."""
    groups = min(GROUPS, -(-n_rows // BLOCK))
    # Few rows fill neither a tile nor all groups.
    return 8 * (min(thread_count(), groups) * min(n_rows, BLOCK) ** 2 + 2 * groups * n_rows)


@loop()
def add_totals(rows, window, constants, group, totals):
    """Add the weight of each pair to the totals of both its rows.

    ``totals``, shape (1 or 2, n), are over partners of other classes (first) and of
    the row's class (last).
    """
    z, columns, norms, own_first, own_end = rows
    row_end, column_first = window
    n = norms.size
    room = np.empty(BLOCK * BLOCK, z.dtype)
    ones = np.ones(BLOCK, z.dtype)
    for first in range(group * BLOCK, row_end, GROUPS * BLOCK):
        last = min(first + BLOCK, row_end)
        for lo in range(max(first, column_first), n, BLOCK):
            hi = min(lo + BLOCK, n)
            tile = _inner_products(z, columns, first, last, lo, hi, room)
            column_sums = np.zeros((totals.shape[0], hi - lo), z.dtype)
            for begin, end, left, right, kind in _pieces(own_first, own_end, first, last, lo, hi):
                part = tile[begin - first : end - first]
                span = slice(left - lo, right - lo)
                _weigh(
                    part,
                    span,
                    norms[begin:end],
                    norms[left:right],
                    constants,
                    column_sums[kind, span],
                )
                if right - left < hi - lo:
                    part = np.ascontiguousarray(part[:, span])
                # By BLAS: a compiled sum adds in an order that depends on how it was inlined,
                # and so on whether this function came from the compile cache.
                _add(totals[kind, begin:end], np.dot(part, ones[: right - left]))
            for kind in range(totals.shape[0]):
                _add(totals[kind, lo:hi], column_sums[kind])


@loop()
def add_products(rows, window, constants, group, factors, values, degree, product, mirrored):
    """Add sums with the symmetric S_ij = (factor_i + factor_j) times the weight of the pair.

    ``factors``, shape (1 or 2, n), are for partners of other classes (first) and of the
    row's class (last). ``degree`` takes the row sums of S, ``product`` what the pairs i < j
    add to S @ values, ``mirrored`` what the others add, unless it has no rows.
    """
    z, columns, norms, own_first, own_end = rows
    row_end, column_first = window
    n = norms.size
    room = np.empty(BLOCK * BLOCK, z.dtype)
    ones = np.ones(BLOCK, z.dtype)
    buffer = np.empty((BLOCK, values.shape[1]), z.dtype)
    for first in range(group * BLOCK, row_end, GROUPS * BLOCK):
        last = min(first + BLOCK, row_end)
        for lo in range(max(first, column_first), n, BLOCK):
            hi = min(lo + BLOCK, n)
            tile = _inner_products(z, columns, first, last, lo, hi, room)
            column_sums = np.zeros(hi - lo, z.dtype)
            for begin, end, left, right, kind in _pieces(own_first, own_end, first, last, lo, hi):
                span = slice(left - lo, right - lo)
                _mix(
                    tile[begin - first : end - first],
                    span,
                    norms[begin:end],
                    norms[left:right],
                    constants,
                    factors[kind, begin:end],
                    factors[kind, left:right],
                    column_sums[span],
                )
            _add(degree[lo:hi], column_sums)
            _add(degree[first:last], np.dot(tile, ones[: hi - lo]))
            part = buffer[: last - first]
            np.dot(tile, values[lo:hi], part)
            _add_rows(product[first:last], part)
            if mirrored.shape[0] > 0:
                part = buffer[: hi - lo]
                np.dot(tile.T, values[first:last], part)
                _add_rows(mirrored[lo:hi], part)


# Loops: sums of whole arrays take seconds to compile, once for each type.
@helper()
def _add(total, values):
    """Add values (m,) to a total."""
    for i in range(values.size):
        total[i] += values[i]


@helper()
def _add_rows(total, values):
    """Add values (m, r) to a total."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            total[i, j] += values[i, j]


@helper()
def _inner_products(z, columns, first, last, lo, hi, room):
    """Twice the inner products of rows first..last and lo..hi; minus infinity unless i < j."""
    r = z.shape[1]
    tile = room[: (last - first) * (hi - lo)].reshape(last - first, hi - lo)
    np.dot(z[first:last], columns[r * lo : r * hi].reshape(r, hi - lo), tile)
    if lo == first:
        for i in range(last - first):
            for j in range(i + 1):
                tile[i, j] = -np.inf
    return tile


@helper()
def _pieces(own_first, own_end, first, last, lo, hi):
    """Cut a tile into pieces whose pairs are of one class (kind -1) or of two (kind 0).

    Rows are sorted by class, so those of a class have the same columns of their class.
    """
    pieces = np.empty((3 * (last - first), 5), np.int64)
    count = 0
    begin = first
    while begin < last:
        end = begin + 1
        while end < last and own_end[end] == own_end[begin]:
            end += 1
        cut = min(max(own_first[begin], lo), hi)
        second = max(min(own_end[begin], hi), cut)
        for left, right, kind in ((lo, cut, 0), (cut, second, -1), (second, hi, 0)):
            if left < right:
                pieces[count, 0], pieces[count, 1] = begin, end
                pieces[count, 2], pieces[count, 3], pieces[count, 4] = left, right, kind
                count += 1
        begin = end
    return pieces[:count]


@helper(fastmath=EXACT_ORDER)
def _weigh(tile, span, row_norms, column_norms, constants, column_sums):
    """Turn the inner products of some columns into weights; add them to ``column_sums``."""
    for i in range(row_norms.size):
        row, norm = tile[i, span], row_norms[i]
        for j in range(row.size):
            exponent = row[j] - norm - column_norms[j]
            row[j] = shifted_power(exponent, constants)
            column_sums[j] += row[j]


@helper(fastmath=EXACT_ORDER)
def _mix(tile, span, row_norms, column_norms, constants, row_factors, column_factors, column_sums):
    """Turn the inner products of some columns into S_ij; add them to ``column_sums``."""
    for i in range(row_norms.size):
        row, norm, factor = tile[i, span], row_norms[i], row_factors[i]
        for j in range(row.size):
            exponent = row[j] - norm - column_norms[j]
            weight = shifted_power(exponent, constants)
            row[j] = weight * (factor + column_factors[j])
            column_sums[j] += row[j]
