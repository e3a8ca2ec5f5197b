"""The greedy choice of neighbourhoods among ranked partners (docs/neighborhoods.md)."""

from __future__ import annotations

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Partners, Ranked, round_ties


def listed(columns: np.ndarray) -> tuple[Neighborhoods, np.ndarray]:
    """Pattern of the columns (n x k) that are not -1, and their flat positions there."""
    rows, ranks = np.nonzero(columns >= 0)
    values = columns[rows, ranks]
    order = np.lexsort((values, rows))
    indptr = np.concatenate([[0], np.cumsum((columns >= 0).sum(axis=1))])
    position = rows[order] * columns.shape[1] + ranks[order]
    return Neighborhoods(indptr, values[order].astype(np.int32)), position


def ranked(partners: Partners, costs: np.ndarray, k_max: int) -> Ranked:
    """Return the first partners of every row with their costs."""
    table = np.full(partners.columns.shape, np.inf)
    table.ravel()[partners.position] = round_ties(costs)
    rising = np.maximum.accumulate(table, axis=1)
    return Ranked(*(part[:, :k_max] for part in (partners.columns, rising, partners.distances)))


def choose(
    ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: np.ndarray | None = None
) -> tuple[Neighborhoods, float]:
    """Return the pairs of least cost; see :meth:`lnml.kernels.protocol.Kernels.choose`."""
    n, width = ranked.columns.shape
    available = (ranked.columns >= 0).sum(axis=1)
    taken = np.minimum(k_min, available)
    most = np.minimum(k_max, available)
    budget = int(np.minimum(k_av, available).sum() - taken.sum())
    rank = np.arange(width)
    optional = (rank >= taken[:, None]) & (rank < most[:, None])
    chosen = rank < taken[:, None]
    rows, ranks = np.nonzero(optional)
    numbers = rows if row_numbers is None else row_numbers[rows]
    best = _cheapest(ranked.costs[rows, ranks], ranked.distances[rows, ranks], numbers, budget)
    chosen[rows[best], ranks[best]] = True
    rows, ranks = np.nonzero(chosen)
    pairs = Neighborhoods.from_pairs(rows, ranked.columns[rows, ranks], n)
    return pairs, float(ranked.costs[rows, ranks].sum())


def _cheapest(
    costs: np.ndarray, distances: np.ndarray, numbers: np.ndarray, count: int
) -> np.ndarray:
    """Positions of the ``count`` least entries by cost, distance, row number, position."""
    if count == 0:
        return np.zeros(0, dtype=np.intp)
    if count >= costs.size:
        return np.arange(costs.size)
    threshold = np.partition(costs, count - 1)[count - 1]
    below = np.flatnonzero(costs < threshold)
    tied = np.flatnonzero(costs == threshold)
    tied = tied[np.lexsort((numbers[tied], distances[tied]))]
    return np.concatenate([below, tied[: count - below.size]])
