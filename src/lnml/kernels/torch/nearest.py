"""Exact k nearest neighbours.

A matrix product bounds all distances; those that may be among the nearest are
computed from differences. In nearly all rows a few of the best products hold all of these.
Rows where more are about as near, as in data with many ties, list whatever may count.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from lnml.core.pairs import TooManyPairs, round_ties
from lnml.core.points import Embedding
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import squared_norms, to_tensor
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.passing import Passing, passing, scores_lister
from lnml.kernels.torch.patterns import TorchPattern, offsets_of
from lnml.kernels.torch.search import Window, WindowSearch

# More than the relative distance of two numbers that round_ties makes equal.
_TIE_WIDTH = 2.0**-35
# Candidates of a row beyond k that are looked at before it counts as crowded.
_SPARE = 8
# Arrays of the size of a tile that live at the same time.
_TILE_COPIES = 2
# Rows in reach, in units of those that are wanted, that are sorted at most.
_MOST_AGAIN = 16
# Matrix products are fastest where the width is a multiple of this.
_ALIGNMENT = 4


def nearest_again(
    embedding: Embedding, k: int, near: TorchPattern, room: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the k nearest other rows of its class for every row, given those at another metric.

    They bound how far the nearest ones can be now. None if too many rows are in reach, or if some
    row has fewer of them than its class has.
    """
    z, start = embedding.coordinates, embedding.points.class_start
    n, known = z.shape[0], torch.full((z.shape[0], k), -1, dtype=torch.int64, device=z.device)
    sizes = np.diff(start)
    all_of_them = to_tensor(np.repeat(np.minimum(sizes - 1, k), sizes), z.device)
    if not bool((near.sizes.clamp(max=k) == all_of_them).all()):
        return None
    mine = torch.nonzero(near.slots < k)[:, 0]
    known[near.rows[mine].long(), near.slots[mine]] = near.indices[mine].long()
    rows = torch.arange(n, dtype=torch.int32, device=z.device)
    seen = pair_distances(
        z, rows.repeat_interleave(k), z, known.clamp(min=0).reshape(-1).int(), room
    )
    reach = torch.where(known >= 0, seen.reshape(n, k), 0.0).amax(dim=1)
    kind = torch.finfo(z.dtype)
    # Squares of smaller distances have no digits.
    reach = (reach * (1.0 + _TIE_WIDTH)).clamp(min=kind.tiny / kind.eps)
    radius = torch.nextafter(reach, torch.full_like(reach, torch.inf))
    own = torch.stack([rows, rows + 1], dim=1).long()
    windows = [Window((lo, hi), (lo, hi)) for lo, hi in pairwise(start.tolist()) if hi > lo]
    try:
        found = WindowSearch(z, radius.double(), own, room).run(windows, _MOST_AGAIN * k * n)
    except TooManyPairs:
        return None
    exact = pair_distances(z, found.rows, z, found.indices, room)
    exact = round_ties(exact.double())
    order = torch.argsort(exact, stable=True)
    order = order[torch.argsort(found.rows[order], stable=True)]
    # Rows are still where they were: each list was sorted in its place.
    kept = torch.nonzero(found.slots < k)[:, 0]
    place = found.rows[kept].long(), found.slots[kept]
    distances = torch.full((n, k), torch.inf, dtype=torch.float64, device=z.device)
    columns = torch.full((n, k), -1, dtype=torch.int64, device=z.device)
    distances[place], columns[place] = exact[order[kept]], found.indices[order[kept]].long()
    return distances, columns


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
        ranges = list(zip(pairwise(query_start), pairwise(reference_start), strict=True))
        crowded = torch.ones(self.queries.shape[0], dtype=torch.bool, device=self.norms.device)
        for (first, last), (low, high) in ranges:
            if high - low <= self.k + _SPARE:
                continue
            for lo, hi in row_tiles(last - first, self._most_rows(high - low)):
                part = slice(int(first + lo), int(first + hi))
                crowded[part] = self._search_best(part, int(low), int(high))
        # One question for all ranges: the host waits for each answer of the device.
        rows = torch.nonzero(crowded)[:, 0]
        starts = torch.searchsorted(rows, to_tensor(query_start, rows.device)).tolist()
        for (begin, end), (_, (low, high)) in zip(pairwise(starts), ranges, strict=True):
            if low == high:
                continue
            for lo, hi in row_tiles(end - begin, self._most_rows(high - low)):
                self._search_all(rows[begin + lo : begin + hi], int(low), int(high))
        return self.distances, self.indices

    def _most_rows(self, n_references: int) -> int:
        """Return how many rows of a tile there is room for."""
        return int(self.room // (_TILE_COPIES * n_references * self.references.itemsize))

    def _search_best(self, part: slice, low: int, high: int) -> torch.Tensor:
        """Fill rows from their best scores; return in which others may be as near."""
        scores = self.left[part] @ self.right[low:high].T
        if self.exclude_self:
            scores.diagonal(part.start - low).fill_(-torch.inf)
        best = scores.topk(self.k + _SPARE, dim=1)
        limits = self._limits(best.values[:, self.k - 1], self.norms[part])
        columns = best.indices.sort(dim=1).values + low
        rows = torch.arange(part.start, part.stop, device=columns.device)
        exact = pair_distances(
            self.queries, rows.repeat_interleave(columns.shape[1]).int(),
            self.references, columns.reshape(-1).int(), self.room,
        )  # fmt: skip
        exact = round_ties(exact.double()).reshape(columns.shape)
        near = torch.sort(exact, dim=1, stable=True)
        self.distances[part] = near.values[:, : self.k]
        self.indices[part] = columns.gather(1, near.indices[:, : self.k])
        return best.values[:, -1] >= limits

    def _search_all(self, rows: torch.Tensor, low: int, high: int) -> None:
        """Fill some rows, given by number, from all references low..high that may be near."""
        scores = self.left[rows] @ self.right[low:high].T
        own = rows - low
        left_out = torch.stack([own, own + self.exclude_self], dim=1)
        if self.exclude_self:
            scores.scatter_(1, own[:, None], -torch.inf)
        if high - low <= self.k:
            limits = torch.full_like(self.norms[rows], -torch.finfo(scores.dtype).max)
        else:
            limits = self._limits(scores.topk(self.k, dim=1).values[:, -1], self.norms[rows])
        for part in passing(scores_lister(scores, limits, left_out), self.room):
            self._verify(rows, low, part)

    def _limits(self, kth_best: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        """Scores that the k nearest of each row reach for certain.

        If L is the k-th least lower bound of a row, k rows b have D <= L + 2 slack
        (|a|^2 + |b|^2), and |b|^2 <= 2 |a|^2 + 2 D; so D is below the limit set here.
        """
        # Distances that are equal after rounding must all be seen.
        width = (1.0 + 8.0 * self.slack) * (1.0 + _TIE_WIDTH)
        limits = ((kth_best.double() - 6.0 * self.slack * norms) * width).to(norms.dtype)
        limits = limits.clamp(min=-torch.finfo(norms.dtype).max)
        return torch.nextafter(limits, torch.full_like(limits, -torch.inf))

    def _verify(self, numbers: torch.Tensor, low: int, part: Passing) -> None:
        """Sort near pairs by exact distance, then index; keep k a row."""
        places, columns = part.rows(0).long(), part.columns + low
        rows = numbers[places].int()
        exact = pair_distances(self.queries, rows, self.references, columns, self.room)
        exact = round_ties(exact.double())
        order = torch.argsort(exact, stable=True)
        order = order[torch.argsort(places[order], stable=True)]
        places, columns, exact = places[order], columns[order].long(), exact[order]
        first_of_row = offsets_of(part.counts)[places - part.first]
        rank = torch.arange(places.shape[0], device=places.device) - first_of_row
        kept = rank < self.k
        place = (numbers[places[kept]], rank[kept])
        self.distances[place] = exact[kept]
        self.indices[place] = columns[kept]
