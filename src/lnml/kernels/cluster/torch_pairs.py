"""Pairs and multipliers of a cell on a torch device.

The rows of two blocks are numbered one after the other, so that a cell of two blocks is worked on
like one of one. Elsewhere the same lists come by ways, in NumPy arrays: so they are pickled, and
a worker takes what another one made, whatever their devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property
from typing import Any, Generic

import torch

from lnml.core.pairs import Multipliers, Pattern
from lnml.kernels.cluster.layout import Lists, cut_ways, join_ways
from lnml.kernels.torch.basics import to_numpy
from lnml.kernels.torch.patterns import TorchPattern, as_multipliers, as_pattern
from lnml.kernels.torch.working_set import Joined, align, join


class _CellLists(Generic[Lists]):
    """Lists of all rows of a cell.

    Parameters
    ----------
    whole : Pattern or Multipliers
        The lists, in tensors.
    first : int
        Number of rows of the first block.
    """

    kind: type[Lists]

    def __init__(self, whole: Lists, first: int) -> None:
        self.whole: Lists = whole
        self.first = first

    def __iter__(self) -> Iterator[Lists]:
        """Return the lists of each way, in tensors."""
        return iter(cut_ways(self.whole, self.first))

    def on_host(self) -> list[Lists]:
        """Return the lists of each way, in NumPy arrays."""
        columns = (to_numpy(getattr(self.whole, field.name)) for field in fields(self.kind))
        return cut_ways(self.kind(*columns), self.first)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.on_host(),)


class DeviceMultipliers(_CellLists[Multipliers]):
    """Multipliers of the triplets of a cell."""

    kind = Multipliers

    @classmethod
    def of(cls, given: Any, device: torch.device) -> DeviceMultipliers:
        """Return multipliers on the device; those of other workers come by ways."""
        if isinstance(given, cls):
            return given
        return cls(as_multipliers(join_ways(given), device), given[0].indptr.size - 1)


class DevicePairs(_CellLists[Pattern]):
    """Candidate pairs of a cell, and what is derived from them once for many evaluations."""

    kind = Pattern
    whole: TorchPattern

    def __init__(self, whole: TorchPattern, first: int) -> None:
        super().__init__(whole, first)
        self._aligned: tuple[Any, int, torch.Tensor | None] = (None, 0, None)

    @classmethod
    def of(cls, given: Any, device: torch.device) -> DevicePairs:
        """Return pairs on the device; those of other workers come by ways."""
        if isinstance(given, cls):
            return given
        return cls(as_pattern(join_ways(given), device), given[0].indptr.size - 1)

    @cached_property
    def graph(self) -> Joined:
        """The pairs, listed at both of their rows."""
        return join((self.whole,))

    def aligned(self, given: Any, width: int, dtype: torch.dtype) -> torch.Tensor | None:
        """Multiplier of every pair and slot, shape (pairs, width); None if all are zero.

        The last table is kept, since the multipliers of a worker serve many evaluations.
        """
        if given is None:
            return None
        known, known_width, table = self._aligned
        if known is not given or known_width != width or table is None or table.dtype != dtype:
            multipliers = DeviceMultipliers.of(given, self.whole.indptr.device).whole
            table = None
            if multipliers.value.shape[0]:
                table = align(multipliers, self.whole, width, dtype)
            self._aligned = given, width, table
        return table
