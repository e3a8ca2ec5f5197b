"""Squared distances, rounded so that those equal in exact arithmetic compare equal."""

from lnml.core.pairs import TIE_SPLIT
from lnml.kernels.cpu.compiled import FAST, compiled, inner

_SPLIT = TIE_SPLIT


@inner(fastmath=FAST)
def squared_distance(a, i, b, j):
    """Sum of squared differences of row i of a and row j of b, without cancellation."""
    total = a[i, 0] * a[i, 0] * 0
    for k in range(a.shape[1]):
        difference = a[i, k] - b[j, k]
        total += difference * difference
    return total


@inner()
def round_tie(value):
    """Round a float64 to 37 significant bits (Veltkamp's splitting).

    Distances that are equal in exact arithmetic differ by rounding only; after
    this they compare equal, and the tie rule (lowest index) decides. See
    docs/neighborhoods.md.
    """
    scaled = _SPLIT * value
    return scaled - (scaled - value)


@compiled(allocates=False)
def pattern_distances(coordinates, others, indptr, indices, lo, hi, out):
    """Squared distances of the pairs of rows lo..hi of a pattern; partners are among the others."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = squared_distance(coordinates, i, others, indices[e])
