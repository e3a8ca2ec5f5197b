"""Softmax sums that tell rows of the same class from others, for NCA.

The columns of a row's own class are one range, since rows are sorted by class.
"""

from __future__ import annotations

import numpy as np
import torch

from lnml.core.points import Embedding
from lnml.kernels.torch.softmax import blocks, moment_sums


def class_softmax(embedding: Embedding, full: bool | None, room: int) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.class_softmax`."""
    sums = None if full is None else moment_sums(embedding, full)
    start = embedding.points.class_start
    everything, shares = slice(0, embedding.points.n_rows), []
    for block in blocks(embedding, room):
        own_rows = slice(block.lo, block.hi)
        parts = own_parts(block.weights, own_rows, everything, start, start)
        own = torch.cat([part.sum(dim=1, dtype=torch.float64) for _, _, part in parts])
        share = (own / block.totals).clamp(max=1.0)
        shares.append(share)
        if sums is None:
            continue
        inside = 1.0 / block.totals
        outside = -share * inside
        sums.add(own_rows, everything, block.weights, outside)
        for rows, columns, part in parts:
            factors = inside[rows.start - block.lo : rows.stop - block.lo]
            sums.add(rows, columns, part, factors)
    total = float((1.0 - torch.cat(shares)).sum())
    # Rows of W sum to zero.
    return total, np.zeros((0, 0)) if sums is None else sums.moment()


def own_parts(
    weights: torch.Tensor,
    rows: slice,
    columns: slice,
    row_start: np.ndarray,
    column_start: np.ndarray,
) -> list[tuple[slice, slice, torch.Tensor]]:
    """Rows, columns and weights of the parts of a tile within a class.

    Parameters
    ----------
    weights : tensor of shape (m, n)
        The tile.
    rows, columns : slices
        Which rows and columns these are.
    row_start, column_start : ndarrays of shape (n_classes + 1,)
        Where each class begins among the rows, and among the columns.
    """
    first, last = np.searchsorted(row_start, [rows.start, rows.stop - 1], side="right") - 1
    parts = []
    for code in range(int(first), int(last) + 1):
        inside = _common(rows, row_start[code : code + 2])
        within = _common(columns, column_start[code : code + 2])
        if inside.start < inside.stop and within.start < within.stop:
            part = weights[
                inside.start - rows.start : inside.stop - rows.start,
                within.start - columns.start : within.stop - columns.start,
            ]
            parts.append((inside, within, part))
    return parts


def _common(span: slice, edges: np.ndarray) -> slice:
    """Return the part of a range between two edges."""
    begin, end = (int(edge) for edge in edges)
    return slice(max(begin, span.start), min(end, span.stop))
