"""Triplets on the device, and what is derived from them once for many evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import torch

from lnml.core.pairs import Multipliers, WorkingSet
from lnml.kernels.torch.patterns import (
    TorchPattern,
    as_multipliers,
    as_pattern,
    found_in,
    offsets_of,
)
from lnml.kernels.torch.replay import Replay
from lnml.kernels.torch.screen import Screen


class Joined(NamedTuple):
    """All pairs of some patterns, listed at both of their rows.

    ``places`` (int32) say where the weight of a pair is among those of all patterns.
    """

    pairs: TorchPattern
    places: torch.Tensor


def join(patterns: tuple[TorchPattern, ...]) -> Joined:
    """List the pairs of each row: those it begins and those it ends, pattern by pattern.

    All these lists are sorted by row, so it is known where each of their entries goes.
    """
    device, n = patterns[0].indptr.device, patterns[0].n_rows
    lists, first = [], 0
    for pattern in patterns:
        numbers = torch.arange(first, first + pattern.size, dtype=torch.int32, device=device)
        order = torch.argsort(pattern.indices, stable=True)
        lists.append((pattern.rows, pattern.indices, numbers, pattern.sizes))
        counts = torch.bincount(pattern.indices, minlength=n)
        lists.append((pattern.indices[order], pattern.rows[order], numbers[order], counts))
        first += pattern.size
    offsets = offsets_of(sum(counts for *_, counts in lists))
    partners, places = (torch.empty(2 * first, dtype=torch.int32, device=device) for _ in range(2))
    free = offsets[:-1].clone()
    for rows, others, numbers, counts in lists:
        shift = free - offsets_of(counts)[:-1]
        target = torch.arange(rows.shape[0], device=device) + shift[rows]
        partners[target], places[target] = others, numbers
        free += counts
    return Joined(TorchPattern(offsets, partners), places)


class JoinedPairs:
    """The join of targets and candidates, made when it is first asked for."""

    def __init__(self, targets: TorchPattern, candidates: TorchPattern) -> None:
        self._patterns = (targets, candidates)

    @cached_property
    def graph(self) -> Joined:
        """Targets, then candidates."""
        return join(self._patterns)


@dataclass(frozen=True, eq=False)
class TorchWorkingSet(WorkingSet):
    """A working set in tensors, made by :func:`as_working_set`.

    Attributes
    ----------
    joined : JoinedPairs
        Shared with the sets that differ from this one in their multipliers only.
    screen : Screen
        Shared likewise.
    """

    targets: TorchPattern
    candidates: TorchPattern
    joined: JoinedPairs = field(kw_only=True)
    screen: Screen = field(kw_only=True)

    def with_multipliers(self, multipliers: Multipliers | None) -> Self:
        """Return the same triplets with other multipliers."""
        given = None
        if multipliers is not None:
            given = as_multipliers(multipliers, self.targets.indptr.device)
        return replace(self, multipliers=given)

    @cached_property
    def replay(self) -> Replay:
        """Evaluations of these triplets with these multipliers."""
        return Replay()

    @cached_property
    def _aligned(self) -> dict[torch.dtype, torch.Tensor]:
        return {}

    def aligned_multipliers(self, dtype: torch.dtype) -> torch.Tensor | None:
        """Multiplier of every candidate and slot, shape (candidates, width); None if all are zero.

        Made once for each type that is asked for.
        """
        if self.multipliers is None or self.multipliers.value.shape[0] == 0:
            return None
        if dtype not in self._aligned:
            self._aligned[dtype] = align(
                self.multipliers, self.candidates, n_slots(self.targets), dtype
            )
        return self._aligned[dtype]


def n_slots(targets: TorchPattern) -> int:
    """Return the number of slots of a row: that of the longest list of targets, at least one."""
    return max(targets.width, 1)


def align(
    given: Multipliers, candidates: TorchPattern, width: int, dtype: torch.dtype
) -> torch.Tensor:
    """Table of multipliers (candidates, width); those of other triplets are left out."""
    table = torch.zeros((candidates.size, width), dtype=dtype, device=candidates.indptr.device)
    own = TorchPattern(given.indptr, given.impostor)
    place, found = found_in(candidates.keys, own.keys)
    table[place[found], given.slot[found].long()] = given.value[found].to(dtype)
    return table


def as_working_set(working: WorkingSet, device: torch.device) -> TorchWorkingSet:
    """Triplets on the device, copied there if they are not yet."""
    if isinstance(working, TorchWorkingSet):
        return working
    targets, candidates = (as_pattern(p, device) for p in (working.targets, working.candidates))
    made = TorchWorkingSet(
        targets,
        candidates,
        joined=JoinedPairs(targets, candidates),
        screen=Screen(candidates.size),
    )
    return made.with_multipliers(working.multipliers)
