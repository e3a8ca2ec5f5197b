"""Sums of hinge terms over the triplets of a working set.

The slot of a target is its position in the list of its row. One slot of all rows is
worked on at a time.
"""

from __future__ import annotations

from typing import Any

import torch

from lnml.core.pairs import Hinge, HingeSums, Multipliers
from lnml.core.points import Embedding
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import float64_zeros, to_numpy
from lnml.kernels.torch.columns import device_gram
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.embedding import TorchEmbedding
from lnml.kernels.torch.laplacian import laplacian
from lnml.kernels.torch.patterns import TorchPattern, offsets_of, row_sums
from lnml.kernels.torch.screen import Bounds
from lnml.kernels.torch.working_set import TorchWorkingSet, n_slots

# Stands for the distance of a missing target: its hinges are never active.
_NO_TARGET = -1e30
# Working sets with more candidates keep a GPU busy: launching its programs takes no time beside.
MOST_REPLAYED = 2**24


class Triplets:
    """The triplets of target pairs and candidates, with their distances.

    Parameters
    ----------
    z : tensor of shape (n, r)
        Coordinates.
    targets : TorchPattern
        Target pairs; where the list of each row begins is all that is read.
    target_distances : tensor
        Their squared distances, float64.
    candidates : TorchPattern
        Impostors that may act.
    previous : tensor of shape (candidates, width) or None
        Multipliers by slot; None if all are zero.
    room : int
        Bytes that temporary arrays may take.
    first_row : int, default=0
        Row of z that is row 0 of the patterns.
    bounds : Bounds, optional
        Of the distances of candidates, where a GPU has them.

    Attributes
    ----------
    table : tensor of shape (rows, width)
        Squared distance of every target by row and slot, float64.
    """

    def __init__(
        self,
        z: torch.Tensor,
        targets: TorchPattern,
        target_distances: torch.Tensor,
        candidates: TorchPattern,
        previous: torch.Tensor | None,
        room: int,
        first_row: int = 0,
        bounds: Bounds | None = None,
    ) -> None:
        self.z, self.first_row, self.room, self.bounds = z, first_row, room, bounds
        self.targets, self.candidates, self.previous = targets, candidates, previous
        shape = (targets.n_rows, n_slots(targets))
        if targets.is_full:
            self.table = target_distances.reshape(shape)
        else:
            self.table = torch.full(shape, _NO_TARGET, dtype=torch.float64, device=z.device)
            self.table[targets.rows, targets.slots] = target_distances

    @classmethod
    def of(
        cls, z: torch.Tensor, working: TorchWorkingSet, room: int, *, again: bool = False
    ) -> Triplets:
        """Return the triplets of a working set at some coordinates.

        ``again`` says that there will be others, near these.
        """
        targets = working.targets
        lengths = pattern_distances(z, targets, 0, room)
        previous = working.aligned_multipliers(z.dtype)
        bounds = working.screen.at(z) if again else None
        return cls(z, targets, lengths, working.candidates, previous, room, bounds=bounds)

    def candidate_distances(self) -> torch.Tensor:
        """Squared distance of every candidate pair."""
        return pattern_distances(self.z, self.candidates, self.first_row, self.room)

    def sums(self, gamma: float) -> HingeSums:
        """Sum over all triplets."""
        found = (fused.hinge if fused.usable(self.z) else sum_slots)(self, gamma)
        totals, candidate_weights, by_slot = found
        if self.targets.is_full:
            of_targets = by_slot.reshape(-1, 2)
        else:
            of_targets = by_slot[self.targets.rows, self.targets.slots]
        return HingeSums(totals, of_targets[:, 0], candidate_weights, of_targets[:, 1])

    def slopes(self, gamma: float) -> Multipliers:
        """Non-zero slopes; see :meth:`lnml.kernels.protocol.Kernels.slopes`."""
        distances = self.candidate_distances()
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


def pattern_distances(
    z: torch.Tensor, pairs: TorchPattern, first_row: int, room: int
) -> torch.Tensor:
    """Squared distance of every pair of a pattern, whose row 0 is one of the rows of z."""
    rows = pairs.rows + first_row if first_row else pairs.rows
    return pair_distances(z, rows, z, pairs.indices, room).double()


def hinge(
    embedding: Embedding,
    working: TorchWorkingSet,
    gamma: float,
    moment: str,
    room: int,
    *,
    again: bool = False,
) -> Hinge:
    """See :meth:`lnml.kernels.protocol.Kernels.hinge`.

    ``again`` says that the same triplets may be looked at again, under other metrics.
    """
    if moment:
        # Joined first: that takes most memory, and the weights are not there yet.
        graph = working.joined.graph
    few = working.candidates.size <= MOST_REPLAYED
    if again and few and moment == "coordinates" and isinstance(embedding, TorchEmbedding):
        return _replayed(embedding, working, gamma, room)
    triplets = Triplets.of(
        _aligned(embedding.coordinates), working, room, again=again and bool(moment)
    )
    sums = triplets.sums(gamma)
    of_slopes: Any = None
    if moment:
        data = embedding.points.data
        values, width = triplets.z, embedding.coordinates.shape[1]
        if moment == "data":
            values, width = _aligned(data), data.shape[1]
        moved = laplacian(graph, joint_weights(sums), values, room)[:, :width]
        of_slopes = device_gram(moved, data, exact=moment == "data")
        if _on_device(embedding):
            return _on_device_sums(sums.totals, of_slopes)
        of_slopes = to_numpy(of_slopes)
    smoothed, exact, slope_sum, n_active = sums.totals.tolist()
    return Hinge(smoothed, exact, slope_sum, int(n_active), sums.target_hinge, of_slopes)


def _replayed(
    embedding: TorchEmbedding, working: TorchWorkingSet, gamma: float, room: int
) -> Hinge:
    """Return sums and the moment of the coordinates, which a solver asks for again and again."""
    data = embedding.points.data

    def evaluate(components: torch.Tensor) -> torch.Tensor:
        right = components.to(data.dtype)
        z = data @ _aligned(right.T)
        sums = Triplets.of(z, working, room, again=True).sums(gamma)
        moved = laplacian(working.joined.graph, joint_weights(sums), z, room)[:, : len(right)]
        return torch.cat([sums.totals, device_gram(moved, data, exact=False).reshape(-1)])

    key = (gamma, room, data.data_ptr(), data.shape, data.dtype)
    given = embedding.components
    there = given if isinstance(given, torch.Tensor) else embedding.right
    recorded = working.replay(evaluate, (there,), key)
    if _on_device(embedding):
        # The next one overwrites it.
        kept = recorded.clone()
        return _on_device_sums(kept, kept[4:].reshape(there.shape))
    found = to_numpy(recorded)
    smoothed, exact, slope_sum, n_active = found[:4].tolist()
    moment = found[4:].reshape(there.shape)
    return Hinge(smoothed, exact, slope_sum, int(n_active), None, moment)


def _on_device_sums(totals: torch.Tensor, moment: torch.Tensor) -> Hinge:
    """Return the totals and the moment as tensors, without waiting for them."""
    return Hinge(totals[0], totals[1], totals[2], totals[3], None, moment)


def _on_device(embedding: Embedding) -> bool:
    """Whether components are where the rows are, and so is what is multiplied with them."""
    return isinstance(embedding.components, torch.Tensor)


def _aligned(values: torch.Tensor) -> torch.Tensor:
    """Rows as the device loads them fastest: there may be columns of zeros behind."""
    return fused.aligned(values) if fused.usable(values) else values


def joint_weights(sums: HingeSums) -> torch.Tensor:
    """Weights of target pairs, then those of candidates, which push."""
    return torch.cat([sums.target_weights, -1.0 * sums.candidate_weights])


def sum_slots(triplets: Triplets, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Totals of a :class:`Hinge`, candidate weights, and weight and hinge by row and slot."""
    candidates = triplets.candidates
    distances = triplets.candidate_distances()
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
