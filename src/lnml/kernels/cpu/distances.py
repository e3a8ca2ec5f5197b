"""Squared distances, rounded so that those equal in exact arithmetic compare equal."""

import numpy as np

from lnml.core.pairs import TIE_SPLIT
from lnml.kernels.cpu.compiling import helper, inlined, loop

# Reassociation lets the compiler use vector instructions; NaN and inf keep their meaning.
FAST = {"reassoc", "contract", "nsz"}

_SPLIT = TIE_SPLIT


@helper(fastmath=FAST)
def squared_distance(a, b):
    """Sum of squared differences of two vectors, without cancellation."""
    total = a[0] * a[0] * 0
    for k in range(a.shape[0]):
        difference = a[k] - b[k]
        total += difference * difference
    return total


@helper(fastmath=FAST)
def row_distance(a, i, b, j):
    """Do the same for row i of one matrix and row j of another.

    A view of a row would be counted as a reference, which takes long to compile.
    """
    total = a[i, 0] * a[i, 0] * 0
    for k in range(a.shape[1]):
        difference = a[i, k] - b[j, k]
        total += difference * difference
    return total


@inlined()
def round_tie(value):
    """Round a float64 to 37 significant bits (Veltkamp's splitting).

    Distances that are equal in exact arithmetic differ by rounding only; after
    this they compare equal, and the tie rule (lowest index) decides. See
    docs/neighborhoods.md.
    """
    scaled = _SPLIT * value
    return scaled - (scaled - value)


@loop()
def pattern_distances(coordinates, others, indptr, indices, lo, hi, out):
    """Squared distances of the pairs of rows lo..hi of a pattern; partners are among the others."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = row_distance(coordinates, i, others, np.int64(indices[e]))
