"""A sample of triplets, to find the scale of a start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.objectives.triplet_task import TripletTask

# Rows and impostors that are looked at.
SAMPLED_ROWS, SAMPLED_COLUMNS = 64, 2048


class Sample(NamedTuple):
    """D_ij - D_il of a sample of triplets, and factors that scale sums up to all triplets.

    Attributes
    ----------
    margins : ndarray
        The differences, largest first.
    pull : float
        Sum of D_ij over the target pairs of the sampled rows.
    per_row : float
        Factor that scales a sum over ``margins`` up to all impostors of the sampled rows.
    all_rows : float
        Further factor that scales it up from the sampled rows to all rows.
    """

    margins: np.ndarray
    pull: float
    per_row: float
    all_rows: float


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Squared distances of all pairs of rows, from a product: good enough for an estimate."""
    centre = right.mean(axis=0)
    left, right = left - centre, right - centre
    norms = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right)
    return np.asarray(np.maximum(norms - 2.0 * (left @ right.T), 0.0))


def sample_margins(
    task: TripletTask,
    components: np.ndarray,
    n_rows: int = SAMPLED_ROWS,
    n_columns: int = SAMPLED_COLUMNS,
) -> Sample:
    """Look at some rows and impostors: enough to find a scale to start from."""
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
        return Sample(margins, float(own.sum()), 1.0, targets.size / own.size)
    pairs = kernels.pattern(targets).to_host()
    filled = np.flatnonzero(pairs.sizes)
    rows = rng.permutation(filled)[:n_rows]
    columns = rng.permutation(task.points.n_rows)[:n_columns]
    from_rows = kernels.rows(embedding, rows)
    impostors = _squared_distances(from_rows, kernels.rows(embedding, columns))
    row_class = task.points.row_class
    impostors[row_class[rows][:, None] == row_class[columns]] = np.inf
    partners = [pairs.indices[pairs.indptr[row] : pairs.indptr[row + 1]] for row in rows]
    to_partners = kernels.rows(embedding, np.concatenate(partners))
    sizes = [each.size for each in partners]
    own_row = np.repeat(np.arange(rows.size), sizes)
    own = np.square(from_rows[own_row] - to_partners).sum(axis=1)
    margins, filled_up = np.empty(int(np.isfinite(impostors).sum(axis=1) @ sizes)), 0
    for number, beside in enumerate(impostors):
        found = (own[own_row == number][:, None] - beside[np.isfinite(beside)]).ravel()
        margins[filled_up : filled_up + found.size] = found
        filled_up += found.size
    margins.sort()
    all_columns, all_rows = task.points.n_rows / columns.size, filled.size / rows.size
    return Sample(margins[::-1], float(own.sum()), all_columns, all_rows)
