"""Data are sorted, scaled and mapped before a fit; statistics of their columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from lnml.core.points import Columns, Points
from lnml.kernels.cpu.products import centred, gram, shifted_product

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256


def make_points(data: Any, class_start: np.ndarray) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.points`."""
    return Points(np.ascontiguousarray(data), np.asarray(class_start, dtype=np.int64))


def training_points(X: np.ndarray, order: np.ndarray, class_start: np.ndarray) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.training_points`."""
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


def standardized(points: Points, mean: np.ndarray, scale: np.ndarray) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.standardized`."""
    return make_points(((points.data - mean) / scale).astype(points.dtype), points.class_start)


def mapped(points: Points, matrix: np.ndarray, shift: np.ndarray | None, far: bool) -> Points:
    """See :meth:`lnml.kernels.protocol.Kernels.mapped`."""
    return Points(shifted_product(points.data, shift, matrix), points.class_start, far)


def class_scatter(points: Points, weights: np.ndarray) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.class_scatter`; from class means alone."""
    scatter = np.zeros((points.n_features, points.n_features))
    for weight, (low, high) in zip(weights, pairwise(points.class_start), strict=True):
        if high - low >= 2:
            members = centred(points.data[low:high])
            scatter += 2.0 * weight * (high - low) * gram(members, members)
    return scatter
