"""Lookups over the pairs of patterns."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Multipliers, Pattern


def row_maximum(values: np.ndarray, pairs: Pattern) -> np.ndarray:
    """Largest value of each row of a pattern; -inf for rows without pairs."""
    out = np.full(pairs.indptr.size - 1, -np.inf)
    filled = pairs.sizes > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, pairs.indptr[:-1][filled])
    return out


def carry_over(old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
    """See :meth:`lnml.kernels.protocol.Kernels.carry_over`."""
    n = targets.indptr.size - 1
    row = np.repeat(np.arange(n), np.diff(old.indptr))
    # Rows may be a part of the data, whose partners have larger numbers.
    width = 1 + max(int(each.indices.max(initial=0)) for each in (old_targets, targets))
    pair = row * width + old_targets.indices[old_targets.indptr[row] + old.slot]
    new_row = np.repeat(np.arange(n), targets.sizes)
    new_pairs = new_row * width + targets.indices
    place = np.searchsorted(new_pairs, pair)
    kept = place < new_pairs.size
    kept[kept] = new_pairs[place[kept]] == pair[kept]
    slot = (place - targets.indptr[row])[kept].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=n))])
    return Multipliers(indptr, old.impostor[kept], slot, old.value[kept])
