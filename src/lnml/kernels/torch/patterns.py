"""Pairs of rows on the device, and lookups over them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import MixedSlopes, Multipliers, Pattern
from lnml.kernels.torch.basics import to_numpy, to_tensor


class TorchPattern(Neighborhoods):
    """Pairs in tensors: ``indptr`` int64, ``indices`` int32. Derived tensors are made once."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.indptr.shape[0] - 1

    @cached_property
    def rows(self) -> torch.Tensor:
        """Row of every pair, int32."""
        numbers = torch.arange(self.n_rows, dtype=torch.int32, device=self.indptr.device)
        return torch.repeat_interleave(numbers, self.sizes, output_size=self.size)

    @cached_property
    def slots(self) -> torch.Tensor:
        """Position of every pair in its row's list."""
        positions = torch.arange(self.size, device=self.indptr.device)
        return positions - self.indptr[self.rows]

    @cached_property
    def width(self) -> int:
        """Length of the longest list."""
        return int(self.sizes.max()) if self.n_rows else 0

    @cached_property
    def is_full(self) -> bool:
        """Whether all rows have the same number of partners, and some."""
        return 0 < self.size == self.n_rows * self.width

    @property
    def keys(self) -> torch.Tensor:
        """Pairs as rising numbers: the row in the upper half of the bits, the partner below."""
        return (self.rows.long() << 32) | self.indices

    @cached_property
    def _pieces(self) -> dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        return {}

    def pieces(self, length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Cut lists into pieces of at most ``length`` pairs, since one program works on one piece.

        Returns row and first pair of every piece, and indptr of the pieces of the rows. The length
        is a power of two.
        """
        assert length & (length - 1) == 0, "a power of two"
        if length not in self._pieces:
            counts = (self.sizes + length - 1) >> (length.bit_length() - 1)
            offsets = offsets_of(counts)
            rows = torch.repeat_interleave(counts, output_size=int(offsets[-1]))
            numbers = torch.arange(rows.shape[0], device=rows.device) - offsets[rows]
            self._pieces[length] = rows, self.indptr[rows] + length * numbers, offsets
        return self._pieces[length]

    def counts_in(self, starts: np.ndarray) -> np.ndarray:
        """Count the pairs whose row lies in each range ``starts[c]:starts[c + 1]``."""
        return np.diff(to_numpy(self.indptr[to_tensor(starts, self.indptr.device)]))

    def pairs(self) -> tuple[Any, Any]:
        """Rows and columns of all pairs, in row order."""
        return self.rows, self.indices

    def size_counts(self) -> dict[int, int]:
        """How many rows have how many target neighbours."""
        counts = to_numpy(torch.bincount(self.sizes)).tolist()
        return {size: count for size, count in enumerate(counts) if count}

    def n_changed(self, other: Neighborhoods) -> int:
        """Return how many pairs of this one the other lacks."""
        theirs = as_pattern(other, self.indptr.device)
        return self.size - int(found_in(theirs.keys, self.keys)[1].sum())

    def to_host(self) -> Neighborhoods:
        """Return the same neighbourhoods in NumPy arrays."""
        return Neighborhoods(to_numpy(self.indptr), to_numpy(self.indices))

    def to_graph(self) -> object:
        """CSR array (n x n) with a 1 for every pair."""
        return self.to_host().to_graph()

    def renumbered(self, numbers: np.ndarray) -> TorchPattern:
        """Return the same pairs when row i is called ``numbers[i]``."""
        names = to_tensor(numbers, self.indptr.device, torch.int64)
        keys = ((names[self.rows] << 32) | names[self.indices]).sort().values
        sizes = torch.empty_like(self.sizes)
        sizes[names] = self.sizes
        return TorchPattern(offsets_of(sizes), keys.int())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neighborhoods) and self.to_host() == other.to_host()

    __hash__ = None

    def __repr__(self) -> str:
        return repr(self.to_host())


def as_pattern(pairs: Pattern, device: torch.device) -> TorchPattern:
    """Pairs on the device, copied there if they are not yet."""
    if isinstance(pairs, TorchPattern):
        return pairs
    return TorchPattern(
        to_tensor(pairs.indptr, device, torch.int64), to_tensor(pairs.indices, device, torch.int32)
    )


def as_multipliers(given: Multipliers, device: torch.device) -> Multipliers:
    """Multipliers on the device, copied there if they are not yet."""
    return Multipliers(
        to_tensor(given.indptr, device, torch.int64),
        to_tensor(given.impostor, device, torch.int32),
        to_tensor(given.slot, device, torch.int32),
        to_tensor(given.value, device, torch.float64),
    )


def offsets_of(counts: torch.Tensor) -> torch.Tensor:
    """0 and the running sums of counts."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def found_in(known: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Look up ``wanted`` in the sorted ``known``: return positions, and whether each was found."""
    if known.shape[0] == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    place = torch.searchsorted(known, wanted).clamp(max=known.shape[0] - 1)
    return place, known[place] == wanted


def row_sums(values: torch.Tensor, indptr: torch.Tensor) -> torch.Tensor:
    """Sum of the values (or rows of values) of every row, always added in the same order."""
    return torch.segment_reduce(values, "sum", offsets=indptr, initial=0.0)


def carry_over(old: Multipliers, old_targets: TorchPattern, targets: TorchPattern) -> Multipliers:
    """See :meth:`lnml.kernels.protocol.Kernels.carry_over`."""
    rows = TorchPattern(old.indptr, old.impostor).rows
    place, kept = found_in(targets.keys, old_targets.keys[old_targets.indptr[rows] + old.slot])
    slot = (place - targets.indptr[rows])[kept].int()
    counts = torch.bincount(rows[kept], minlength=targets.n_rows)
    return Multipliers(offsets_of(counts), old.impostor[kept], slot, old.value[kept])


def mixed_slopes(parts: list[tuple[float, Multipliers]], targets: TorchPattern) -> MixedSlopes:
    """See :meth:`lnml.kernels.protocol.Kernels.mixed_slopes`."""
    keys, values = [], []
    for share, slopes in parts:
        rows = TorchPattern(slopes.indptr, slopes.impostor).rows
        keys.append(((targets.indptr[rows] + slopes.slot) << 32) | slopes.impostor)
        values.append(share * slopes.value)
    if len(parts) == 1:
        key, value = keys[0], values[0]
    else:
        key, value = torch.cat(keys), torch.cat(values)
    # They are many, and not needed twice.
    del keys, values
    if len(parts) > 1:
        key, value, _ = _summed(key, value)
        # Rounding may lift a sum of shares of one above one.
        value = value.clamp(max=1.0)
    target, impostor = key >> 32, key.int()
    summed, sums, longest = _summed(target, value)
    own = torch.zeros(targets.size, dtype=value.dtype, device=value.device)
    own[summed] = sums
    summed, of_pairs, longer = _summed((targets.rows[target].long() << 32) | impostor, value)
    first = torch.arange(targets.n_rows + 1, device=key.device) << 32
    return MixedSlopes(
        triplets=torch.stack([target.int(), impostor], dim=1),
        slopes=value,
        targets=own,
        pairs=TorchPattern(torch.searchsorted(summed, first), summed.int()),
        impostors=of_pairs,
        most=max(longest, longer),
        total=float(value.sum()),
    )


def _summed(keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return each key once, sorted, the sum of its values, and the most terms of a sum.

    Equal keys are added in their order.
    """
    keys, order = keys.sort(stable=True)
    new = torch.ones_like(keys, dtype=torch.bool)
    new[1:] = keys[1:] > keys[:-1]
    first = torch.nonzero(new)[:, 0]
    ends = torch.nn.functional.pad(first, (0, 1), value=keys.shape[0])
    longest = int(ends.diff().max()) if first.shape[0] else 0
    return keys[first], row_sums(values[order], ends), longest
