"""Fused GPU kernels, written in Triton: sums over the pairs of a row.

One program works on one row, or on a block of pairs, and adds in a fixed order, so
that results do not vary from run to run. Without Triton or a GPU the same sums are
computed by torch operations. The tests compare both with NumPy.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lnml.kernels.torch import first_use
from lnml.kernels.torch.basics import MOST_COORDINATES, float64_zeros

if TYPE_CHECKING:
    from lnml.kernels.torch.hinge import Triplets
    from lnml.kernels.torch.working_set import Joined

# Candidates of a row that one program goes through: their places must fit into a byte.
PIECE = 128
# Pairs and coordinates that a program works on at once, found by measurement (docs/gpu.md).
DISTANCES = {"PAIRS": 8, "COORDINATES": 64, "num_warps": 1}
HINGE = {"PAIRS": 8, "COORDINATES": 16, "num_warps": 2}
LAPLACIAN = {"WORD": 32, "PAIRS": 2, "num_warps": 1}
FOLLOW = {"COORDINATES": 256, "num_warps": 1}
# Pairs of the joined lists that one program goes through: most have no weight.
LONG_PIECE = 512
# Triton loads 16 bytes at a time if widths are a multiple of this; few columns are not worth it.
ALIGNMENT = 16
LEAST_ALIGNED = 32
# Columns whose passing entries are counted together; a count fits into a byte.
BLOCK = 128
# Bytes that a Lister takes for one pair: its bit, and its share of a count.
LISTER_BYTES = 1 / 8 + 1 / BLOCK
# Blocks that one program goes through.
SPAN = 16
MARK_SCORES = {"ROWS": 64, "num_warps": 4}
# The width of a product is a multiple of this; at most so many columns are multiplied at once: all
# of them, or those of parts, longer ones where the width is a multiple of that.
PRODUCT_DEPTH = 32
MOST_DEPTH = 128
LONG_PART = 64
MARK_WHOLE = {"ROWS": 128, "num_warps": 4, "num_stages": 2}
MARK_PARTS = {"ROWS": 128, "num_warps": 4, "num_stages": 3}
LIST = {"BLOCK": BLOCK, "num_warps": 1}
ROW = {"COLUMNS": 4096, "num_warps": 8}


def usable(values: torch.Tensor) -> bool:
    """Whether the fused kernels can work on these values."""
    if values.is_cuda:
        return first_use.triton_ready(values.device)
    return os.environ.get("TRITON_INTERPRET") == "1" and first_use.installed()


def _programs() -> Any:
    """Return the programs, which import Triton: nothing else here does."""
    from lnml.kernels.torch import programs

    return programs


def _parts(size: int, length: int) -> int:
    """Return how many parts of a length there are in a size, the last one perhaps shorter."""
    return -(-size // length)


def _power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least a size."""
    return 1 << (size - 1).bit_length()


def pair_distances(
    left: torch.Tensor, rows: torch.Tensor, right: torch.Tensor, columns: torch.Tensor
) -> torch.Tensor:
    """See :func:`lnml.kernels.torch.distances.pair_distances`."""
    out = torch.empty(rows.shape[0], dtype=left.dtype, device=left.device)
    if rows.shape[0]:
        grid = (_parts(rows.shape[0], DISTANCES["PAIRS"]),)
        _programs().distances[grid](
            left, rows, right, columns, out, rows.shape[0], left.shape[1], **DISTANCES
        )
    return out


def hinge(triplets: Triplets, gamma: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`lnml.kernels.torch.hinge.sum_slots`."""
    candidates, table, z = triplets.candidates, triplets.table, triplets.z
    rows, starts, offsets = candidates.pieces(PIECE)
    sums = float64_zeros((rows.shape[0], table.shape[1], 2), z)
    totals = float64_zeros((rows.shape[0], 4), z)
    candidate_weights = float64_zeros((candidates.size,), z)
    if rows.shape[0] == 0:
        return totals.sum(dim=0), candidate_weights, _of_rows(sums, offsets, torch.float64)
    has_previous, bounds = triplets.previous is not None, triplets.bounds
    # Triton takes numbers in float32, so this one comes in two halves.
    upper = float(np.float32(gamma))
    _programs().hinge[(rows.shape[0],)](
        z, rows, starts, candidates.indptr, candidates.indices, table,
        triplets.previous if has_previous else table,
        *((bounds.roots, bounds.drift, bounds.near) if bounds else (table, table, table)),
        candidate_weights, sums, totals,
        triplets.first_row, z.shape[1], table.shape[1], upper, gamma - upper,
        bounds.slack if bounds else 0.0,
        HAS_PREVIOUS=has_previous, SMOOTH=gamma > 0.0, SCREENED=bounds is not None,
        SLOTS=_power_of_two(table.shape[1]), PIECE=PIECE, **HINGE,
    )  # fmt: skip
    return totals.sum(dim=0), candidate_weights, _of_rows(sums, offsets, torch.float64)


def _of_rows(sums: torch.Tensor, offsets: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Add up the pieces of every row, in their order."""
    out = torch.empty((offsets.shape[0] - 1, *sums.shape[1:]), dtype=dtype, device=sums.device)
    width = out[:1].numel()
    if out.numel():
        at_once = min(_power_of_two(width), MOST_COORDINATES)
        grid = (out.shape[0], _parts(width, at_once))
        _programs().add_pieces[grid](sums, offsets, out, width, COORDINATES=at_once, num_warps=1)
    return out


def follow(z: torch.Tensor, last: torch.Tensor, drift: torch.Tensor, slack: float) -> None:
    """Add to drift how far rows moved since ``last``, which becomes z; see screen.py."""
    if z.shape[0]:
        _programs().follow[(z.shape[0],)](z, last, drift, z.shape[1], slack, **FOLLOW)


def aligned(values: torch.Tensor) -> torch.Tensor:
    """Return rows with columns of zeros up to a width whose rows are loaded fastest."""
    missing = -values.shape[1] % ALIGNMENT
    if missing == 0 or values.shape[1] < LEAST_ALIGNED:
        return values
    return torch.nn.functional.pad(values, (0, missing))


def laplacian(graph: Joined, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """See :func:`lnml.kernels.torch.laplacian.sum_pairs`."""
    rows, starts, offsets = graph.pairs.pieces(LONG_PIECE)
    width = values.shape[1]
    sums = torch.empty((rows.shape[0], width), dtype=torch.float64, device=values.device)
    if rows.shape[0]:
        at_once = min(_power_of_two(width), MOST_COORDINATES)
        _programs().laplacian[(rows.shape[0], _parts(width, at_once))](
            values, rows, starts, graph.pairs.indptr, graph.pairs.indices, graph.places, weights,
            sums, width, PIECE=LONG_PIECE, COORDINATES=at_once, **LAPLACIAN,
        )  # fmt: skip
    return _of_rows(sums, offsets, values.dtype)


class Lister:
    """Entries of a tile that reach the limit of their row: a bit for each, counts by row.

    Parameters
    ----------
    limits : tensor of shape (m,)
        One for each row.
    left_out : tensor of shape (m, 2), int64
        Range of columns of each row that never pass.
    n : int
        Number of columns.
    """

    def __init__(self, limits: torch.Tensor, left_out: torch.Tensor, n: int) -> None:
        self.limits, self.left_out, self.n = limits, left_out, n
        self.n_rows, self.n_blocks = limits.shape[0], SPAN * _parts(n, SPAN * BLOCK)
        shape, device = (self.n_rows, self.n_blocks), limits.device
        self.marks = torch.empty((*shape, BLOCK // 32), dtype=torch.int32, device=device)
        self.in_block = torch.empty(shape, dtype=torch.uint8, device=device)

    @classmethod
    def of_scores(
        cls, scores: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor
    ) -> Lister:
        """Entries of scores (m, n) that pass."""
        lister = cls(limits, left_out, scores.shape[1])
        lister._mark(_programs().mark_scores, MARK_SCORES, scores)
        return lister

    @classmethod
    def of_product(
        cls, left: torch.Tensor, right: torch.Tensor, limits: torch.Tensor, left_out: torch.Tensor
    ) -> Lister:
        """Entries of left @ right^T, (m, w) @ (w, n), that pass; the product is not stored."""
        lister = cls(limits, left_out, right.shape[0])
        width = left.shape[1]
        # All at once if that is a power of two: rows are then loaded once for a whole span.
        if width <= MOST_DEPTH and width & (width - 1) == 0:
            settings = {"DEPTH": width, **MARK_WHOLE}
        else:
            depth = PRODUCT_DEPTH if width % LONG_PART else LONG_PART
            settings = {"DEPTH": depth, **MARK_PARTS}
        lister._mark(_programs().mark_product, {"WIDTH": width, **settings}, left, right)
        return lister

    def _mark(self, program: Any, settings: dict[str, int], *tile: torch.Tensor) -> None:
        grid = (_parts(self.n_rows, settings["ROWS"]), self.n_blocks // SPAN)
        program[grid](
            *tile, self.limits, self.left_out, self.marks, self.in_block,
            self.n_rows, self.n, self.n_blocks, BLOCK=BLOCK, SPAN=SPAN, **settings,
        )  # fmt: skip
        self.counts = self.in_block.sum(dim=1)

    def columns(self, lo: int, hi: int, total: int) -> torch.Tensor:
        """Return the passing columns of rows lo..hi, ``total`` in number."""
        columns = torch.empty(total, dtype=torch.int32, device=self.in_block.device)
        in_block = self.in_block[lo:hi].reshape(-1)
        blocks = torch.nonzero(in_block)[:, 0]
        if blocks.shape[0]:
            counts = in_block[blocks].long()
            _programs().list_marked[(blocks.shape[0],)](
                self.marks, blocks, counts.cumsum(0) - counts, columns,
                lo, self.n_blocks, **LIST,
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
    _programs().exponentiate[(n_rows,)](exponents, totals, largest, first_row, n, **ROW)
    return totals, largest
