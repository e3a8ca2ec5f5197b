"""Softmax sums that tell rows of the same class from others, for NCA.

The columns of a row's own class are one range, since rows are sorted by class.
"""

from __future__ import annotations

import numpy as np
import torch

from lnml.core.points import Embedding
from lnml.kernels.torch.softmax import Block, blocks, moment_sums


def class_softmax(embedding: Embedding, full: bool, room: int) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.class_softmax`."""
    sums = moment_sums(embedding, full)
    shares = []
    for block in blocks(embedding, room):
        parts = list(_own_parts(block, embedding.points.class_start))
        own = torch.cat([part.sum(dim=1, dtype=torch.float64) for _, _, part in parts])
        share = (own / block.totals).clamp(max=1.0)
        shares.append(share)
        inside = 1.0 / block.totals
        outside = -share * inside
        sums.add(slice(block.lo, block.hi), slice(None), block.weights, outside)
        for rows, columns, part in parts:
            factors = inside[rows.start - block.lo : rows.stop - block.lo]
            sums.add(rows, columns, part, factors)
    # Rows of W sum to zero.
    return float((1.0 - torch.cat(shares)).sum()), sums.moment()


def _own_parts(block: Block, class_start: np.ndarray) -> list[tuple[slice, slice, torch.Tensor]]:
    """Rows, columns and weights of the parts of a block within a class."""
    first, last = np.searchsorted(class_start, [block.lo, block.hi - 1], side="right") - 1
    parts = []
    for code in range(int(first), int(last) + 1):
        begin, end = (int(edge) for edge in class_start[code : code + 2])
        rows = slice(max(begin, block.lo), min(end, block.hi))
        if rows.start < rows.stop:
            inside = block.weights[rows.start - block.lo : rows.stop - block.lo, begin:end]
            parts.append((rows, slice(begin, end), inside))
    return parts
