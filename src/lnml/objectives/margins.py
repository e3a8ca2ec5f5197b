"""A sample of triplets, to find the scale of a start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.objectives.triplet_task import TripletTask

# One row in so many is looked at, but at least and at most these.
ROWS_FOR_EACH, SAMPLED_ROWS, MOST_SAMPLED_ROWS = 2000, 128, 512
# Impostors: more would not make a scale more certain, since it differs from row to row.
SAMPLED_COLUMNS = 256


class Sample(NamedTuple):
    """D_ij - D_il of a sample of triplets, and factors that scale sums up to all triplets.

    Attributes
    ----------
    margins : ndarray of shape (m,)
        The differences, largest first.
    weights : ndarray of shape (m,)
        How many impostors of a sampled row each of them stands for.
    pull : float
        Sum of D_ij over the target pairs of the sampled rows.
    all_rows : float
        Factor that scales a sum up from the sampled rows to all rows.
    """

    margins: np.ndarray
    weights: np.ndarray
    pull: float
    all_rows: float


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Squared distances of all pairs of rows, from a product: good enough for an estimate."""
    centre = right.mean(axis=0)
    left, right = left - centre, right - centre
    norms = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right)
    return np.asarray(np.maximum(norms - 2.0 * (left @ right.T), 0.0))


def sampled_rows(n: int) -> int:
    """Return how many of n rows are looked at: more where a fit takes long anyway."""
    return min(max(SAMPLED_ROWS, n // ROWS_FOR_EACH), MOST_SAMPLED_ROWS, n)


def sample_margins(task: TripletTask, components: np.ndarray) -> Sample:
    """Look at some rows and impostors: enough to find a scale to start from."""
    n_rows, n_columns = sampled_rows(task.points.n_rows), SAMPLED_COLUMNS
    rng = np.random.default_rng(0)
    kernels, targets = task.kernels, task.targets
    embedding = kernels.embed(task.points, components)
    if task.impostors is not None:
        # One target and one impostor in each row that has any.
        step = -(-targets.size // (n_rows * n_columns))
        own, other = (
            kernels.to_host(kernels.distances(embedding, pairs))[::step]
            for pairs in (targets, task.impostors)
        )
        margins = np.sort(own - other)[::-1]
        return Sample(margins, np.ones(own.size), float(own.sum()), targets.size / own.size)
    pairs = kernels.pattern(targets).to_host()
    filled = np.flatnonzero(pairs.sizes)
    rows = filled[_spread(np.array([0, filled.size]), n_rows, rng)[0]]
    start = task.points.class_start
    # Rare classes are seen, too, unless there are more of them than columns.
    strata = start if start.size <= n_columns else start[[0, -1]]
    columns, stand_for = _spread(strata, n_columns, rng)
    partners = [pairs.indices[pairs.indptr[row] : pairs.indptr[row + 1]] for row in rows]
    own_row = np.repeat(np.arange(rows.size), [each.size for each in partners])
    there = kernels.rows(embedding, np.concatenate([rows, columns, *partners]))
    ends = np.cumsum([rows.size, columns.size])
    from_rows, to_columns, to_partners = np.split(there, ends)
    row_class = task.points.row_class
    other = (row_class[rows][:, None] != row_class[columns])[own_row]
    own = np.square(from_rows[own_row] - to_partners).sum(axis=1)
    margins = (own[:, None] - _squared_distances(from_rows, to_columns)[own_row])[other]
    order = np.argsort(-margins)
    weights = np.broadcast_to(stand_for, other.shape)[other][order]
    return Sample(margins[order], weights, float(own.sum()), filled.size / rows.size)


def _spread(
    start: np.ndarray, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows spread evenly over ranges start[c]:start[c + 1], and how many each stands for.

    There are about ``size`` of them, and as many in a small range as if all were equal.
    """
    sizes = np.diff(start)
    wanted = np.minimum(np.maximum(size * sizes // sizes.sum(), size // sizes.size), sizes)
    of_range = np.repeat(np.arange(sizes.size), wanted)
    place = np.arange(of_range.size) - (np.cumsum(wanted) - wanted)[of_range]
    each = (sizes / np.maximum(wanted, 1))[of_range]
    rows = start[of_range] + ((place + rng.random(place.size)) * each).astype(np.int64)
    return np.minimum(rows, start[of_range + 1] - 1), each
