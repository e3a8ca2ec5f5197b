"""Exact k nearest neighbours.

A matrix product bounds all distances; those that may be among the nearest are
computed from differences.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from lnml.core.pairs import round_ties
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import squared_norms
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.passing import Passing, passing, scores_lister
from lnml.kernels.torch.patterns import offsets_of

# More than the relative distance of two numbers that round_ties makes equal.
_TIE_WIDTH = 2.0**-35
# Arrays of the size of a tile that live at the same time.
_TILE_COPIES = 2
# Matrix products are fastest where the width is a multiple of this.
_ALIGNMENT = 4


class NearestSearch:
    """Nearest rows of references for queries, range by range.

    Parameters
    ----------
    queries, references : tensors of shape (m, r) and (n, r)
        Coordinates.
    k : int
        Number of neighbours.
    exclude_self : bool
        Whether row i of the queries is row i of the references, no neighbour of itself.
    room : int
        Bytes that tiles may take.
    """

    def __init__(
        self,
        queries: torch.Tensor,
        references: torch.Tensor,
        k: int,
        *,
        exclude_self: bool,
        room: int,
    ) -> None:
        self.queries, self.references, self.k = queries, references, k
        self.exclude_self, self.room = exclude_self, room
        # |computed - exact| <= slack * (|a|^2 + |b|^2): inner product, norms and centring.
        self.slack = (4.0 * references.shape[1] + 24.0) * torch.finfo(references.dtype).eps
        centre = references.mean(dim=0, dtype=torch.float64).to(references.dtype)
        queries, references = queries - centre, references - centre
        self.norms = squared_norms(queries)
        # One product gives minus a lower bound of the squared distance.
        filling = -(references.shape[1] + 2) % _ALIGNMENT
        self.left, self.right = (
            torch.cat([values, *sides, values.new_zeros((values.shape[0], filling))], dim=1)
            for values, sides in (
                (2.0 * queries, self._norms_and_ones(queries)),
                (references, self._norms_and_ones(references)[::-1]),
            )
        )
        shape, device = (queries.shape[0], k), queries.device
        self.distances = torch.full(shape, torch.inf, dtype=torch.float64, device=device)
        self.indices = torch.full(shape, -1, dtype=torch.int64, device=device)

    def _norms_and_ones(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Two columns: minus the squared norms, lowered by the slack, and ones."""
        norms = squared_norms(values)[:, None]
        return [norms * (self.slack - 1.0), torch.ones_like(norms)]

    def run(
        self, query_start: np.ndarray, reference_start: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared distances and indices (m, k), by distance, then index.

        Queries of range c look at references of range c only.
        """
        ranges = zip(pairwise(query_start), pairwise(reference_start), strict=True)
        for (first, last), (low, high) in ranges:
            if low == high:
                continue
            bytes_per_row = _TILE_COPIES * (high - low) * self.references.itemsize
            for lo, hi in row_tiles(last - first, self.room // bytes_per_row):
                self._search(int(first + lo), int(first + hi), int(low), int(high))
        return self.distances, self.indices

    def _search(self, lo: int, hi: int, low: int, high: int) -> None:
        """Fill rows lo..hi of the result from references low..high."""
        scores = self.left[lo:hi] @ self.right[low:high].T
        own = torch.arange(lo - low, hi - low, device=scores.device)
        left_out = torch.stack([own, own + self.exclude_self], dim=1)
        if self.exclude_self:
            scores.diagonal(lo - low).fill_(-torch.inf)
        limits = self._limits(scores, self.norms[lo:hi])
        for part in passing(scores_lister(scores, limits, left_out), self.room):
            self._verify(lo, low, part)

    def _limits(self, scores: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        """Scores that the k nearest of each row reach for certain.

        If L is the k-th least lower bound of a row, k rows b have D <= L + 2 slack
        (|a|^2 + |b|^2), and |b|^2 <= 2 |a|^2 + 2 D; so D is below the limit set here.
        """
        if scores.shape[1] <= self.k:
            return torch.full_like(norms, -torch.finfo(norms.dtype).max)
        lower = -scores.topk(self.k, dim=1).values[:, -1].double()
        # Distances that are equal after rounding must all be seen.
        width = (1.0 + 8.0 * self.slack) * (1.0 + _TIE_WIDTH)
        limits = (-(lower + 6.0 * self.slack * norms) * width).to(norms.dtype)
        limits = limits.clamp(min=-torch.finfo(norms.dtype).max)
        return torch.nextafter(limits, torch.full_like(limits, -torch.inf))

    def _verify(self, lo: int, low: int, part: Passing) -> None:
        """Sort near pairs by exact distance, then index; keep k a row."""
        rows, columns = part.rows(lo), part.columns + low
        exact = pair_distances(self.queries, rows, self.references, columns, self.room)
        exact = round_ties(exact.double())
        order = torch.argsort(exact, stable=True)
        order = order[torch.argsort(rows[order], stable=True)]
        rows, columns, exact = rows[order].long(), columns[order].long(), exact[order]
        first_of_row = offsets_of(part.counts)[rows - (lo + part.first)]
        rank = torch.arange(rows.shape[0], device=rows.device) - first_of_row
        kept = rank < self.k
        place = (rows[kept], rank[kept])
        self.distances[place] = exact[kept]
        self.indices[place] = columns[kept]
