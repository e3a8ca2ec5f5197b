"""Entries of a tile that reach the limit of their row, as lists of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from lnml.kernels.torch import fused

# Bytes that what follows takes for one entry: positions, rows, columns, distances, sorting.
_ENTRY_BYTES = 64


class Passing(NamedTuple):
    """Entries of consecutive rows of a tile, from row ``first`` on.

    ``counts`` are their numbers by row (int64), ``columns`` all of them row by row (int32).
    """

    first: int
    counts: torch.Tensor
    columns: torch.Tensor

    def rows(self, start: int) -> torch.Tensor:
        """Row of every entry (int32), where the tile starts at row ``start``."""
        numbers = torch.arange(self.counts.shape[0], dtype=torch.int32, device=self.counts.device)
        return torch.repeat_interleave(
            numbers + (start + self.first), self.counts, output_size=self.columns.shape[0]
        )


def passing(
    scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor, room: int
) -> Iterator[Passing]:
    """Columns j of each row with scores_j >= limit, in as many parts as memory asks.

    Parameters
    ----------
    scores : tensor of shape (m, n)
        The tile.
    limits : tensor of shape (m,)
        One for each row, of the type of the scores.
    left_out : tensor of shape (m, 2), int64
        Range of columns of each row that never pass.
    room : int
        Bytes that a part may take.
    """
    lister = (fused.Lister if fused.usable(scores) else _Lister)(scores, limits, left_out)
    most = max(room // _ENTRY_BYTES, scores.shape[1])
    waiting = [(0, scores.shape[0])]
    while waiting:
        lo, hi = waiting.pop()
        total = int(lister.counts[lo:hi].sum())
        if total > most and hi - lo > 1:
            middle = (lo + hi) // 2
            waiting += [(middle, hi), (lo, middle)]
        else:
            yield Passing(lo, lister.counts[lo:hi], lister.columns(lo, hi, total))


class _Lister:
    """Counts the passing entries of all rows at once, and lists those of some."""

    def __init__(self, scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor) -> None:
        columns = torch.arange(scores.shape[1], device=scores.device)
        self.near = scores >= limits[:, None]
        self.near &= (columns < left_out[:, :1]) | (columns >= left_out[:, 1:])
        self.counts = self.near.sum(dim=1)

    def columns(self, lo: int, hi: int, total: int) -> torch.Tensor:
        """Return the passing columns of rows lo..hi."""
        return torch.nonzero(self.near[lo:hi])[:, 1].int()
