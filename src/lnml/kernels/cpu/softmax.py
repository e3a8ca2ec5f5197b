"""Softmax sums over all pairs of rows, a block of rows at a time: no n x n array.

Weights of a block against all columns are made in tiles that stay in the
second-level cache from the product behind the distances to the product with the
values. Distances are kept in units of log 2, so that the exponential is a power
of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from numba import njit

from lnml.kernels.cpu.exponential import exp2_in_place
from lnml.kernels.cpu.products import centred, gram
from lnml.kernels.cpu.threads import row_tiles, run_tiles
from lnml.kernels.protocol import Embedding

# A tile of this shape takes 420 KiB in float64; found by measurement (docs/performance.md).
TILE_ROWS, TILE_COLUMNS = 80, 672
# Most entries in the weights of one block: fewer rows where there are many columns.
BLOCK_ENTRIES = 2**20
# Blocks are summed in this many groups whatever the number of threads, so that
# the result does not depend on it; no more threads than this can help.
GROUPS = 32
# Weights of a row lie between 2**-limit and 2**limit of that of a near row.
EXPONENT_LIMIT = {"float64": 1000.0, "float32": 120.0}
# Rows on either side of a row that are tried as the near row: of its class, mostly.
NEAR_ROWS = 3

Block = tuple[int, int]


class PowersOfTwo:
    """Rows in coordinates where exp(-D_ij) is 2 to the power of minus the squared distance.

    Attributes
    ----------
    z : array of shape (n, r)
        Centred coordinates.
    norms : array of shape (n,)
        Their squared lengths.
    near : array of shape (n,)
        Squared distance to the closest of the next and previous few rows.
    """

    def __init__(self, embedding: Embedding) -> None:
        z = centred(embedding.coordinates)
        z *= z.dtype.type(np.sqrt(1.0 / np.log(2.0)))
        self.z = z
        self.norms = np.einsum("ij,ij->i", z, z)
        self.near = np.full_like(self.norms, np.inf)
        for offset in range(1, min(NEAR_ROWS, len(z) - 1) + 1):
            step = z[offset:] - z[:-offset]
            distances = np.einsum("ij,ij->i", step, step)
            for side in (self.near[offset:], self.near[:-offset]):
                np.minimum(side, distances, out=side)

    def nearest(self, rows: np.ndarray) -> np.ndarray:
        """Squared distance of some rows to the nearest of all."""
        nearest = np.full(rows.size, np.inf, dtype=self.z.dtype)
        for lo, hi in row_tiles(len(self.z), TILE_COLUMNS):
            distances = self.norms[rows, None] + self.norms[lo:hi]
            distances -= 2.0 * self.z[rows] @ self.z[lo:hi].T
            own = (lo <= rows) & (rows < hi)
            distances[own, rows[own] - lo] = np.inf
            np.minimum(nearest, distances.min(axis=1), out=nearest)
        return np.maximum(nearest, 0.0)


class BlockWeights:
    """Unnormalised softmax weights of one block of rows after the other.

    Each row has a scale of its own: the weight of a row near to it is one.

    Attributes
    ----------
    totals : ndarray of shape (rows,)
        Sums of the weights.
    log_z : ndarray of shape (rows,)
        Logs of the normalisers, the sums of exp(-D_ij).
    product : ndarray of shape (rows, m)
        Weights times values.
    """

    def __init__(self, powers: PowersOfTwo, values: np.ndarray) -> None:
        self.powers, self.values = powers, values
        n, dtype = len(powers.z), powers.z.dtype
        limit = EXPONENT_LIMIT[dtype.name]
        self.limit = dtype.type(limit)
        self.largest_total = 2.0 ** (limit / 2)
        self.room = np.empty(block_rows(n) * n, dtype)

    @classmethod
    def lender(
        cls, powers: PowersOfTwo, values: np.ndarray
    ) -> Callable[[], AbstractContextManager[BlockWeights]]:
        """Return a function that lends objects to threads: fresh memory costs page faults."""
        idle: list[BlockWeights] = []

        @contextmanager
        def lend() -> Iterator[BlockWeights]:
            # Removing from a list and appending to it are atomic.
            try:
                lent = idle.pop()
            except IndexError:
                lent = cls(powers, values)
            yield lent
            idle.append(lent)

        return lend

    def fill(self, lo: int, hi: int) -> None:
        """Compute the weights of rows lo..hi."""
        self.rows = np.arange(lo, hi)
        self._fill(self.powers.near[lo:hi])
        # A near row may be so far beyond the nearest that this overflows; NaN counts, too.
        if not (self.totals < self.largest_total).all():
            self._fill(self.powers.nearest(self.rows))

    def add_column_sums(
        self, factors: np.ndarray, degree: np.ndarray, column_sums: np.ndarray
    ) -> None:
        """Add factors @ weights to ``degree``, weights.T @ (factors * values) to the other.

        ``column_sums`` without rows asks for the first alone.
        """
        factors = factors.astype(self.values.dtype)
        weighted = factors[:, None] * self.values[self.rows]
        _add_column_sums(self.room, factors, weighted, degree, column_sums)

    def _fill(self, scale: np.ndarray) -> None:
        self.totals = np.zeros(scale.size)
        self.product = np.zeros((scale.size, self.values.shape[1]))
        _fill_tiles(
            self.powers.z,
            self.powers.norms,
            self.values,
            self.rows[0],
            scale,
            self.limit,
            self.room,
            self.totals,
            self.product,
        )
        self.log_z = np.log(self.totals) - np.log(2.0) * scale.astype(np.float64)


@njit(nogil=True, cache=True)
def _fill_tiles(z, norms, values, first, scale, limit, room, totals, product):
    """Weights of the rows from ``first``, their sums and their product with the values."""
    n_rows, n = scale.size, norms.size
    rows = 2 * z[first : first + n_rows]
    part = np.empty((n_rows, values.shape[1]), values.dtype)
    ones = np.ones(TILE_COLUMNS, z.dtype)
    for lo in range(0, n, TILE_COLUMNS):
        hi = min(lo + TILE_COLUMNS, n)
        tile = room[n_rows * lo : n_rows * hi].reshape(n_rows, hi - lo)
        np.dot(rows, z[lo:hi].T, tile)
        for i in range(n_rows):
            own = first + i - lo
            if 0 <= own < hi - lo:
                tile[i, own] = -np.inf
            # The upper limit keeps rounding from making a squared distance negative.
            exp2_in_place(
                tile[i],
                scale[i] - norms[first + i],
                norms[lo:hi],
                min(scale[i], limit),
                -limit,
            )
            if 0 <= own < hi - lo:
                tile[i, own] = 0
        # By BLAS: a compiled sum adds in an order that depends on how it was inlined, and
        # so on whether this function came from the compile cache.
        totals += np.dot(tile, ones[: hi - lo])
        if values.shape[1] > 0:
            np.dot(tile, values[lo:hi], part)
            product += part


@njit(nogil=True, cache=True)
def _add_column_sums(room, factors, weighted, degree, column_sums):
    """See :meth:`BlockWeights.add_column_sums`."""
    n_rows, n = factors.size, degree.size
    for lo in range(0, n, TILE_COLUMNS):
        hi = min(lo + TILE_COLUMNS, n)
        tile = room[n_rows * lo : n_rows * hi].reshape(n_rows, hi - lo)
        degree[lo:hi] += np.dot(factors, tile)
        if column_sums.shape[0] > 0:
            column_sums[lo:hi] += np.dot(tile.T, weighted)


def log_normalizers(embedding: Embedding) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.log_normalizers`."""
    powers = PowersOfTwo(embedding)
    result = np.empty(len(powers.z))

    lend = BlockWeights.lender(powers, powers.z[:, :0])

    def of_group(blocks: list[Block]) -> None:
        with lend() as weights:
            for lo, hi in blocks:
                weights.fill(lo, hi)
                result[lo:hi] = weights.log_z

    run_tiles(of_group, row_groups(result.size))
    return result


def softmax(
    embedding: Embedding, row_weights: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax`."""
    data = embedding.points.data
    symmetric = values is data
    values = centred(values)
    powers = PowersOfTwo(embedding)
    n = data.shape[0]
    log_z = np.empty(n)
    row_sums = np.empty_like(values)
    lend = BlockWeights.lender(powers, values)

    def sum_group(blocks: list[Block]) -> tuple[np.ndarray, np.ndarray]:
        """P @ values of some rows; their part of the column sums of P and of P^T @ values."""
        degree = np.zeros(n)
        column_sums = np.zeros((0 if symmetric else n, values.shape[1]))
        with lend() as weights:
            for lo, hi in blocks:
                weights.fill(lo, hi)
                log_z[lo:hi] = weights.log_z
                factors = row_weights[lo:hi] / weights.totals
                row_sums[lo:hi] = factors[:, None] * weights.product
                weights.add_column_sums(factors, degree, column_sums)
        return degree, column_sums

    degree, column_sums = sum_over_groups(sum_group, n)
    return log_z, moment(data, values, row_weights + degree, row_sums, column_sums, symmetric)


def sum_over_groups(
    sum_group: Callable[[list[Block]], tuple[np.ndarray, np.ndarray]], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add up the column degrees and column sums of all groups, in the order of the groups."""
    degree, column_sums = np.zeros(n_rows), np.zeros((1, 1))
    for group_degree, group_sums in run_tiles(sum_group, row_groups(n_rows)):
        degree = degree + group_degree
        column_sums = column_sums + group_sums
    return degree, column_sums


def moment(
    data: np.ndarray,
    values: np.ndarray,
    degree: np.ndarray,
    row_sums: np.ndarray,
    column_sums: np.ndarray,
    symmetric: bool,
) -> np.ndarray:
    """values^T Lap(W + W^T) data, from W's degrees, W @ values and W^T @ values.

    ``symmetric`` says that the values are the data, centred: then W @ values is enough.
    """
    if symmetric:
        half = gram(0.5 * degree[:, None] * values - row_sums, values)
        return half + half.T
    return gram(degree[:, None] * values - row_sums - column_sums, centred(data))


def block_rows(n_rows: int) -> int:
    """Rows of one block of weights."""
    return min(TILE_ROWS, max(BLOCK_ENTRIES // n_rows, 16))


def row_groups(n_rows: int) -> list[list[Block]]:
    """Blocks of rows, dealt out to the groups that are summed apart."""
    blocks = row_tiles(n_rows, block_rows(n_rows))
    return [blocks[g::GROUPS] for g in range(min(GROUPS, len(blocks)))]
