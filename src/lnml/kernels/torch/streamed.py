"""Sums over all triplets, whose impostors are found again for a few rows at a time."""

from __future__ import annotations

import torch

from lnml.core.pairs import Edge, EdgeScatter, Hinge, Pattern, WorkingSet
from lnml.core.points import Embedding
from lnml.kernels.streaming import blocks_of_rows
from lnml.kernels.torch import hinge as _hinge
from lnml.kernels.torch import search as _search
from lnml.kernels.torch.laplacian import edge_scatter
from lnml.kernels.torch.patterns import TorchPattern
from lnml.kernels.torch.working_set import TorchWorkingSet, as_working_set


def hinge(
    embedding: Embedding,
    targets: TorchPattern,
    radius: torch.Tensor,
    gamma: float,
    moment: str,
    room: int,
    most: int,
) -> Hinge:
    """See :meth:`lnml.kernels.protocol.Kernels.hinge`; impostors count within a radius alone.

    ``room`` is what tiles may take in bytes, ``most`` the largest number of impostors that are
    kept at a time.
    """
    z = embedding.coordinates

    def search(rows: tuple[int, int], max_pairs: int | None) -> TorchPattern:
        return _search.within(embedding, radius, room, max_pairs, rows)

    parts = []
    for block in blocks_of_rows(targets, z.shape[0], most, search, TorchPattern):
        own, found = (
            _with_all_rows(each, block.rows, z.shape[0])
            for each in (block.targets, block.candidates)
        )
        working = as_working_set(WorkingSet(own, found), z.device)
        evaluate = _scattered if moment == "scatter" else _summed
        parts.append(evaluate(embedding, working, gamma, moment, room))
    return _total(parts)


def _with_all_rows(pairs: Pattern, rows: tuple[int, int], n_rows: int) -> TorchPattern:
    """Pairs of some rows as a pattern of all rows."""
    before = pairs.indptr[:1].expand(rows[0])
    after = pairs.indptr[-1:].expand(n_rows - rows[1])
    return TorchPattern(torch.cat([before, pairs.indptr, after]), pairs.indices)


def _summed(
    embedding: Embedding, working: TorchWorkingSet, gamma: float, moment: str, room: int
) -> Hinge:
    return _hinge.hinge(embedding, working, gamma, moment, room)


def _scattered(
    embedding: Embedding, working: TorchWorkingSet, gamma: float, moment: str, room: int
) -> Hinge:
    """Hinge terms with the scatter of a block."""
    sums = _hinge.Triplets.of(embedding.coordinates, working, room).sums(gamma)
    edges = [
        Edge(working.targets, sums.target_weights),
        Edge(working.candidates, sums.candidate_weights, -1.0),
    ]
    smoothed, exact, slope_sum, n_active = sums.totals.tolist()
    return Hinge(
        smoothed,
        exact,
        slope_sum,
        int(n_active),
        sums.target_hinge,
        target_slopes=sums.target_weights,
        scatter=edge_scatter(embedding.points, edges, room),
    )


def _total(parts: list[Hinge]) -> Hinge:
    """Add the terms of blocks up; values of target pairs follow each other."""
    first, *others = parts
    moment, scatter = first.moment, first.scatter
    for part in others:
        moment = None if moment is None else moment + part.moment
        scatter = scatter if scatter is None else _plus(scatter, part.scatter)
    slopes = None if scatter is None else torch.cat([part.target_slopes for part in parts])
    return Hinge(
        sum(part.smoothed for part in parts),
        sum(part.exact for part in parts),
        sum(part.slope_sum for part in parts),
        sum(part.n_active for part in parts),
        torch.cat([part.target_hinge for part in parts]),
        moment,
        slopes,
        scatter,
    )


def _plus(scatter: EdgeScatter, other: EdgeScatter | None) -> EdgeScatter:
    assert other is not None
    return scatter.plus(other)
