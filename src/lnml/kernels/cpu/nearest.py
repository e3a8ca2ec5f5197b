"""Exact k nearest neighbours.

A matrix product bounds all distances; those that may be among the nearest are
computed from differences.
"""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.compiled import FAST, compiled, inner
from lnml.kernels.cpu.distances import round_tie, squared_distance
from lnml.kernels.cpu.threads import run_tiles, tile_budget
from lnml.kernels.tiles import row_tiles

# More than the relative distance of two numbers that round_tie makes equal.
_TIE_WIDTH = 2.0**-35
# Pairs that are looked at together.
SEGMENT = 128


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
    centre = references.mean(axis=0, dtype=np.float64).astype(references.dtype)
    # |computed - exact| <= slack * (|a|^2 + |b|^2): inner product, norms and centring.
    slack = (4.0 * queries.shape[1] + 16.0) * float(np.finfo(references.dtype).eps)
    tiles = []
    for c in range(len(query_start) - 1):
        low, high = reference_start[c], reference_start[c + 1]
        rows = tile_budget() // (max(high - low, 1) * references.itemsize)
        rows = min(max(rows, 16), 512)
        for lo, hi in row_tiles(query_start[c + 1] - query_start[c], rows):
            tiles.append((query_start[c] + lo, query_start[c] + hi, low, high))

    def search(tile: tuple[int, int, int, int]) -> None:
        lo, hi, low, high = tile
        if low == high:
            return
        mine, others = queries[lo:hi] - centre, references[low:high] - centre
        products = mine @ others.T
        norms = (np.einsum("ij,ij->i", a, a, dtype=np.float64) for a in (mine, others))
        _select(
            products, *norms, queries, references, lo, low, exclude_self, slack, np.empty(k),
            distances, indices,
        )  # fmt: skip

    run_tiles(search, tiles)
    return distances, indices


@compiled(allocates=False)
def _select(
    products, own_norms, norms, queries, references, lo, low, exclude_self, slack, upper,
    distances, indices,
):  # fmt: skip
    """Fill rows lo.. of the result from a tile of centred inner products.

    Most segments of a row hold no pair that counts; those are left out at once. ``upper``
    is scratch memory for a number of every neighbour.
    """
    n_queries, n_references = products.shape
    last = upper.shape[0] - 1
    for a in range(n_queries):
        i, norm = lo + a, own_norms[a]
        itself = i - low if exclude_self else -1
        for p in range(last + 1):
            upper[p] = np.inf
        for start in range(0, n_references, SEGMENT):
            end = start + SEGMENT
            if end > n_references:
                end = n_references
            if not _any_below(products, a, norms, start, end, norm, slack, upper[last]):
                continue
            for j in range(start, end):
                bound = (norm + norms[j]) * (1.0 + slack) - 2.0 * products[a, j]
                if j != itself and bound < upper[last]:
                    p = last
                    while p > 0 and upper[p - 1] > bound:
                        upper[p] = upper[p - 1]
                        p -= 1
                    upper[p] = bound
        # Distances that are equal after rounding must all be seen.
        limit = upper[last] * (1.0 + _TIE_WIDTH)
        for start in range(0, n_references, SEGMENT):
            end = start + SEGMENT
            if end > n_references:
                end = n_references
            if not _any_below(products, a, norms, start, end, norm, -slack, limit):
                continue
            for j in range(start, end):
                if j == itself or (norm + norms[j]) * (1.0 - slack) - 2.0 * products[a, j] > limit:
                    continue
                exact = round_tie(np.float64(squared_distance(queries, i, references, low + j)))
                if exact < distances[i, last]:
                    # Indices arrive in rising order, so ties keep it.
                    p = last
                    while p > 0 and distances[i, p - 1] > exact:
                        distances[i, p] = distances[i, p - 1]
                        indices[i, p] = indices[i, p - 1]
                        p -= 1
                    distances[i, p] = exact
                    indices[i, p] = low + j


@inner(fastmath=FAST)
def _any_below(products, a, norms, start, end, norm, slack, limit):
    """Whether a bound of a segment is not above a limit; NaN is not.

    No branch, and unsigned positions, which cannot count from the end: the compiler turns this
    into vector code.
    """
    below = 0.0
    first = np.uintp(start)
    for j in range(np.uintp(end - start)):
        bound = (norm + norms[first + j]) * (1.0 + slack) - 2.0 * products[a, first + j]
        below += 0.0 if bound > limit else 1.0
    return below > 0.0
