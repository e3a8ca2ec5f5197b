"""Squared distances of listed pairs, from differences."""

from __future__ import annotations

import torch

from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import squared_norms


def pair_distances(
    left: torch.Tensor, rows: torch.Tensor, right: torch.Tensor, columns: torch.Tensor, room: int
) -> torch.Tensor:
    """Squared distance of left[rows[e]] and right[columns[e]] for every e, in their type.

    ``room`` is the number of bytes that temporary arrays may take.
    """
    if fused.usable(left):
        return fused.pair_distances(left, rows, right, columns)
    out = torch.empty(rows.shape[0], dtype=left.dtype, device=left.device)
    for lo, hi in row_tiles(rows.shape[0], room // (2 * left.itemsize * max(left.shape[1], 1))):
        out[lo:hi] = squared_norms(left[rows[lo:hi]] - right[columns[lo:hi]])
    return out
