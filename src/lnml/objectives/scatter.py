"""Directions along which a scatter of the rows is one, found without losing small ones.

An eigenvalue of a d x d scatter matrix has an absolute error: small ones drown in the
rounding of the largest. So directions with a small scatter are measured again, from the
rows mapped to them, where they are the largest. See docs/lmnn.md.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

import numpy as np

from lnml.core.outliers import usual_range
from lnml.core.pairs import Edge
from lnml.core.points import Columns, Embedding, Points
from lnml.kernels.protocol import Kernels

# Directions with less than this share of the largest scatter are measured again.
SHARE = 1e-6
# Rows that are looked at for outliers, and how far these are, in units of the others.
SAMPLE = 256
OUTLYING = 1e4
# Rows that differ by fewer roundings than this are equal.
CONSTANT = 4.0


class Spread(NamedTuple):
    """How the values of the columns lie.

    Attributes
    ----------
    columns : Columns
        Their means, spreads and ranges.
    outliers : bool
        Whether a column has values so far away that they hide the differences of the others.
    """

    columns: Columns
    outliers: bool

    @classmethod
    def of(cls, kernels: Kernels, points: Points) -> Self:
        """Measure the columns."""
        columns = kernels.columns(points)
        return cls(columns, _has_outliers(kernels, points, columns))


class ColumnUnits(NamedTuple):
    """Columns in units of their spread.

    Directions are d x m, in these units.

    Attributes
    ----------
    points : Points
        The data as given.
    scaled : Points
        Columns of mean zero and spread one; constant columns are zero.
    mean : ndarray of shape (d,)
        Column means.
    scale, unscale : ndarrays of shape (d,)
        The spread; for constant columns infinity and zero.
    rounding : ndarray of shape (2, d)
        Rounding of the largest value of a column, and of one in the middle.
    """

    points: Points
    scaled: Points
    mean: np.ndarray
    scale: np.ndarray
    unscale: np.ndarray
    rounding: np.ndarray

    @classmethod
    def of(cls, kernels: Kernels, points: Points, spread: Spread | None = None) -> Self:
        """Rows that float32 cannot standardise become float64. A known spread saves work."""
        columns, outliers = spread or Spread.of(kernels, points)
        if points.dtype == np.float32 and outliers:
            points = kernels.mapped(points, wide=True)
        # Compares the values: the spread of a constant column may be non-zero by rounding.
        constant = columns.highest == columns.lowest
        scale = np.where(constant, np.inf, columns.spread)
        rounding = points.rounding
        if rounding is None:
            largest = np.maximum(-columns.lowest, columns.highest)
            rounding = 0.5 * points.precision * np.stack([largest, largest])
        return cls(
            points,
            kernels.mapped(points, shift=columns.mean, scale=scale),
            columns.mean,
            scale,
            np.where(constant, 0.0, columns.spread),
            rounding / scale,
        )

    def along(self, kernels: Kernels, directions: np.ndarray) -> Points:
        """Return the rows along directions, with the digits that small differences need."""
        return kernels.mapped(self.points, directions / self.scale[:, None], shift=self.mean)

    def noise(self, directions: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """Spread along each direction that a rounding of the columns explains.

        Roundings of different columns are independent. Products in float64 have their own,
        which float32 data do not notice.
        """
        factor = CONSTANT
        if self.points.dtype == np.float64:
            factor += np.sqrt(len(directions))
        return factor * np.linalg.norm(rounding[:, None] * directions, axis=0)


def _has_outliers(kernels: Kernels, points: Points, columns: Columns) -> bool:
    """Whether a column has values so far away that they hide the differences of the others."""
    step = max(1, points.n_rows // SAMPLE)
    sample = kernels.rows(Embedding.of(points), np.arange(0, points.n_rows, step))
    typical = usual_range(sample)
    far = columns.highest - columns.lowest > OUTLYING * typical
    return bool((far & (typical > 0.0)).any())


class Scatter(Protocol):
    """A sum of squares of the rows along directions."""

    def along(self, directions: np.ndarray, n_coarse: int) -> np.ndarray:
        """B^T S B for directions B (d x m).

        The first ``n_coarse`` of them may be taken from S itself, with its rounding.
        """

    def noise(self, directions: np.ndarray) -> np.ndarray:
        """Square root of the scatter along each direction that rounding explains."""


class TotalScatter:
    """Mean square of the rows around their mean."""

    def __init__(self, kernels: Kernels, units: ColumnUnits) -> None:
        self.kernels, self.units = kernels, units
        self.matrix = self.of_rows(units.scaled)

    def of_rows(self, rows: Points) -> np.ndarray:
        """Mean square of some rows around their mean, e x e."""
        return total_scatter(self.kernels, rows) / rows.n_rows

    def along(self, directions: np.ndarray, n_coarse: int) -> np.ndarray:
        """See :class:`Scatter`."""
        return _in_blocks(self, directions, n_coarse)

    def noise(self, directions: np.ndarray) -> np.ndarray:
        """See :class:`Scatter`."""
        return self.units.noise(directions, self.units.rounding[0])


class PullScatter:
    """Sum over target pairs of weight * v v^T.

    Parameters are those of :func:`lnml.objectives.conditioning.whiten_pull`.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    """

    def __init__(self, kernels: Kernels, units: ColumnUnits, pull: Edge | np.ndarray) -> None:
        self.kernels, self.units, self.pull = kernels, units, pull
        sizes = units.points.class_sizes
        if isinstance(pull, Edge):
            self.weight = pull.total
        else:
            self.weight = float((pull * sizes * (sizes - 1)).sum())
        self.matrix = self.of_rows(units.scaled)

    def of_rows(self, rows: Points) -> np.ndarray:
        """Return the sum for some rows, e x e."""
        if isinstance(self.pull, Edge):
            return self.kernels.edge_scatter(rows, [self.pull]).matrix
        return self.kernels.pair_scatter(rows, self.pull)

    def along(self, directions: np.ndarray, n_coarse: int) -> np.ndarray:
        """See :class:`Scatter`."""
        return _in_blocks(self, directions, n_coarse)

    def noise(self, directions: np.ndarray) -> np.ndarray:
        """See :class:`Scatter`."""
        # Target pairs are near each other: a few far values say nothing about their rounding.
        # Means of classes are rounded, too, in units of the spread.
        rounding = np.maximum(self.units.rounding[1], np.finfo(np.float64).eps)
        return np.sqrt(self.weight) * self.units.noise(directions, rounding)


def _in_blocks(
    scatter: TotalScatter | PullScatter, directions: np.ndarray, n_coarse: int
) -> np.ndarray:
    """B^T S B, coarse directions by S and the others by their rows."""
    coarse = directions[:, :n_coarse]
    by_matrix = coarse.T @ scatter.matrix @ coarse
    if n_coarse == directions.shape[1]:
        return by_matrix
    found = scatter.of_rows(scatter.units.along(scatter.kernels, directions))
    found[:n_coarse, :n_coarse] = by_matrix
    return found


def total_scatter(kernels: Kernels, points: Points) -> np.ndarray:
    """Sum over rows of u u^T, u = a row minus the mean of all, d x d."""
    ones = np.ones(points.class_sizes.size)
    # Every row meets all rows, and every pair is met from both its ends.
    return kernels.pair_scatter(points, ones, ones) / (2.0 * points.n_rows)


class Whitened(NamedTuple):
    """Directions of scatter one, and those without any.

    Attributes
    ----------
    directions : ndarray of shape (d, e)
        Along these the scatter is the identity.
    without : ndarray of shape (d, m)
        Along these it is no larger than rounding.
    n_coarse : int
        How many of the first directions are not sensitive to rounding.
    """

    directions: np.ndarray
    without: np.ndarray
    n_coarse: int


def whitened(scatter: Scatter, basis: np.ndarray, n_coarse: int) -> Whitened:
    """Split the span of a basis (d x m) into directions of scatter one, and the rest.

    The first ``n_coarse`` of the basis are not sensitive to rounding.
    """
    found = without = basis[:, :0]
    first_level = n_coarse if n_coarse == basis.shape[1] else 0
    level_sizes: list[int] = []
    while basis.shape[1]:
        if level_sizes:
            n_coarse = level_sizes[0] if first_level else 0
            basis = basis - found @ _both(scatter, found, basis, n_coarse)
            n_coarse = 0
        matrix = scatter.along(basis, n_coarse)
        size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        seen = size > scatter.noise(basis)
        without = np.hstack([without, basis[:, ~seen]])
        if not seen.any():
            break
        # In units of its own size each direction has a scatter of one: no scale is too small.
        unit = 1.0 / size[seen]
        basis = basis[:, seen] * unit
        values, vectors = np.linalg.eigh(matrix[np.ix_(seen, seen)] * unit[:, None] * unit)
        clear = values > SHARE * values[-1]
        found = np.hstack([found, basis @ (vectors[:, clear] / np.sqrt(values[clear]))])
        level_sizes.append(int(clear.sum()))
        basis = basis @ vectors[:, ~clear]
    return Whitened(found, without, level_sizes[0] if level_sizes else 0)


def _both(scatter: Scatter, found: np.ndarray, basis: np.ndarray, n_coarse: int) -> np.ndarray:
    """Scatter between directions found and others, shape (e, m): what these have of those."""
    together = scatter.along(np.hstack([found, basis]), n_coarse)
    return together[: found.shape[1], found.shape[1] :]


def polished(scatter: Scatter, directions: np.ndarray) -> np.ndarray:
    """Return directions that are of scatter one together, not only level by level."""
    values, vectors = np.linalg.eigh(scatter.along(directions, 0))
    return directions @ (vectors / np.sqrt(np.maximum(values, SHARE)))
