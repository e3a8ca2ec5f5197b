"""Counts, samples and lookups over the pairs of patterns."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Multipliers, Pattern, RowSample
from lnml.core.points import Points


def sample_rows(
    values: np.ndarray, pairs: Pattern, count: int, rng: np.random.Generator
) -> RowSample:
    """See :meth:`lnml.kernels.protocol.Kernels.sample_rows`."""
    filled = np.flatnonzero(pairs.sizes)
    rows = rng.permutation(filled)[:count]
    found = [values[pairs.indptr[row] : pairs.indptr[row + 1]] for row in rows]
    return RowSample(rows, found, filled.size)


def count_triplets(points: Points, targets: Pattern, impostors: Pattern | None) -> int:
    """See :meth:`lnml.kernels.protocol.Kernels.count_triplets`."""
    if impostors is not None:
        return int(targets.sizes @ impostors.sizes)
    others = points.n_rows - np.diff(points.class_start)[points.row_class]
    return int(targets.sizes @ others)


def carry_over(old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
    """See :meth:`lnml.kernels.protocol.Kernels.carry_over`."""
    n = targets.indptr.size - 1
    row = np.repeat(np.arange(n), np.diff(old.indptr))
    pair = row * n + old_targets.indices[old_targets.indptr[row] + old.slot]
    new_row = np.repeat(np.arange(n), targets.sizes)
    new_pairs = new_row * n + targets.indices
    place = np.searchsorted(new_pairs, pair)
    kept = place < new_pairs.size
    kept[kept] = new_pairs[place[kept]] == pair[kept]
    slot = (place - targets.indptr[row])[kept].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=n))])
    return Multipliers(indptr, old.impostor[kept], slot, old.value[kept])
