"""Kernels that a GPU runs in one go, written in Triton: sums over the pairs of a row.

One program works on one row (or block of pairs) alone and adds in a fixed order,
so that results do not vary from run to run. Where Triton or a GPU is missing,
the same sums are made of torch operations; the tests compare both with NumPy.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import torch

from lnml.kernels.torch.arrays import float64_zeros
from lnml.kernels.torch.patterns import PIECE, Joined, row_sums

try:
    import triton

    from lnml.kernels.torch import programs
except ModuleNotFoundError as error:
    if error.name not in ("triton", "triton.language"):
        raise
    triton = None

if TYPE_CHECKING:
    from lnml.kernels.torch.hinge import Triplets

# Pairs and coordinates that a program works on at once, found by measurement (docs/gpu.md).
DISTANCES = {"PAIRS": 8, "COORDINATES": 64, "num_warps": 1}
HINGE = {"PAIRS": 8, "COORDINATES": 64, "num_warps": 1}
LAPLACIAN = {"PAIRS": 8, "COORDINATES": 64, "num_warps": 1}
COUNT = {"BLOCKS": 8, "num_warps": 4}
LIST = {"COLUMNS": 512, "num_warps": 1}
ROW = {"COLUMNS": 4096, "num_warps": 8}


def usable(values: torch.Tensor) -> bool:
    """Whether the fused kernels can work on these values."""
    if triton is None:
        return False
    return values.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"


def pair_distances(
    left: torch.Tensor, rows: torch.Tensor, right: torch.Tensor, columns: torch.Tensor
) -> torch.Tensor:
    """See :func:`lnml.kernels.torch.distances.pair_distances`."""
    out = torch.empty(rows.shape[0], dtype=left.dtype, device=left.device)
    if rows.shape[0]:
        grid = (triton.cdiv(rows.shape[0], DISTANCES["PAIRS"]),)
        programs.distances[grid](
            left, rows, right, columns, out, rows.shape[0], left.shape[1], **DISTANCES
        )
    return out


def hinge(triplets: Triplets, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`lnml.kernels.torch.hinge.sum_slots`."""
    candidates, table, z = triplets.candidates, triplets.table, triplets.z
    rows, starts, offsets = candidates.pieces
    sums = float64_zeros((rows.shape[0], table.shape[1], 2), z)
    totals = float64_zeros((rows.shape[0], 4), z)
    candidate_weights = float64_zeros((candidates.size,), z)
    if rows.shape[0] == 0:
        return totals.sum(dim=0), candidate_weights, row_sums(sums, offsets)
    has_previous = triplets.previous is not None
    # Triton takes numbers in float32, so this one comes in two halves.
    upper = float(np.float32(gamma))
    programs.hinge[(rows.shape[0],)](
        z, rows, starts, candidates.indptr, candidates.indices, table,
        triplets.previous if has_previous else table,
        candidate_weights, sums, totals,
        triplets.first_row, z.shape[1], table.shape[1], upper, gamma - upper,
        HAS_PREVIOUS=has_previous, SMOOTH=gamma > 0.0,
        SLOTS=triton.next_power_of_2(table.shape[1]), PIECE=PIECE, **HINGE,
    )  # fmt: skip
    return totals.sum(dim=0), candidate_weights, row_sums(sums, offsets)


def laplacian(graph: Joined, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """See :func:`lnml.kernels.torch.laplacian.sum_pairs`."""
    rows, starts, offsets = graph.pairs.pieces
    width = values.shape[1]
    sums = torch.empty((rows.shape[0], width), dtype=torch.float64, device=values.device)
    if rows.shape[0]:
        programs.laplacian[(rows.shape[0], triton.cdiv(width, LAPLACIAN["COORDINATES"]))](
            values, rows, starts, graph.pairs.indptr, graph.pairs.indices, graph.places, weights,
            sums, width, PIECE=PIECE, **LAPLACIAN,
        )  # fmt: skip
    return row_sums(sums, offsets)


class Lister:
    """See :class:`lnml.kernels.torch.passing._Lister`."""

    def __init__(self, scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor) -> None:
        self.tile = (scores, limits, left_out)
        self.n_blocks = triton.cdiv(scores.shape[1], LIST["COLUMNS"])
        shape = (scores.shape[0], self.n_blocks)
        self.in_block = torch.empty(shape, dtype=torch.int32, device=scores.device)
        grid = (scores.shape[0], triton.cdiv(self.n_blocks, COUNT["BLOCKS"]))
        programs.count_passing[grid](
            *self.tile, self.in_block, scores.shape[1], self.n_blocks,
            COLUMNS=LIST["COLUMNS"], **COUNT,
        )  # fmt: skip
        self.counts = self.in_block.sum(dim=1)

    def columns(self, lo: int, hi: int, total: int) -> torch.Tensor:
        """Return the passing columns of rows lo..hi."""
        scores = self.tile[0]
        counts = self.counts[lo:hi]
        columns = torch.empty(total, dtype=torch.int32, device=scores.device)
        programs.list_passing[(hi - lo,)](
            *self.tile, self.in_block, counts.cumsum(0) - counts, columns,
            lo, scores.shape[1], self.n_blocks, **LIST,
        )  # fmt: skip
        return columns


def exponentiate(exponents: torch.Tensor, first_row: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn a block of softmax exponents into weights, in place.

    Returns the sum of the weights of each row and its largest exponent; see
    :class:`lnml.kernels.torch.softmax.Block`.
    """
    n_rows, n = exponents.shape
    totals = torch.empty(n_rows, dtype=torch.float64, device=exponents.device)
    largest = torch.empty(n_rows, dtype=exponents.dtype, device=exponents.device)
    programs.exponentiate[(n_rows,)](exponents, totals, largest, first_row, n, **ROW)
    return totals, largest
