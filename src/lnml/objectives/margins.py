"""A sample of triplets, to find the scale of a start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from lnml.objectives.triplet_task import TripletTask


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


def sample_margins(
    task: TripletTask, components: np.ndarray, n_rows: int = 64, n_columns: int = 2048
) -> Sample:
    """Look at some rows and impostors: enough to find a scale to start from."""
    rng = np.random.default_rng(0)
    kernels, targets = task.kernels, task.targets
    embedding = kernels.embed(task.points, components)
    distances = kernels.distances(embedding, targets)
    if task.impostors is not None:
        # One target and one impostor in each row that has any.
        step = -(-targets.size // (n_rows * n_columns))
        own = kernels.arrays.to_host(distances[::step])
        margins = own - kernels.arrays.to_host(kernels.distances(embedding, task.impostors)[::step])
        return Sample(np.sort(margins)[::-1], float(own.sum()), 1.0, targets.size / own.size)
    sample = kernels.sample_rows(distances, targets, n_rows, rng)
    rows = sample.rows
    columns = rng.permutation(task.points.n_rows)[:n_columns]
    ends = (kernels.arrays.rows(embedding, numbers) for numbers in (rows, columns))
    impostors = cdist(*ends, "sqeuclidean")
    row_class = task.points.row_class
    impostors[row_class[rows][:, None] == row_class[columns]] = np.inf
    pull, found = 0.0, []
    for own, to_impostors in zip(sample.values, impostors, strict=True):
        pull += float(own.sum())
        found.append((own[:, None] - to_impostors[np.isfinite(to_impostors)]).ravel())
    margins = np.sort(np.concatenate(found))[::-1]
    return Sample(margins, pull, task.points.n_rows / columns.size, sample.n_filled / rows.size)
