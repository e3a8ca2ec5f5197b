"""Softmax sums over all pairs of rows, a block of rows at a time: no n x n array.

One matrix product gives the exponents of all pairs: two columns appended to the
coordinates hold the squared norms. Distances are in units of log 2, so that the
exponential is a power of two. Of points that are far, squared distances and moments
come from differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from lnml.core.points import Embedding
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import centred, float64_zeros, squared_norms
from lnml.kernels.torch.columns import gram
from lnml.kernels.torch.differences import DifferenceSums, rows_per_block, squared_differences
from lnml.kernels.torch.patterns import TorchPattern

# Columns whose weighted values are summed in the type of the data; beyond in float64.
SUMMED_COLUMNS = 8192
ALIGNMENT = 4


class Block(NamedTuple):
    """Softmax weights of rows lo..hi, unnormalised: the largest of each row is one.

    ``totals`` are their sums in float64, ``largest`` minus the squared distance (in
    units of log 2) of the nearest row.
    """

    lo: int
    hi: int
    weights: torch.Tensor
    totals: torch.Tensor
    largest: torch.Tensor

    @property
    def log_z(self) -> torch.Tensor:
        """Logs of the sums of exp(-D_ij)."""
        return self.totals.log() + math.log(2.0) * self.largest.double()


def blocks(embedding: Embedding, room: int) -> Iterator[Block]:
    """Weights of all rows, block by block; a block is overwritten by the next."""
    far = embedding.points.far
    for lo, weights in (_differences if far else _products)(embedding, room):
        fast = weights.dtype == torch.float32 and fused.usable(weights)
        totals, largest = (fused.exponentiate if fast else _exponentiate)(weights, lo)
        yield Block(lo, lo + weights.shape[0], weights, totals, largest)


def _products(embedding: Embedding, room: int) -> Iterator[tuple[int, torch.Tensor]]:
    """First row and exponents of each block, from a matrix product."""
    left, right = exponent_factors(embedding.coordinates)
    n = right.shape[0]
    step = max(1, min(room // (2 * n * right.itemsize), n))
    buffer = torch.empty((step, n), dtype=right.dtype, device=right.device)
    for lo, hi in row_tiles(n, step):
        yield lo, torch.mm(left[lo:hi], right.T, out=buffer[: hi - lo])


def exponent_factors(
    coordinates: torch.Tensor, share: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two matrices whose rows have minus the squared distance as their product.

    It is in units of log 2, times ``share``.
    """
    z = centred(coordinates) * math.sqrt(share / math.log(2.0))
    norms, ones = squared_norms(z)[:, None], torch.ones_like(z[:, :1])
    # Columns of zeros: products are fastest where the width is a multiple of ALIGNMENT.
    filling = torch.zeros_like(ones).expand(-1, -(z.shape[1] + 2) % ALIGNMENT)
    left = torch.cat([2.0 * z, -norms, ones, filling], dim=1)
    return left, torch.cat([z, ones, -norms, filling], dim=1)


def _differences(embedding: Embedding, room: int) -> Iterator[tuple[int, torch.Tensor]]:
    """First row and exponents of each block, from differences, in float64."""
    z = embedding.coordinates
    for lo, hi in row_tiles(z.shape[0], rows_per_block(z.shape[0], room)):
        yield lo, squared_differences(z[lo:hi], z).mul_(-1.0 / math.log(2.0))


def _exponentiate(exponents: torch.Tensor, first_row: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn the exponents of a block into weights, in place; their sums and the largest exponents.

    A row has no weight for itself.
    """
    # A negative squared distance is rounding.
    exponents.clamp_(max=0.0)
    exponents.diagonal(first_row).fill_(-torch.inf)
    largest = exponents.amax(dim=1)
    exponents.sub_(largest[:, None]).exp2_()
    return exponents.sum(dim=1, dtype=torch.float64), largest


def log_normalizers(embedding: Embedding, room: int) -> torch.Tensor:
    """Log of Z_i for every row, streamed."""
    return torch.cat([block.log_z for block in blocks(embedding, room)])


def softmax(
    embedding: Embedding, counts: torch.Tensor, full: bool | None, room: int
) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax`; ``counts`` says which rows count."""
    if full is None:
        return float(log_normalizers(embedding, room)[counts].sum()), np.zeros((0, 0))
    sums = moment_sums(embedding, full)
    row_weights = counts.double()
    log_z = []
    for block in blocks(embedding, room):
        log_z.append(block.log_z)
        factors = row_weights[block.lo : block.hi] / block.totals
        sums.add(slice(block.lo, block.hi), slice(None), block.weights, factors)
    return float(torch.cat(log_z)[counts].sum()), sums.moment(row_weights)


def softmax_costs(
    embedding: Embedding, pairs: TorchPattern, distances: torch.Tensor, room: int
) -> torch.Tensor:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax_costs`."""
    sizes = pairs.sizes.double()
    row_terms = log_normalizers(embedding, room) - sizes.clamp(min=1.0).log()
    return (distances + row_terms[pairs.rows]) / sizes[pairs.rows]


def times_values(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Weights @ values, summed in float64 over ranges of columns."""
    total = float64_zeros((weights.shape[0], values.shape[1]), values)
    for lo, hi in row_tiles(values.shape[0], SUMMED_COLUMNS):
        total += weights[:, lo:hi] @ values[lo:hi]
    return total


def moment_sums(embedding: Embedding, full: bool) -> MomentSums | DifferenceSums:
    """Return sums of a moment, without weights yet, computed as the points need it."""
    if not embedding.points.far:
        return MomentSums(embedding, full)
    data = embedding.points.data
    return DifferenceSums(data, data if full else embedding.coordinates)


class MomentSums:
    """Sums behind V^T Lap(W + W^T) data for weights W that come in blocks of rows.

    Parameters
    ----------
    embedding : Embedding
        The rows.
    full : bool
        Whether V are the data: then W @ data is enough. Else they are the coordinates.
    """

    def __init__(self, embedding: Embedding, full: bool) -> None:
        self.full = full
        self.data = centred(embedding.points.data)
        self.values = self.data if full else centred(embedding.coordinates)
        shape = self.values.shape
        self.degree = float64_zeros(shape[:1], self.data)
        self.row_sums = float64_zeros(shape, self.data)
        self.column_sums = float64_zeros((0, 0) if full else shape, self.data)

    def add(
        self, rows: slice, columns: slice, weights: torch.Tensor, factors: torch.Tensor
    ) -> None:
        """Add the part of W at some rows and columns: factors (one a row) * weights."""
        row_sums = times_values(weights, self.values[columns])
        self.row_sums[rows] += factors[:, None] * row_sums
        factors = factors.to(weights.dtype)[:, None]
        if self.full:
            self.degree[columns] += (weights.T @ factors)[:, 0]
            return
        # One product for both: reading the weights is what takes time in few dimensions.
        sums = weights.T @ torch.cat([factors * self.values[rows], factors], dim=1)
        self.column_sums[columns] += sums[:, :-1]
        self.degree[columns] += sums[:, -1]

    def moment(self, row_degree: torch.Tensor | None = None) -> np.ndarray:
        """V^T Lap(W + W^T) data, given what the rows of W sum to; None stands for zeros."""
        degree = self.degree if row_degree is None else row_degree + self.degree
        if self.full:
            half = gram(0.5 * degree[:, None] * self.values - self.row_sums, self.data, exact=True)
            return half + half.T
        moved = degree[:, None] * self.values - self.row_sums - self.column_sums
        return gram(moved, self.data, exact=True)
