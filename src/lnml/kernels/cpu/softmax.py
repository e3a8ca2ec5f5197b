"""Softmax sums over all pairs of rows, a block of rows at a time: no n x n array.

NumPy computes the blocks (matrix products and a vectorised exponential) and
releases the GIL while it does.
"""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.threads import row_tiles, run_tiles
from lnml.kernels.protocol import Embedding

# Entries of one block: small enough for the second-level cache.
BLOCK_ENTRIES = 2**17
MOST_ROWS = 512
# Blocks are summed in this many groups whatever the number of threads, so that
# the result does not depend on it.
GROUPS = 4


def log_normalizers(embedding: Embedding) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.log_normalizers`."""
    z, norms = _centred(embedding)

    def reduce_rows(block: tuple[int, int]) -> np.ndarray:
        weights, nearest = _unnormalized(z, norms, *block)
        return np.log(weights.sum(axis=1, dtype=np.float64)) - nearest

    return np.concatenate(run_tiles(reduce_rows, _blocks(z.shape[0])))


def softmax(
    embedding: Embedding, row_weights: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax`."""
    z, norms = _centred(embedding)
    n = z.shape[0]
    log_z = np.empty(n)
    row_sum = np.zeros((n, values.shape[1]))

    def sum_group(blocks: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        """Column sums of P and P^T @ values over some blocks of rows."""
        degree = np.zeros(n)
        column_sum = np.zeros((n, values.shape[1]))
        for lo, hi in blocks:
            weights, nearest = _unnormalized(z, norms, lo, hi)
            total = weights.sum(axis=1, dtype=np.float64)
            log_z[lo:hi] = np.log(total) - nearest
            weights *= (row_weights[lo:hi] / total).astype(weights.dtype)[:, None]
            row_sum[lo:hi] = weights @ values
            column_sum += weights.T @ values[lo:hi]
            degree += weights.sum(axis=0, dtype=np.float64)
        return degree, column_sum

    blocks = _blocks(n)
    groups = [blocks[g::GROUPS] for g in range(min(GROUPS, len(blocks)))]
    degree = row_weights.astype(np.float64)
    for group_degree, column_sum in run_tiles(sum_group, groups):
        degree = degree + group_degree
        row_sum += column_sum
    return log_z, (degree[:, None] * values - row_sum).astype(values.dtype, copy=False)


def _blocks(n_rows: int) -> list[tuple[int, int]]:
    return row_tiles(n_rows, min(max(BLOCK_ENTRIES // n_rows, 16), MOST_ROWS))


def _centred(embedding: Embedding) -> tuple[np.ndarray, np.ndarray]:
    z = embedding.coordinates
    z = z - z.mean(axis=0, dtype=np.float64).astype(z.dtype)
    return z, np.einsum("ij,ij->i", z, z)


def _unnormalized(
    z: np.ndarray, norms: np.ndarray, lo: int, hi: int
) -> tuple[np.ndarray, np.ndarray]:
    """exp(nearest_i - D_ij) of rows lo..hi against all, 0 at j = i, and nearest_i."""
    distances = (-2.0 * z[lo:hi]) @ z.T
    distances += norms
    distances += norms[lo:hi, None]
    np.maximum(distances, 0.0, out=distances)
    distances[np.arange(hi - lo), np.arange(lo, hi)] = np.inf
    nearest = distances.min(axis=1)
    np.subtract(nearest[:, None], distances, out=distances)
    return np.exp(distances, out=distances), nearest
