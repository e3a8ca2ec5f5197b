"""Sums of hinge terms over the triplets of a working set.

The slot of a target is its position in the list of its row. One slot of all rows is
worked on at a time.
"""

from __future__ import annotations

import torch

from lnml.core.pairs import Hinge, Multipliers
from lnml.core.points import Embedding
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import float64_zeros
from lnml.kernels.torch.columns import gram
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.laplacian import laplacian
from lnml.kernels.torch.patterns import TorchPattern, offsets_of, row_sums
from lnml.kernels.torch.working_set import TorchWorkingSet

# Stands for the distance of a missing target: its hinges are never active.
_NO_TARGET = -1e30


class Triplets:
    """The triplets of a working set at an embedding, with their distances.

    Attributes
    ----------
    table : tensor of shape (rows, width)
        Squared distance of every target by row and slot, float64.
    previous : tensor of shape (candidates, width) or None
        Multipliers; None if all are zero.
    """

    def __init__(
        self,
        embedding: Embedding,
        working: TorchWorkingSet,
        first_row: int,
        room: int,
    ) -> None:
        self.z, self.first_row, self.room = embedding.coordinates, first_row, room
        self.data, self.working = embedding.points.data, working
        targets = working.targets
        self.targets, self.candidates = targets, working.candidates
        self.target_distances = self.distances_of(targets)
        shape = (targets.n_rows, working.width)
        self.table = torch.full(shape, _NO_TARGET, dtype=torch.float64, device=self.z.device)
        self.table[targets.rows, targets.slots] = self.target_distances
        self.previous = working.aligned_multipliers(self.z.dtype)

    def distances_of(self, pairs: TorchPattern) -> torch.Tensor:
        """Squared distance of every pair of a pattern."""
        rows = pairs.rows + self.first_row
        return pair_distances(self.z, rows, self.z, pairs.indices, self.room).double()

    def hinge(self, gamma: float, moment: str = "") -> Hinge:
        """Sum over all triplets; see :meth:`lnml.kernels.protocol.Kernels.hinge`."""
        if moment:
            # Joined first: that takes most memory, and the weights are not there yet.
            graph = self.working.joined.graph
        sums = fused.hinge if fused.usable(self.z) else sum_slots
        totals, candidate_weights, by_slot = sums(self, gamma)
        weights, hinges = by_slot[self.targets.rows, self.targets.slots].unbind(dim=1)
        found = None
        if moment:
            joint = torch.cat([weights.double(), -candidate_weights.double()])
            moved = laplacian(graph, joint, self.data if moment == "data" else self.z, self.room)
            found = gram(moved, self.data, exact=moment == "data")
        smoothed, exact, slope_sum, n_active = totals.tolist()
        return Hinge(smoothed, exact, slope_sum, int(n_active), hinges, found)

    def slopes(self, gamma: float) -> Multipliers:
        """Non-zero slopes; see :meth:`lnml.kernels.protocol.Kernels.slopes`."""
        distances = self.distances_of(self.candidates)
        slopes = torch.stack(
            [self.slope_of(slot, distances, gamma)[1] for slot in range(self.table.shape[1])], dim=1
        )
        entry, slot = torch.nonzero(slopes > 0, as_tuple=True)
        counts = torch.bincount(self.candidates.rows[entry], minlength=self.candidates.n_rows)
        return Multipliers(
            offsets_of(counts), self.candidates.indices[entry], slot.int(), slopes[entry, slot]
        )

    def slope_of(
        self, slot: int, distances: torch.Tensor, gamma: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Margin h of every candidate with a slot's target, its slope and its multiplier."""
        margin = 1.0 + self.table[:, slot][self.candidates.rows] - distances
        previous = None if self.previous is None else self.previous[:, slot].double()
        if gamma == 0.0:
            return margin, (margin > 0).double(), previous
        slope = margin / gamma if previous is None else previous + margin / gamma
        return margin, slope.clamp_(0.0, 1.0), previous


def sum_slots(triplets: Triplets, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Totals of a :class:`Hinge`, candidate weights, and weight and hinge by row and slot."""
    candidates = triplets.candidates
    distances = triplets.distances_of(candidates)
    totals = float64_zeros((4,), distances)
    candidate_weights = torch.zeros_like(distances)
    by_slot = float64_zeros((*triplets.table.shape, 2), distances)
    for slot in range(triplets.table.shape[1]):
        margin, slope, previous = triplets.slope_of(slot, distances, gamma)
        positive = margin.clamp(min=0.0)
        shift = slope if previous is None else slope - previous
        smoothed = slope @ margin - 0.5 * gamma * (shift @ shift)
        totals += torch.stack([smoothed, positive.sum(), slope.sum(), (margin > 0).sum().double()])
        candidate_weights += slope
        for part, values in enumerate((slope, positive)):
            by_slot[:, slot, part] = row_sums(values, candidates.indptr)
    return totals, candidate_weights, by_slot
