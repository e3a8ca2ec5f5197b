"""Coordinates in which a metric is easy to learn.

Columns are first brought to unit spread, then rotated and scaled so that the
pull scatter (the sum of v v^T over target pairs) becomes the identity. The
problem is the same, its metric is only written in other coordinates; the
solvers need ten times fewer steps in these. See docs/lmnn.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lnml.core.pairs import Pattern
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels

# Directions with less than this share of the largest pull are scaled as if they
# had it. They are kept: no pull means a direction can separate classes for free.
SPECTRUM_FLOOR = 1e-8
# Directions in which scaled data vary less than this are rounding, and left out.
VARIANCE_FLOOR = 1e-12
# Rounding of one eigenvalue of the pull, relative to the largest.
PULL_ROUNDING = 1e-15
# Directions with less than this share of the mean variance are not whitened by `soften`.
SOFT_FLOOR = 1e-4
# A basis column along which data vary by fewer roundings than this is constant.
CONSTANT = 8.0


@dataclass(frozen=True, eq=False)
class LinearCoordinates:
    """A linear change of coordinates, x_new = (x - mean) @ matrix, to e <= d of them.

    Attributes
    ----------
    points : Points
        The data in the new coordinates.
    matrix : ndarray of shape (d, e)
        The change of coordinates.
    inverse : ndarray of shape (e, d)
        Its inverse on the span of the data.
    """

    points: Points
    matrix: np.ndarray
    inverse: np.ndarray

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Components (at most e rows) that give the same distances in the new coordinates."""
        inside = components @ self.inverse.T
        if inside.shape[0] > inside.shape[1]:
            return np.asarray(np.linalg.qr(inside, mode="r"))
        return inside

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Undo :meth:`to_conditioned`; zero rows fill up to ``n_rows``."""
        outside = np.zeros((n_rows, self.matrix.shape[0]))
        outside[: components.shape[0]] = components @ self.matrix.T
        return outside


@dataclass(frozen=True, eq=False)
class Conditioning(LinearCoordinates):
    """Coordinates in which the pull scatter is diagonal.

    Attributes
    ----------
    pull : ndarray of shape (e,)
        Its diagonal: 1, or less where clipped.
    """

    pull: np.ndarray


def whiten_pull(
    kernels: Kernels, points: Points, targets: Pattern | None, weights: Any = None
) -> Conditioning:
    """Coordinates in which the weighted pull scatter is the identity.

    Parameters
    ----------
    kernels : Kernels
        The device.
    points : Points
        The data as given, n x d.
    targets : Pattern or None
        Target pairs; None stands for all pairs of the same class.
    weights : array of the device aligned with targets, or ndarray with the classes
        Weight of each pair; default all ones, or 1 / (class size - 1) for classes.
    """
    scaled, scale, unscale = _unit_spread(kernels, points)
    basis = _span(kernels.gram(scaled.data, scaled.data) / points.n_rows)
    scatter = _pull_scatter(kernels, scaled, targets, weights)
    values, vectors = np.linalg.eigh(basis.T @ scatter @ basis)
    values, clipped = _clip(values)
    rotation = basis @ vectors
    whitening = rotation / np.sqrt(clipped)
    return Conditioning(
        points=kernels.mapped(scaled, whitening),
        pull=values / clipped,
        matrix=whitening / scale[:, None],
        inverse=(rotation * np.sqrt(clipped) * unscale[:, None]).T,
    )


def scale_pull(
    kernels: Kernels, points: Points, targets: Pattern | None, weights: Any = None
) -> Conditioning:
    """Scale each column by its own pull, for a diagonal metric. Constant columns are left out.

    Parameters are those of :func:`whiten_pull`; only the diagonal of the pull
    scatter is one.
    """
    scaled, scale, unscale = _unit_spread(kernels, points)
    varying = np.flatnonzero(unscale)
    scatter = _pull_scatter(kernels, scaled, targets, weights)
    values, clipped = _clip(np.diag(scatter)[varying])
    unit, columns = np.sqrt(clipped), np.eye(scale.size)[:, varying]
    return Conditioning(
        points=kernels.mapped(scaled, columns / unit),
        pull=values / clipped,
        matrix=columns / unit / scale[:, None],
        inverse=(columns * unit * unscale[:, None]).T,
    )


def soften(kernels: Kernels, whitened: LinearCoordinates) -> LinearCoordinates:
    """Scale the principal axes of the data to unit variance, except those with little variance.

    Along these the norm decides, so they are stretched less. The coordinates cover
    the span of the data only: of all metrics with the same distances, the one on
    the span has the least norm (docs/frobenius.md).
    """
    span, root = np.linalg.qr(whitened.inverse.T)
    points = whitened.points
    scatter = root @ kernels.gram(points.data, points.data) @ root.T
    values, vectors = np.linalg.eigh(scatter / points.n_rows)
    sizes = np.sqrt(np.maximum(values, SOFT_FLOOR * values.mean()))
    rotation = span @ vectors
    return LinearCoordinates(
        points=kernels.mapped(points, root.T @ vectors / sizes),
        matrix=rotation / sizes,
        inverse=(rotation * sizes).T,
    )


@dataclass(frozen=True, eq=False)
class ScaledBasis:
    """Coordinates along the columns of a basis, x_new = x @ matrix.

    Components are diagonal, m x m; a row of ``matrix.T`` times its entry is a
    row of L in the coordinates of the data.
    """

    points: Points
    matrix: np.ndarray

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Diagonal components (m x m) from rows (m x d) along the basis."""
        lengths = np.linalg.norm(self.matrix, axis=0)
        rows = np.linalg.norm(components, axis=1)
        return np.diag(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Components (m x d) in the coordinates of the data; ``n_rows`` is m."""
        return components @ self.matrix.T


def scale_basis(kernels: Kernels, points: Points, basis: np.ndarray) -> ScaledBasis:
    """Bring the data to unit spread along every column of a basis (d x m).

    A column along which they do not vary gets weight zero, which costs nothing.
    """
    along = kernels.points(kernels.embed(points, basis.T).coordinates, points.class_start)
    given, found = kernels.columns(points), kernels.columns(along)
    largest = np.maximum(-given.lowest, given.highest)
    rounding = points.precision * (largest @ np.abs(basis))
    scale = np.where(found.spread > CONSTANT * rounding, found.spread, np.inf)
    return ScaledBasis(kernels.standardized(along, found.mean, scale), basis / scale)


def _unit_spread(kernels: Kernels, points: Points) -> tuple[Points, np.ndarray, np.ndarray]:
    """Return columns of mean zero and spread one, their divisors, and the factors back.

    Constant columns are divided by infinity. Their factor back is zero.
    """
    columns = kernels.columns(points)
    # Compares the values: the spread of a constant column may be non-zero by rounding.
    constant = columns.highest == columns.lowest
    scale = np.where(constant, np.inf, columns.spread)
    unscale = np.where(constant, 0.0, columns.spread)
    return kernels.standardized(points, columns.mean, scale), scale, unscale


def _pull_scatter(
    kernels: Kernels, scaled: Points, targets: Pattern | None, weights: Any
) -> np.ndarray:
    """Sum over target pairs of weight * v v^T."""
    if targets is None:
        sizes = scaled.class_sizes
        by_class = 1.0 / np.maximum(sizes - 1, 1) if weights is None else weights
        return kernels.class_scatter(scaled, by_class)
    edges = [(targets, weights, 1.0)]
    scatter = kernels.gram(kernels.laplacian(edges, scaled.data), scaled.data)
    return (scatter + scatter.T) / 2


def _clip(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pull of every direction, and the pull it is scaled by."""
    largest = values.max()
    # Values of the size of their rounding are directions without pull.
    values = np.where(values < PULL_ROUNDING * values.size * largest, 0.0, values)
    clipped = np.maximum(values, SPECTRUM_FLOOR * largest) if largest > 0 else values + 1.0
    return values, clipped


def _span(correlation: np.ndarray) -> np.ndarray:
    """Orthonormal basis (d x e) of the directions in which scaled data vary at all."""
    values, vectors = np.linalg.eigh(correlation)
    return vectors[:, values > VARIANCE_FLOOR * max(values[-1], 1.0)]
