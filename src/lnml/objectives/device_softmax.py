"""Objectives and bounds whose sums run over all pairs of rows, by the device.

It sums in float64, from rows that are mapped first. Its rounding grows with the squares of
the rows, not of their differences. Ordinary columns bear that; others need more care.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Edge, Pattern
from lnml.core.points import Embedding, Points
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.conditioning import ideal_pull
from lnml.objectives.large_proof import inside
from lnml.proofs.differences import Moment, entrywise, product_error
from lnml.proofs.objective import Value
from lnml.proofs.rounding import gamma
from lnml.proofs.softmax import SoftmaxDual

# Largest relative error of a weight exp(-D), on any device.
POWER_ERROR = 1e-13


class WideRows(NamedTuple):
    """Rows in float64 on the device, in the coordinates of a task.

    Attributes
    ----------
    points : Points
        The rows.
    spread, largest : ndarrays of shape (e,)
        Spread of the coordinates, and their largest distance from the mean.
    shift : ndarray of shape (e,)
        Largest error of a coordinate, from mapping the rows.
    """

    points: Points
    spread: np.ndarray
    largest: np.ndarray
    shift: np.ndarray

    @classmethod
    def of(cls, training: TrainingSet, matrix: np.ndarray, far: bool) -> WideRows:
        """Map the rows by a matrix (d, e)."""
        kernels, points = training.kernels, training.points
        given = kernels.columns(points)
        rows = kernels.mapped(points, matrix, shift=given.mean, far=far, wide=True)
        found = kernels.columns(rows)
        reach = np.maximum(given.highest - given.mean, given.mean - given.lowest)
        return cls(
            rows,
            found.spread,
            np.maximum(found.highest - found.mean, found.mean - found.lowest),
            gamma(len(matrix) + 8) * (reach @ np.abs(matrix)),
        )

    def squares(self) -> np.ndarray:
        """Largest sum of (|z_i| + |z_j|)^2 that a distribution of each row over others gives."""
        n = self.points.n_rows
        return 2.0 * n * (self.spread**2 + self.largest**2) * (1.0 + 1e-6)


def length_error(kernels: Kernels, embedding: Embedding) -> float:
    """Largest error of a squared distance that comes from a matrix product."""
    columns = kernels.columns(Points(embedding.coordinates, embedding.points.class_start))
    reach = np.maximum(columns.highest - columns.mean, columns.mean - columns.lowest)
    return 8.0 * gamma(embedding.coordinates.shape[1] + 8) * float(reach @ reach)


def device_divergence(
    training: TrainingSet, components: np.ndarray, targets: Pattern | None, log_sizes: float
) -> Value:
    """Sum over rows of KL(p0 | p_M); see :func:`lnml.proofs.softmax.divergence`."""
    kernels = training.kernels
    rows = WideRows.of(training, components.T, training.points.far)
    embedding = Embedding.of(rows.points)
    pull = device_pull(training, rows, targets)
    log_z, _ = kernels.softmax(embedding, targets, full=None)
    trace = float(np.trace(pull.matrix))
    n = training.points.n_rows
    error = n * (length_error(kernels, embedding) + POWER_ERROR) + float(pull.error.sum())
    error += gamma(2 * n + 8) * (abs(log_z) + trace + abs(log_sizes))
    return Value(max(trace + log_z - log_sizes, 0.0), error)


def device_wrong_neighbors(training: TrainingSet, components: np.ndarray) -> Value:
    """Sum over rows of the chance of a wrong neighbour, for NCA."""
    kernels = training.kernels
    rows = WideRows.of(training, components.T, training.points.far)
    embedding = Embedding.of(rows.points)
    value, _ = kernels.class_softmax(embedding, full=None)
    n = training.points.n_rows
    each = 2.0 * (length_error(kernels, embedding) + POWER_ERROR)
    return Value(value, n * each + gamma(2 * n + 64) * n)


def device_dual(
    training: TrainingSet, rows: WideRows, inner: np.ndarray, targets: Pattern | None
) -> SoftmaxDual:
    """Return the dual point of a metric, in components (r, e) of the coordinates of the rows."""
    kernels, n = training.kernels, training.points.n_rows
    embedding = kernels.embed(rows.points, inner)
    logs, matrix = kernels.softmax(embedding, targets, full=True)
    sizes = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    moved = product_error(sizes, 2.0 * np.sqrt(n) * rows.shift, 0.0)
    error = moved + entrywise(gamma(2 * n + 64), rows.squares())
    expected = Moment(matrix, rows.squares(), error)
    inside_ = np.square(inner).sum(axis=0)
    linear = float(np.vdot(inner @ matrix, inner))
    rounding = n * (length_error(kernels, embedding) + POWER_ERROR) + float(error @ inside_)
    rounding += gamma(2 * n + 64) * (abs(logs) + linear + n)
    return SoftmaxDual(expected, Value(logs + linear, rounding))


def device_pull(training: TrainingSet, rows: WideRows, targets: Pattern | None) -> Moment:
    """Return the scatter of p0."""
    kernels, points, n = training.kernels, rows.points, rows.points.n_rows
    pull = ideal_pull(points, targets)
    if isinstance(pull, Edge):
        found = kernels.edge_scatter(points, [pull])
        matrix, squares, error = inside(found, np.eye(points.n_features))
    else:
        matrix = kernels.pair_scatter(points, pull)
        squares = np.maximum(np.diag(matrix), 0.0)
        error = entrywise(gamma(2 * n + 16), squares)
    sizes = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    return Moment(matrix, squares, error + product_error(sizes, 2.0 * np.sqrt(n) * rows.shift, 0.0))
