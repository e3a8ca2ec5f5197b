"""Softmax sums of the CPU over the pairs of a cell.

Weights are powers of two, shifted as in :mod:`lnml.kernels.cpu.pair_weights`.
"""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.exponential import CONSTANTS
from lnml.kernels.cpu.pair_weights import BLOCK, GROUPS, add_products, add_totals
from lnml.kernels.cpu.products import centred, gram
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# In these units exp(-D) is 2 to the power of minus the squared distance.
UNIT = np.sqrt(1.0 / np.log(2.0))


class CellPowers:
    """The weights of the pairs of a cell: each pair is met once, and counts for both its rows.

    Parameters
    ----------
    z : list of ndarrays of shape (n_b, r)
        Coordinates of one block, or of two.
    codes : list of ndarrays of int
        Their classes.
    """

    def __init__(self, z: list[np.ndarray], codes: list[np.ndarray]) -> None:
        self.sizes = [len(rows) for rows in z]
        self.z = np.concatenate(z)
        near = centred(self.z)
        near *= near.dtype.type(UNIT)
        every = np.concatenate(codes)
        n, first = len(near), self.sizes[0]
        alone = len(z) == 1
        begin = 0 if alone else first
        own_first = begin + np.searchsorted(every[begin:], every, side="left")
        own_end = begin + np.searchsorted(every[begin:], every, side="right")
        tiles = [(lo + begin, hi + begin) for lo, hi in row_tiles(n - begin, BLOCK)]
        ahead = [near[:begin].T.ravel()] if begin else []
        columns = np.concatenate([*ahead, *(2 * near[lo:hi].T.ravel() for lo, hi in tiles)])
        norms = np.einsum("ij,ij->i", near, near)
        self.rows = (near, columns, norms, own_first, own_end)
        self.window = (n, 0) if alone else (first, first)
        self.groups = range(min(GROUPS, -(-self.window[0] // BLOCK)))
        self.constants = CONSTANTS[near.dtype.name]

    def totals(self) -> list[np.ndarray]:
        """Return sums of weights by kind of partner: other classes, and the row's: (2, n_b)."""
        n = sum(self.sizes)

        def of_group(group: int) -> np.ndarray:
            totals = np.zeros((2, n))
            add_totals(self.rows, self.window, self.constants, group, totals)
            return totals

        found = np.zeros((2, n))
        for part in run_tiles(of_group, self.groups):
            found += part
        return np.split(found, np.cumsum(self.sizes)[:-1], axis=1)

    def moment(self, data: list[np.ndarray], factors: list[np.ndarray], full: bool) -> np.ndarray:
        """V^T Lap(S) X, S_ij = (factor_i + factor_j) times the weight of the pair.

        V are the data if ``full``, else the coordinates.
        """
        kind = self.z.dtype
        X = centred(np.concatenate(data).astype(kind, copy=False))
        values = X if full else centred(self.z)
        n, width = values.shape
        product, degree = np.zeros((n, width)), np.zeros(n)
        every = np.concatenate(factors, axis=1).astype(kind)

        def of_group(group: int) -> tuple[np.ndarray, np.ndarray]:
            part, mirrored = np.zeros(n), np.zeros((0 if full else n, width))
            add_products(
                self.rows, self.window, self.constants, group, every, values, part, product,
                mirrored,
            )  # fmt: skip
            return part, mirrored

        for part, mirrored in run_tiles(of_group, self.groups):
            degree += part
            product[: len(mirrored)] += mirrored
        if full:
            half = gram(0.5 * degree[:, None] * X - product, X)
            return half + half.T
        return gram(degree[:, None] * values - product, X)
