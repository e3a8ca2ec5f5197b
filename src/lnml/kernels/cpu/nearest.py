"""Exact k nearest neighbours.

A matrix product bounds all distances; those that may be among the nearest are
computed from differences.
"""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.compiling import inlined, loop
from lnml.kernels.cpu.distances import round_tie, row_distance
from lnml.kernels.cpu.threads import run_tiles, tile_budget
from lnml.kernels.tiles import row_tiles

# More than the relative distance of two numbers that round_tie makes equal.
TIE_WIDTH = 2.0**-35
# References that are looked at together: most of such groups have none that is near.
_SEGMENT = 64
# Room for sums that are rounded in another order.
_ORDER = 2.0**-48


def tile_rows(n_references: int, itemsize: int) -> int:
    """Return how many queries are multiplied with so many references at a time, if there are."""
    rows = tile_budget() // (max(n_references, 1) * itemsize)
    return min(max(rows, 16), 512)


def nearest_in_ranges(
    queries: np.ndarray,
    query_start: np.ndarray,
    references: np.ndarray,
    reference_start: np.ndarray,
    k: int,
    exclude_self: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest rows of references for queries, range by range.

    Queries of range c look at references of range c only. Returns squared
    distances and indices, both (m, k), sorted by distance, then index.
    """
    m = queries.shape[0]
    distances = np.full((m, k), np.inf)
    indices = np.full((m, k), -1, dtype=np.int64)
    # |computed - exact| <= slack * (|a|^2 + |b|^2): inner product, norms and centring.
    slack = (4.0 * queries.shape[1] + 16.0) * float(np.finfo(queries.dtype).eps)
    centre = references.mean(axis=0, dtype=np.float64).astype(references.dtype)
    tiles = []
    for c in range(len(query_start) - 1):
        low, high = reference_start[c], reference_start[c + 1]
        rows = tile_rows(high - low, references.itemsize)
        for lo, hi in row_tiles(query_start[c + 1] - query_start[c], rows):
            tiles.append((query_start[c] + lo, query_start[c] + hi, low, high))

    def search(tile: tuple[int, int, int, int]) -> None:
        lo, hi, low, high = tile
        if low == high:
            return
        mine, others = queries[lo:hi] - centre, references[low:high] - centre
        _select(
            mine @ others.T, _squares(mine), _squares(others), queries, references, lo, low,
            exclude_self, slack, np.empty(k), distances, indices,
        )  # fmt: skip

    run_tiles(search, tiles)
    return distances, indices


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows).astype(np.float64)


@loop()
def _select(
    products, own_norms, norms, queries, references, lo, low, exclude_self, slack, upper,
    distances, indices,
):  # fmt: skip
    """Fill rows lo.. of the result from a tile of centred inner products."""
    n_queries, n_references = products.shape
    k = upper.shape[0]
    for a in range(n_queries):
        i = lo + a
        norm = own_norms[a]
        for p in range(k):
            upper[p] = np.inf
        # First for a bound of the k-th distance, then for all rows that may be within it.
        for scan in range(2):
            share = 1.0 + slack if scan == 0 else 1.0 - slack - _ORDER
            for first in range(0, n_references, _SEGMENT):
                end = min(first + _SEGMENT, n_references)
                # Distances that are equal after rounding must all be seen.
                limit = upper[k - 1] * (1.0 if scan == 0 else 1.0 + TIE_WIDTH)
                if not _any_below(products, a, norms, first, end, share, limit - norm * share):
                    continue
                for j in range(first, end):
                    if exclude_self and low + j == i:
                        continue
                    if scan == 1:
                        if not (norm + norms[j]) * (1.0 - slack) - 2.0 * products[a, j] > limit:
                            exact = np.float64(row_distance(queries, i, references, low + j))
                            insert(distances, indices, i, round_tie(exact), low + j)
                        continue
                    bound = (norm + norms[j]) * share - 2.0 * products[a, j]
                    if bound < upper[k - 1]:
                        p = k - 1
                        while p > 0 and upper[p - 1] > bound:
                            upper[p] = upper[p - 1]
                            p -= 1
                        upper[p] = bound


@inlined()
def _any_below(products, row, norms, first, end, share, limit):
    """Whether some of share * norm - 2 * product are not above a limit.

    No branch, and no sign of indices: the compiler turns this into vector code.
    """
    found = False
    for j in range(np.uint64(first), np.uint64(end)):
        found |= not share * norms[j] - 2.0 * products[row, j] > limit
    return found


@inlined()
def insert(distances, indices, row, value, index):
    """Insert into a sorted row; indices arrive in rising order, so ties keep it."""
    p = distances.shape[1] - 1
    if value < distances[row, p]:
        while p > 0 and distances[row, p - 1] > value:
            distances[row, p] = distances[row, p - 1]
            indices[row, p] = indices[row, p - 1]
            p -= 1
        distances[row, p] = value
        indices[row, p] = index
