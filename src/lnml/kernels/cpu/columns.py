"""Data are sorted, scaled and mapped before a fit; statistics of their columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from lnml.core.points import Columns, Points
from lnml.kernels.class_pairs import ClassMoments, WeightedMoments, combined_scatter
from lnml.kernels.cpu.products import gram, shifted_product

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256


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
    return Columns(
        data.mean(axis=0, dtype=np.float64),
        data.std(axis=0, dtype=np.float64),
        data.min(axis=0).astype(np.float64),
        data.max(axis=0).astype(np.float64),
    )


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
        data = points.data if shift is None else points.data - shift
        data = (data if scale is None else data / scale).astype(dtype)
    return Points(data, points.class_start, far)


def pair_scatter(points: Points, same: Any, other: Any) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.pair_scatter`."""
    blocks = [points.data[low:high] for low, high in pairwise(points.class_start)]
    middle = points.data.mean(axis=0, dtype=np.float64)
    parts = []
    for number, block in enumerate(blocks):
        rows = slice(*points.class_start[number : number + 2])
        weights = [_class_part(given, number, rows, points) for given in (same, other)]
        parts.append(_class_moments(block, middle, weights))
    return combined_scatter(parts)


def _class_part(given: Any, number: int, rows: slice, points: Points) -> Any:
    """Weights of the rows of a class: one number, or one for each."""
    if given is None:
        return 0.0
    return given[number] if len(given) == len(points.class_start) - 1 else given[rows]


def _class_moments(block: np.ndarray, middle: np.ndarray, weights: list[Any]) -> ClassMoments:
    """Return what the scatter of pairs needs of a class."""
    n, d = block.shape
    if n == 0:
        nothing = np.zeros((d, d))
        return ClassMoments(0, np.zeros(d), nothing, [WeightedMoments.of(0.0, 0, nothing)] * 2)
    mean = block.mean(axis=0, dtype=np.float64).astype(block.dtype)
    members = block - mean
    scatter = gram(members, members)
    found = []
    for weight in weights:
        if np.ndim(weight) == 0:
            found.append(WeightedMoments.of(float(weight), n, scatter))
            continue
        column = np.asarray(weight, dtype=np.float64)[:, None]
        heavy = gram(column * members, members)
        found.append(WeightedMoments(float(column.sum()), gram(column, members)[0], heavy))
    return ClassMoments(n, mean - middle, scatter, found)
