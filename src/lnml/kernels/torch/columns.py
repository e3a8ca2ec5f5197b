"""Data are sorted, scaled and mapped before a fit; statistics of columns; sums over all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lnml.core.points import Columns, Points
from lnml.kernels.class_pairs import ClassSums, RowClasses, between_classes, row_factors
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import float64_zeros, range_sums, to_numpy, to_tensor

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256
# Rows that are widened to float64 at once.
_ROWS_PER_TILE = 65536
# Rows whose products are summed in float32.
_FLOAT32_ROWS = 1024


def training_points(X: torch.Tensor, order: np.ndarray, class_start: np.ndarray) -> Points:
    """Points to learn from; see :meth:`lnml.kernels.protocol.Kernels.points`."""
    some = X[:: max(1, X.shape[0] // SAMPLE)]
    seen = to_numpy(torch.cat([X.amin(dim=0)[None], X.amax(dim=0)[None], some]))
    ends, middle = np.abs(seen[:2]), np.sort(np.abs(seen[2:]), axis=0)[(len(some) - 1) // 2]
    rows, shifted = X[to_tensor(order, X.device)], _shifted(seen[0], seen[1])
    if shifted.any():
        rows -= _middle_values(X) * to_tensor(shifted, X.device)
    sizes = np.stack([ends.max(axis=0), middle]).astype(np.float64)
    points = Points(rows, class_start)
    return replace(points, rounding=0.5 * points.precision * sizes)


def _shifted(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Return the columns from which an offset can be taken without rounding.

    Sterbenz: the difference of two numbers is exact if neither is longer than twice the other.
    """
    shorter, longer = np.sort(np.abs([lowest, highest]), axis=0)
    return (np.sign(lowest) * np.sign(highest) > 0.0) & (0.5 * longer <= shorter)


def _middle_values(X: torch.Tensor) -> torch.Tensor:
    """Return the value of every column that is nearest to its mean."""
    nearest = (X - X.mean(dim=0, dtype=torch.float64)).abs().argmin(dim=0)
    return X.gather(0, nearest[None])[0]


def columns(points: Points) -> Columns:
    """See :meth:`lnml.kernels.protocol.Kernels.columns`."""
    data = points.data
    mean = data.mean(dim=0, dtype=torch.float64)
    squares = torch.zeros_like(mean)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        away = data[lo:hi] - mean
        squares += away.mul_(away).sum(dim=0)
    spread = (squares / points.n_rows).sqrt()
    found = torch.stack([mean, spread, data.amin(dim=0).double(), data.amax(dim=0).double()])
    return Columns(*to_numpy(found))


def mapped(
    points: Points,
    matrix: np.ndarray | None,
    shift: np.ndarray | None,
    scale: np.ndarray | None,
    far: bool,
    wide: bool,
) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.mapped`."""
    data = points.data
    dtype = torch.float64 if wide else data.dtype
    if matrix is None and shift is None and scale is None:
        return replace(points, data=data.to(dtype))
    return Points(moved_rows(data, shift, scale, matrix, dtype), points.class_start, far)


def moved_rows(
    data: torch.Tensor,
    shift: np.ndarray | None,
    scale: np.ndarray | None,
    matrix: np.ndarray | None,
    dtype: torch.dtype,
    computed: torch.dtype = torch.float64,
) -> torch.Tensor:
    """Return ``(data - shift) / scale @ matrix``, computed in one type and kept in another."""
    moved, divisor, right = (
        None if given is None else to_tensor(given, data.device, computed)
        for given in (shift, scale, matrix)
    )
    width = data.shape[1] if right is None else right.shape[1]
    out = torch.empty((data.shape[0], width), dtype=dtype, device=data.device)
    for lo, hi in row_tiles(data.shape[0], _ROWS_PER_TILE):
        rows = data[lo:hi].to(computed)
        rows = rows if moved is None else rows - moved
        rows = rows if divisor is None else rows / divisor
        out[lo:hi] = rows if right is None else rows @ right
    return out


def row_classes(points: Points) -> torch.Tensor:
    """Class code of every row, on the device."""
    device = points.data.device
    sizes = to_tensor(np.diff(points.class_start), device)
    codes = torch.arange(sizes.shape[0], device=device)
    return torch.repeat_interleave(codes, sizes, output_size=points.n_rows)


def pair_scatter(points: Points, same: Any, other: Any) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.pair_scatter`; from one pass over the rows."""
    data, codes = points.data, row_classes(points)
    sizes = to_tensor(points.class_sizes, data.device)
    totals = range_sums(data.double(), points.class_start)
    means = totals / sizes.clamp(min=1)[:, None]
    weights = [_row_weights(given, points, codes) for given in (same, other)]
    sums = [range_sums(each, points.class_start) for each in weights]
    of_class = RowClasses(*(each[codes] for each in (sizes, *sums)))
    factors = row_factors(weights[0], weights[1], of_class, sums[1].sum())
    inner = float64_zeros((data.shape[1], data.shape[1]), data)
    linear = torch.zeros_like(means)
    for lo, hi in row_tiles(points.n_rows, _ROWS_PER_TILE):
        members = data[lo:hi] - means[codes[lo:hi]]
        inner += (factors[lo:hi, None] * members).T @ members
        if other is not None:
            part = points.class_start.clip(lo, hi) - lo
            heavy = weights[1][lo:hi, None] * members
            linear += range_sums(heavy, part)
    found = to_numpy(inner)
    if other is not None:
        seen = means - totals.sum(dim=0) / points.n_rows
        parts = ClassSums(*(to_numpy(each) for each in (seen, sums[1], linear)))
        found += between_classes(parts, points.class_sizes)
    return np.asarray(0.5 * (found + found.T))


def _row_weights(given: Any, points: Points, codes: torch.Tensor) -> torch.Tensor:
    """Weight of every row, from one for each class or each row."""
    if given is None:
        return float64_zeros((points.n_rows,), points.data)
    weights = to_tensor(given, points.data.device).double()
    return weights[codes] if weights.shape[0] == points.class_sizes.size else weights


def gram(left: torch.Tensor, right: torch.Tensor, *, exact: bool) -> np.ndarray:
    """left.T @ right, in float64 on the host; see :func:`device_gram`."""
    return to_numpy(device_gram(left, right, exact=exact))


def device_gram(left: torch.Tensor, right: torch.Tensor, *, exact: bool) -> torch.Tensor:
    """left.T @ right, in float64.

    Without ``exact`` products of float32 data are float32: enough for a gradient, not for a
    certificate.
    """
    total = float64_zeros((left.shape[1], right.shape[1]), left)
    for lo, hi in row_tiles(left.shape[0], _ROWS_PER_TILE):
        if exact or left.dtype == torch.float64:
            total += left[lo:hi].double().T @ right[lo:hi].double()
        else:
            total += _float32_gram(left[lo:hi], right[lo:hi])
    return total


def _float32_gram(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left.T @ right: float32 over short ranges of rows, float64 over these."""
    whole = left.shape[0] // _FLOAT32_ROWS * _FLOAT32_ROWS
    blocks = (part[:whole].reshape(-1, _FLOAT32_ROWS, part.shape[1]) for part in (left, right))
    first, second = blocks
    total = torch.bmm(first.transpose(1, 2), second).sum(dim=0, dtype=torch.float64)
    return total + (left[whole:].T @ right[whole:]).double()
