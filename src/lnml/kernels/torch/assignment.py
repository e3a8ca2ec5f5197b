"""The greedy choice of neighbourhoods among ranked partners (docs/neighborhoods.md)."""

from __future__ import annotations

import torch

from lnml.core.pairs import Partners, Ranked, round_ties
from lnml.kernels.torch.patterns import TorchPattern, offsets_of


def listed(columns: torch.Tensor) -> tuple[TorchPattern, torch.Tensor]:
    """Pattern of the columns (n x k) that are not -1, and their flat positions there."""
    n, width = columns.shape
    # Missing partners go to the end of a row and are left out there.
    rising, ranks = torch.where(columns >= 0, columns, n).sort(dim=1, stable=True)
    there = rising < n
    position = ranks + width * torch.arange(n, device=columns.device)[:, None]
    return TorchPattern(offsets_of(there.sum(dim=1)), rising[there].int()), position[there]


def ranked(partners: Partners, costs: torch.Tensor, k_max: int) -> Ranked:
    """Return the first partners of every row with their costs."""
    table = torch.full_like(partners.distances, torch.inf)
    table.view(-1)[partners.position] = round_ties(costs)
    rising = table.cummax(dim=1).values
    return Ranked(*(part[:, :k_max] for part in (partners.columns, rising, partners.distances)))


def choose(
    ranked: Ranked, k_min: int, k_av: int, k_max: int, row_numbers: torch.Tensor | None
) -> tuple[TorchPattern, float]:
    """Return the pairs of least cost; see :meth:`lnml.kernels.protocol.Kernels.choose`."""
    columns = ranked.columns
    available = (columns >= 0).sum(dim=1)
    taken, most = available.clamp(max=k_min), available.clamp(max=k_max)
    budget = int((available.clamp(max=k_av) - taken).sum())
    rank = torch.arange(columns.shape[1], device=columns.device)
    chosen = rank < taken[:, None]
    rows, ranks = torch.nonzero((rank >= taken[:, None]) & (rank < most[:, None]), as_tuple=True)
    optional = rows * columns.shape[1] + ranks
    numbers = rows if row_numbers is None else row_numbers[rows]
    costs, distances = (part.reshape(-1)[optional] for part in (ranked.costs, ranked.distances))
    chosen.view(-1)[optional[_cheapest(costs, distances, numbers, budget)]] = True
    pairs, _ = listed(torch.where(chosen, columns, -1))
    return pairs, float(ranked.costs[chosen].sum())


def _cheapest(
    costs: torch.Tensor, distances: torch.Tensor, numbers: torch.Tensor, count: int
) -> torch.Tensor:
    """Positions of the ``count`` least entries by cost, distance, row number, position."""
    order = torch.argsort(numbers, stable=True)
    for key in (distances, costs):
        order = order[torch.argsort(key[order], stable=True)]
    return order[:count]
