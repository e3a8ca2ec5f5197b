"""Softmax sums of a torch device over the pairs of a cell.

Weights are powers of two, shifted as in :mod:`lnml.kernels.cpu.pair_weights`; those below the
lowest one of the CPU may be zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from lnml.core.points import Embedding, Points
from lnml.kernels.cluster.tiles import class_starts
from lnml.kernels.cpu.exponential import SHIFT
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import float64_zeros, to_tensor
from lnml.kernels.torch.class_softmax import own_parts
from lnml.kernels.torch.softmax import MomentSums, exponent_factors

# Most rows of a tile: the fewer, the fewer pairs of a block with itself are met twice.
TILE_ROWS = 2048
# Arrays of the size of a tile that live at the same time.
TILE_COPIES = 4


class CellWeights:
    """The weights of the pairs of a cell: each pair is met once, and counts for both its rows.

    Parameters
    ----------
    z : list of tensors of shape (n_b, r)
        Coordinates of one block, or of two.
    codes : list of ndarrays of int
        Their classes.
    room : int
        Bytes that tiles may take.
    """

    def __init__(self, z: list[torch.Tensor], codes: list[np.ndarray], room: int) -> None:
        self.z, self.sizes, self.room = torch.cat(z), [len(rows) for rows in z], room
        starts = class_starts(codes)
        # Columns are those of the other block, numbered after the first.
        self.begin = 0 if len(z) == 1 else self.sizes[0]
        self.row_start, self.column_start = starts[0], starts[-1] + self.begin
        # Half an exponent, so that a power has room for half the shift, and is squared then.
        self.left, self.right = exponent_factors(self.z, 0.5)
        self.shift = 2.0 ** (0.5 * SHIFT["float64" if self.z.itemsize == 8 else "float32"])

    def tiles(self) -> Iterator[tuple[slice, slice, torch.Tensor]]:
        """Rows, columns and weights of every tile; the next one overwrites the weights."""
        n, end = self.z.shape[0], self.sizes[0]
        rows_at_once = self.room // (TILE_COPIES * (n - self.begin) * self.z.itemsize)
        for lo, hi in row_tiles(end, min(rows_at_once, TILE_ROWS)):
            first = self.begin or lo
            weights = self.left[lo:hi] @ self.right[first:].T
            # A negative squared distance is rounding.
            weights.clamp_(max=0.0).exp2_().mul_(self.shift).square_()
            if not self.begin:
                weights[:, : hi - lo].triu_(1)
            yield slice(lo, hi), slice(first, n), weights

    def _own_parts(
        self, rows: slice, columns: slice, weights: torch.Tensor
    ) -> list[tuple[slice, slice, torch.Tensor]]:
        """Rows, columns and weights of the parts of a tile within a class."""
        return own_parts(weights, rows, columns, self.row_start, self.column_start)

    def totals(self) -> list[torch.Tensor]:
        """Return sums of weights by kind of partner: other classes, and the row's: (2, n_b)."""
        other, own = totals = float64_zeros((2, self.z.shape[0]), self.z)
        for tile in self.tiles():
            for part in self._own_parts(*tile):
                _add_sums(own, *part)
                part[2].zero_()
            _add_sums(other, *tile)
        return list(totals.split(self.sizes, dim=1))

    def moment(self, data: list[torch.Tensor], factors: list[np.ndarray], full: bool) -> np.ndarray:
        """V^T Lap(S) X, S_ij = (factor_i + factor_j) times the weight of the pair.

        V are the data if ``full``, else the coordinates. ``factors`` are as kinds of totals.
        """
        z = self.z
        rows_of_cell = Points(torch.cat(data).to(z.dtype), np.array([0, z.shape[0]]))
        sums = MomentSums(Embedding(z, rows_of_cell), full)
        other, own = to_tensor(np.concatenate(factors, axis=1), z.device, z.dtype)
        degree = float64_zeros(z.shape[:1], z)
        ones = torch.ones_like(degree)
        for rows, columns, weights in self.tiles():
            inside = [
                (part, part * (own[i, None] + own[j]))
                for i, j, part in self._own_parts(rows, columns, weights)
            ]
            weights *= other[rows, None] + other[columns]
            for part, found in inside:
                part.copy_(found)
            degree[rows] += weights.sum(dim=1, dtype=torch.float64)
            sums.add(rows, columns, weights, ones[rows])
        return sums.moment(degree)


def _add_sums(totals: torch.Tensor, rows: slice, columns: slice, weights: torch.Tensor) -> None:
    """Add weights to the totals (n,) of their rows and of their columns."""
    totals[rows] += weights.sum(dim=1, dtype=torch.float64)
    totals[columns] += weights.sum(dim=0, dtype=torch.float64)
