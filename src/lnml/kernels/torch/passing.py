"""Entries of a tile that reach the limit of their row, as lists of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch

from lnml.kernels.torch import fused

# Bytes that callers need for one entry: positions, rows, columns, distances, sorting.
_ENTRY_BYTES = 64
# Bytes of the mask of a tile and its sums, per pair.
_MASK_BYTES = 2


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


class Lister(Protocol):
    """Finds the entries of a tile (m, n) that reach the limit of their row."""

    n: int
    counts: torch.Tensor

    def columns(self, lo: int, hi: int, total: int) -> torch.Tensor:
        """Return the passing columns of rows lo..hi, ``total`` in number."""


def passing(lister: Lister, room: int) -> Iterator[Passing]:
    """Columns of each row that pass, in as many parts as memory asks.

    Parameters
    ----------
    lister : Lister
        The tile.
    room : int
        Bytes that a part may take.
    """
    most = max(room // _ENTRY_BYTES, lister.n)
    waiting = [(0, lister.counts.shape[0])]
    while waiting:
        lo, hi = waiting.pop()
        total = int(lister.counts[lo:hi].sum())
        if total > most and hi - lo > 1:
            middle = (lo + hi) // 2
            waiting += [(middle, hi), (lo, middle)]
        else:
            yield Passing(lo, lister.counts[lo:hi], lister.columns(lo, hi, total))


def scores_lister(scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor) -> Lister:
    """Return the lister of a tile of scores.

    Parameters
    ----------
    scores : tensor of shape (m, n)
        An entry passes if it is at least the limit of its row.
    limits : tensor of shape (m,)
        One for each row, of the type of the scores.
    left_out : tensor of shape (m, 2), int64
        Range of columns of each row that never pass.
    """
    if fused.usable(scores):
        return fused.Lister.of_scores(scores, limits, left_out)
    return _Lister(scores, limits, left_out)


def product_lister(
    left: torch.Tensor, right: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor
) -> Lister:
    """Return the lister of the scores left @ right^T; see :func:`scores_lister`."""
    if _is_fused(left):
        return fused.Lister.of_product(left, right, limits, left_out)
    return scores_lister(left @ right.T, limits, left_out)


def product_bytes(left: torch.Tensor) -> float:
    """Bytes that :func:`product_lister` takes for one pair."""
    return fused.LISTER_BYTES if _is_fused(left) else left.itemsize + _MASK_BYTES


def _is_fused(left: torch.Tensor) -> bool:
    return fused.usable(left) and left.dtype == torch.float16


class _Lister:
    """Counts the passing entries of all rows at once, and lists those of some."""

    def __init__(self, scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor) -> None:
        self.n = scores.shape[1]
        columns = torch.arange(self.n, device=scores.device)
        self.near = scores >= limits[:, None]
        self.near &= (columns < left_out[:, :1]) | (columns >= left_out[:, 1:])
        self.counts = self.near.sum(dim=1)

    def columns(self, lo: int, hi: int, total: int) -> torch.Tensor:
        """See :class:`Lister`."""
        return torch.nonzero(self.near[lo:hi])[:, 1].int()
