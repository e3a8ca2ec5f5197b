"""Nearest rows of the same class, where rows that are near are known from another metric.

The distance of the farthest of k known rows bounds the k-th least distance. What lies within
it is found by the filter of the impostor search, over few coordinates and each pair once.
"""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Pattern, TooManyPairs
from lnml.core.points import Embedding
from lnml.kernels.cpu.compiling import loop
from lnml.kernels.cpu.distances import round_tie, row_distance
from lnml.kernels.cpu.hinge import pair_lengths
from lnml.kernels.cpu.nearest import TIE_WIDTH, insert, nearest_in_ranges
from lnml.kernels.cpu.patterns import row_maximum
from lnml.kernels.cpu.search import same_class
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# In a smaller class one product over all coordinates takes less than making the filter.
LEAST_ROWS = 2048
# Known rows that are of no use any more have more rows than this within their distance.
MOST_PER_PARTNER = 50
_ROWS_PER_TILE = 4096

Found = tuple[np.ndarray, np.ndarray]


def nearest_of_class(embedding: Embedding, k: int, near: Pattern | None) -> Found:
    """Return distances and row numbers of :meth:`lnml.kernels.protocol.Kernels.partners`."""
    z, points = embedding.coordinates, embedding.points
    sizes, ranges = points.class_sizes, points.class_start
    enough = np.minimum(k, sizes - 1)[points.row_class]
    if near is not None and sizes.max() > LEAST_ROWS and (near.sizes >= enough).all():
        try:
            return _within_known(embedding, k, near)
        except TooManyPairs:
            pass
    return nearest_in_ranges(z, ranges, z, ranges, k, True)


def _within_known(embedding: Embedding, k: int, near: Pattern) -> Found:
    """Return the k nearest rows, none of which is farther than the known ones."""
    z, n = embedding.coordinates, embedding.points.n_rows
    # Distances that are equal after rounding must all be seen, those of zero and those that are
    # so small that their squares have no digits, too.
    reach, kind = row_maximum(pair_lengths(z, z, near), near), np.finfo(z.dtype)
    radius = np.maximum(reach * (1.0 + TIE_WIDTH), float(kind.tiny) / float(kind.eps))
    pairs = same_class(embedding, radius, MOST_PER_PARTNER * k * n)
    distances, columns = np.full((n, k), np.inf), np.full((n, k), -1, dtype=np.int64)
    run_tiles(
        lambda tile: _take_nearest(z, pairs.indptr, pairs.indices, *tile, distances, columns),
        row_tiles(n, _ROWS_PER_TILE),
    )
    return distances, columns


@loop()
def _take_nearest(z, indptr, indices, lo, hi, distances, columns):
    """Fill rows lo..hi of the result from lists of rows that hold the nearest."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            exact = round_tie(np.float64(row_distance(z, i, z, indices[e])))
            insert(distances, columns, i, exact, indices[e])
