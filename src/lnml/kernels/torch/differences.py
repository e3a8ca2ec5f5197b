"""Sums over pairs of rows that lie far from each other, from differences of rows.

See :mod:`lnml.kernels.cpu.differences`. One coordinate is worked on at a time, for a
block of pairs, in float64.
"""

from __future__ import annotations

import numpy as np
import torch

from lnml.kernels.torch.basics import float64_zeros
from lnml.kernels.torch.columns import gram

# Arrays of the size of a block, in float64, that live at the same time.
BLOCK_COPIES = 4


def rows_per_block(n_columns: int, room: int) -> int:
    """Rows of a block of this many columns, ``room`` being the bytes that there are."""
    return max(1, room // (BLOCK_COPIES * n_columns * 8))


def squared_differences(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Squared distances of all rows of left (m, r) from those of right (n, r), in float64."""
    total = float64_zeros((left.shape[0], right.shape[0]), left)
    for k in range(left.shape[1]):
        difference = left[:, k, None].double() - right[:, k].double()
        total.addcmul_(difference, difference)
    return total


class DifferenceSums:
    """V^T Lap(W + W^T) data for weights W that come in blocks.

    Parameters
    ----------
    data : tensor of shape (n, d)
        The rows.
    values : tensor of shape (n, m)
        V: the data or their coordinates.
    """

    def __init__(self, data: torch.Tensor, values: torch.Tensor) -> None:
        self.data, self.values = data, values
        self.sums = float64_zeros(values.shape, values)

    def add(
        self,
        rows: slice,
        columns: slice,
        weights: torch.Tensor,
        factors: torch.Tensor | None = None,
    ) -> None:
        """Add the part of W at some rows and columns: weights, times the factors of rows."""
        scaled = weights if factors is None else factors[:, None] * weights
        for k in range(self.values.shape[1]):
            column = self.values[:, k].double()
            moved = column[rows, None] - column[columns]
            moved *= scaled
            self.sums[rows, k] += moved.sum(dim=1)
            self.sums[columns, k] -= moved.sum(dim=0)

    def moment(self, row_degree: torch.Tensor | None = None) -> np.ndarray:
        """V^T Lap(W + W^T) data, in float64; differences need no degrees."""
        found = gram(self.sums, self.data, exact=True)
        return 0.5 * (found + found.T) if self.values is self.data else found
