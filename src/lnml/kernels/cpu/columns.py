"""Data are sorted, scaled and mapped before a fit; statistics of their columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from lnml.core.points import Columns, Points
from lnml.kernels.class_pairs import ClassSums, RowClasses, between_classes, row_factors
from lnml.kernels.cpu.products import shifted_product
from lnml.kernels.cpu.threads import each_tile, run_tiles
from lnml.kernels.tiles import row_tiles

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256
_ROWS_PER_TILE = 4096


def make_points(data: Any, class_start: np.ndarray) -> Points:
    """Points from data as they are; see :meth:`lnml.kernels.protocol.Kernels.points`."""
    return Points(np.ascontiguousarray(data), np.asarray(class_start, dtype=np.int64))


def training_points(X: np.ndarray, order: np.ndarray, class_start: np.ndarray) -> Points:
    """Points to learn from; see :meth:`lnml.kernels.protocol.Kernels.points`."""
    mean = X.mean(axis=0, dtype=np.float64)
    centre = X[np.abs(X - mean).argmin(axis=0), np.arange(X.shape[1])]
    lowest, highest = X.min(axis=0), X.max(axis=0)
    ends = np.abs([lowest, highest])
    # Sterbenz: the difference of two numbers is exact if neither is longer than twice the other.
    exact = (np.sign(lowest) == np.sign(highest)) & (0.5 * ends.max(axis=0) <= ends.min(axis=0))
    centre[~exact] = 0.0
    points = make_points(X[order] - centre, class_start)
    middle = np.median(np.abs(X[:: max(1, len(X) // SAMPLE)]), axis=0)
    rounding = 0.5 * points.precision * np.stack([ends.max(axis=0), middle]).astype(np.float64)
    return replace(points, rounding=rounding)


def columns(points: Points) -> Columns:
    """See :meth:`lnml.kernels.protocol.Kernels.columns`."""
    data = points.data
    mean = data.mean(axis=0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for tile in row_tiles(len(data), _ROWS_PER_TILE):
        rows = np.square(data[slice(*tile)] - mean)
        # Row by row: with two columns and more, the sum does not depend on tiles.
        rows[0] += squares
        squares = rows.sum(axis=0)
    lowest, highest = data.min(axis=0), data.max(axis=0)
    spread = np.sqrt(squares / len(data))
    return Columns(mean, spread, lowest.astype(np.float64), highest.astype(np.float64))


def mapped(
    points: Points,
    matrix: np.ndarray | None,
    shift: np.ndarray | None,
    scale: np.ndarray | None,
    far: bool,
    wide: bool,
) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.mapped`."""
    dtype = np.dtype(np.float64) if wide else points.dtype
    if matrix is not None:
        data = shifted_product(points.data, shift, matrix, dtype)
    elif shift is None and scale is None:
        return replace(points, data=points.data.astype(dtype, copy=False))
    else:
        data = _rescaled(points.data, shift, scale, dtype)
    return Points(data, points.class_start, far)


def _rescaled(
    data: np.ndarray, shift: np.ndarray | None, scale: np.ndarray | None, dtype: np.dtype
) -> np.ndarray:
    """Return (data - shift) / scale, a tile of rows at a time."""
    found = np.empty(data.shape, dtype=dtype)

    def fill(tile: tuple[int, int]) -> None:
        rows = data[slice(*tile)]
        rows = rows if shift is None else rows - shift
        found[slice(*tile)] = rows if scale is None else rows / scale

    run_tiles(fill, row_tiles(len(data), _ROWS_PER_TILE))
    return found


def pair_scatter(points: Points, same: Any, other: Any) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.pair_scatter`; from one pass over the rows."""
    data, sizes, codes = points.data, points.class_sizes, points.row_class
    weights = [row_weights(given, points) for given in (same, other)]
    sums = [np.bincount(codes, each, sizes.size) for each in weights]
    of_class = RowClasses(*(each[codes] for each in (sizes, *sums)))
    factors = row_factors(weights[0], weights[1], of_class, sums[1].sum())
    means = np.stack([_mean(data[low:high]) for low, high in pairwise(points.class_start)])

    def of_tile(tile: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(*tile)
        members = data[rows] - means[codes[rows]]
        first, last = codes[tile[0]], codes[tile[1] - 1] + 1
        linear = np.zeros_like(means)
        mine = codes[rows] == np.arange(first, last)[:, None]
        linear[first:last] = (mine * weights[1][rows]) @ members
        return members.T @ (factors[rows, None] * members), linear

    inner, linear = np.zeros((points.n_features,) * 2), np.zeros_like(means)
    for product, part in each_tile(of_tile, row_tiles(points.n_rows, _ROWS_PER_TILE)):
        inner += product
        linear += part
    if other is not None:
        inner += between_classes(ClassSums(means - _mean(data), sums[1], linear), sizes)
    return 0.5 * (inner + inner.T)


def row_weights(given: Any, points: Points) -> np.ndarray:
    """Weight of every row, from one for each class or each row."""
    if given is None:
        return np.zeros(points.n_rows)
    by_class = len(given) == points.class_sizes.size
    return np.asarray(given[points.row_class] if by_class else given, dtype=np.float64)


def _mean(rows: np.ndarray) -> np.ndarray:
    """Mean of some rows in float64; zero of none."""
    return rows.mean(axis=0, dtype=np.float64) if len(rows) else np.zeros(rows.shape[1])
