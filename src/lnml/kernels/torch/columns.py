"""Data are sorted, scaled and mapped before a fit; statistics of columns; sums over all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from lnml.core.points import Columns, Points
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import float64_zeros, to_numpy, to_tensor

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256
# Rows that are widened to float64 at once.
_ROWS_PER_TILE = 65536
# Rows whose products are summed in float32.
_FLOAT32_ROWS = 1024


def training_points(X: torch.Tensor, order: np.ndarray, class_start: np.ndarray) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.training_points`."""
    mean = X.mean(dim=0, dtype=torch.float64)
    nearest = (X - mean).abs().argmin(dim=0)
    lowest, highest = X.amin(dim=0), X.amax(dim=0)
    ends = torch.stack([lowest, highest]).abs()
    # Sterbenz: the difference of two numbers is exact if neither is longer than twice the other.
    exact = (lowest.sign() == highest.sign()) & (0.5 * ends.amax(dim=0) <= ends.amin(dim=0))
    centre = torch.where(exact, X.gather(0, nearest[None]), 0.0)
    points = Points(X[to_tensor(order, X.device)] - centre, class_start)
    middle = X[:: max(1, X.shape[0] // SAMPLE)].abs().median(dim=0).values
    sizes = to_numpy(torch.stack([ends.amax(dim=0), middle]).double())
    return replace(points, rounding=0.5 * points.precision * sizes)


def columns(points: Points) -> Columns:
    """See :meth:`lnml.kernels.protocol.Kernels.columns`."""
    data = points.data
    mean = data.mean(dim=0, dtype=torch.float64)
    squares = torch.zeros_like(mean)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        squares += (data[lo:hi] - mean).square().sum(dim=0)
    spread = (squares / points.n_rows).sqrt()
    found = torch.stack([mean, spread, data.amin(dim=0).double(), data.amax(dim=0).double()])
    return Columns(*to_numpy(found))


def standardized(points: Points, mean: np.ndarray, scale: np.ndarray) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.standardized`."""
    data = points.data
    shift, divisor = to_tensor(mean, data.device), to_tensor(scale, data.device)
    out = torch.empty_like(data)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        out[lo:hi] = (data[lo:hi] - shift) / divisor
    return Points(out, points.class_start)


def mapped(points: Points, matrix: np.ndarray, shift: np.ndarray | None, far: bool) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.mapped`."""
    data = points.data
    moved = None if shift is None else to_tensor(shift, data.device, torch.float64)
    right = to_tensor(matrix, data.device, torch.float64)
    out = torch.empty((points.n_rows, right.shape[1]), dtype=data.dtype, device=data.device)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        rows = data[lo:hi].double()
        out[lo:hi] = (rows if moved is None else rows - moved) @ right
    return Points(out, points.class_start, far)


def row_classes(points: Points) -> torch.Tensor:
    """Class code of every row, on the device."""
    device = points.data.device
    sizes = to_tensor(np.diff(points.class_start), device)
    codes = torch.arange(sizes.shape[0], device=device)
    return torch.repeat_interleave(codes, sizes, output_size=points.n_rows)


def class_scatter(points: Points, weights: np.ndarray) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.class_scatter`; from class means alone."""
    data, sizes = points.data, np.diff(points.class_start)
    start = to_tensor(points.class_start, data.device)
    totals = torch.segment_reduce(data.double(), "sum", offsets=start, initial=0.0)
    means = totals / to_tensor(np.maximum(sizes, 1), data.device)[:, None]
    codes = row_classes(points)
    pair_weights = to_tensor(2.0 * weights * sizes, data.device)
    scatter = float64_zeros((data.shape[1], data.shape[1]), data)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        members = data[lo:hi] - means[codes[lo:hi]]
        scatter += (pair_weights[codes[lo:hi], None] * members).T @ members
    return to_numpy(scatter)


def gram(left: torch.Tensor, right: torch.Tensor, *, exact: bool) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.gram`."""
    total = float64_zeros((left.shape[1], right.shape[1]), left)
    for lo, hi in row_tiles(left.shape[0], _ROWS_PER_TILE):
        if exact or left.dtype == torch.float64:
            total += left[lo:hi].double().T @ right[lo:hi].double()
        else:
            total += _float32_gram(left[lo:hi], right[lo:hi])
    return to_numpy(total)


def _float32_gram(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left.T @ right: float32 over short ranges of rows, float64 over these."""
    whole = left.shape[0] // _FLOAT32_ROWS * _FLOAT32_ROWS
    blocks = (part[:whole].reshape(-1, _FLOAT32_ROWS, part.shape[1]) for part in (left, right))
    first, second = blocks
    total = torch.bmm(first.transpose(1, 2), second).sum(dim=0, dtype=torch.float64)
    return total + (left[whole:].T @ right[whole:]).double()
