"""Coordinates in which a metric is easy to learn.

Columns are first brought to unit spread, then rotated and scaled so that the
pull scatter (the sum of v v^T over target pairs) becomes the identity. The
problem is the same, its metric is only written in other coordinates; the
solvers need ten times fewer steps in these. See docs/lmnn.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from lnml.core.pairs import Edge, Pattern
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels
from lnml.objectives.scatter import (
    CONSTANT,
    ColumnUnits,
    PullScatter,
    Spread,
    TotalScatter,
    polished,
    total_scatter,
    whitened,
)

# Directions with less than this share of the mean variance are not whitened by `soften`.
SOFT_FLOOR = 1e-4
# Coordinates of float32 rows are kept in float64 if their rounding is a larger share than
# this of a typical difference of target pairs.
LARGEST_ROUNDING = 1e-4
# A column whose target pairs differ by less than this share of its spread is stretched.
STRETCHED = 1e-3
# Rows are far from each other if squared distances, in units of a typical one of a target
# pair, reach this multiple of what keeps half of their digits.
FAR = 10.0


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
        Its diagonal: one, or zero in directions without pull.
    """

    pull: np.ndarray


def class_pull(points: Points) -> np.ndarray:
    """Weight of the pairs of every class under which each row has a pull of one."""
    return np.asarray(1.0 / np.maximum(points.class_sizes - 1, 1))


def ideal_pull(points: Points, targets: Pattern | None) -> Edge | np.ndarray:
    """Return the pairs of the ideal distribution, with its weights."""
    return class_pull(points) if targets is None else Edge(targets, shared=True)


class RowSpan:
    """What whitening asks of the rows alone: the same for all target pairs.

    Parameters
    ----------
    kernels : Kernels
        The device.
    points : Points
        The data as given, n x d.
    """

    def __init__(self, kernels: Kernels, points: Points) -> None:
        self.kernels, self.points = kernels, points
        self._basis: tuple[np.ndarray, int] | None = None

    @cached_property
    def spread(self) -> Spread:
        """How the values of the columns lie."""
        return Spread.of(self.kernels, self.points)

    def units(self) -> ColumnUnits:
        """Return the columns in units of their spread; made anew, since it holds all rows."""
        return ColumnUnits.of(self.kernels, self.points, self.spread)

    def basis(self, units: ColumnUnits) -> tuple[np.ndarray, int]:
        """Return the directions (d x e) in which rows differ, and how many are large."""
        if self._basis is None:
            self._basis = self._varying(units)
        return self._basis

    def _varying(self, units: ColumnUnits) -> tuple[np.ndarray, int]:
        columns = np.eye(self.points.n_features)[:, np.isfinite(units.scale)]
        varying = whitened(TotalScatter(self.kernels, units), columns, columns.shape[1])
        # Rows do not differ there, so it changes nothing, and the inverse becomes simple.
        left_out = np.linalg.qr(varying.without)[0]
        basis = varying.directions - left_out @ (left_out.T @ varying.directions)
        return basis, varying.n_coarse


def whiten_pull(
    kernels: Kernels,
    points: Points,
    pull: Edge | np.ndarray,
    ridge: float = 0.0,
    span: RowSpan | None = None,
) -> Conditioning:
    """Coordinates in which the weighted pull scatter, plus a ridge, is the identity.

    Parameters
    ----------
    kernels : Kernels
        The device.
    points : Points
        The data as given, n x d.
    pull : Edge, or ndarray of shape (n_classes,)
        Target pairs with weights; or the weight of all pairs of each class.
    ridge : float
        Multiple of the identity, in the columns as given, that is added to the scatter.
    span : RowSpan, optional
        What is known of these points from other target pairs.
    """
    span = span or RowSpan(kernels, points)
    units = span.units()
    if ridge > 0.0:
        return _whiten_ridge(kernels, units, PullScatter(kernels, units, pull), ridge)
    basis, n_coarse = span.basis(units)
    scatter = PullScatter(kernels, units, pull)
    found = whitened(scatter, basis, n_coarse)
    pulled = found.directions
    if pulled.shape[1] > found.n_coarse:
        pulled = polished(scatter, pulled)
    free = found.without
    if free.shape[1]:
        # In directions without pull the spread of the rows sets the unit.
        spread = kernels.columns(units.along(kernels, free)).spread
        free = free / (np.sqrt(scatter.weight) * np.where(spread > 0.0, spread, 1.0))
    directions = np.hstack([pulled, free])
    return Conditioning(
        points=_mapped(kernels, units, directions, scatter.weight),
        matrix=directions / units.scale[:, None],
        inverse=_inverse(directions) * units.unscale,
        pull=np.repeat([1.0, 0.0], [pulled.shape[1], free.shape[1]]),
    )


def _whiten_ridge(
    kernels: Kernels, units: ColumnUnits, pull: PullScatter, ridge: float
) -> Conditioning:
    """Whiten a scatter with a ridge: no direction is left out, and none is too small to see."""
    used = np.flatnonzero(np.isfinite(units.scale))
    scale = units.scale[used]
    raw = pull.matrix[np.ix_(used, used)] * scale[:, None] * scale
    values, vectors = np.linalg.eigh(raw + ridge * np.eye(used.size))
    # The ridge bounds them from below, whatever rounding says.
    roots = np.sqrt(np.maximum(values, ridge))
    directions = np.zeros((units.scale.size, used.size))
    directions[used] = scale[:, None] * vectors / roots
    inverse = np.zeros((used.size, units.scale.size))
    inverse[:, used] = (vectors * roots).T
    return Conditioning(
        points=_mapped(kernels, units, directions, pull.weight),
        matrix=directions / units.scale[:, None],
        inverse=inverse,
        pull=np.ones(used.size),
    )


def for_proof(
    kernels: Kernels, points: Points, found: Conditioning, pull: Edge | np.ndarray
) -> Conditioning:
    """Return coordinates that see whatever float64 can tell apart in the rows.

    A fit to float32 data leaves out directions in which rows differ by float32 rounding
    alone; a bound over all metrics must not. Parameters are those of :func:`whiten_pull`.
    """
    whole = found.matrix.shape[1] == len(found.matrix)
    if whole or points.rounding is None or points.dtype != np.float32:
        return found
    columns = kernels.columns(points)
    if found.matrix.shape[1] >= np.count_nonzero(columns.highest > columns.lowest):
        # Nothing but constant columns is left out.
        return found
    exact = replace(kernels.mapped(points, wide=True), rounding=None)
    return whiten_pull(kernels, exact, pull)


def scale_pull(
    kernels: Kernels, points: Points, pull: Edge | np.ndarray, ridge: float = 0.0
) -> Conditioning:
    """Scale each column by its own pull, for a diagonal metric. Constant columns are left out.

    Parameters are those of :func:`whiten_pull`; only the diagonal of the pull
    scatter is one.
    """
    units = ColumnUnits.of(kernels, points)
    columns = np.eye(points.n_features)[:, np.isfinite(units.scale)]
    scatter = PullScatter(kernels, units, pull)
    squares = np.maximum(np.diag(columns.T @ scatter.matrix @ columns), 0.0)
    size = np.sqrt(squares + ridge / units.scale[np.isfinite(units.scale)] ** 2)
    pulled = (size > scatter.noise(columns)) | (ridge > 0.0)
    unit = np.where(pulled, size, np.sqrt(scatter.weight))
    directions = columns / unit
    return Conditioning(
        points=_mapped(kernels, units, directions, scatter.weight),
        matrix=directions / units.scale[:, None],
        inverse=(columns * unit * units.unscale[:, None]).T,
        pull=1.0 * pulled,
    )


def _mapped(kernels: Kernels, units: ColumnUnits, directions: np.ndarray, weight: float) -> Points:
    """Return the rows along directions in which target pairs of some weight have scatter one."""
    rows = units.along(kernels, directions)
    # The largest distance in units of a typical difference of a target pair.
    reach = np.sqrt(weight) * float(kernels.columns(rows).spread.max(initial=0.0))
    if rows.dtype == np.float32 and rows.precision * reach > LARGEST_ROUNDING:
        units = units._replace(points=kernels.mapped(units.points, wide=True))
        rows = units.along(kernels, directions)
    far = rows.precision * reach**2 > FAR * np.sqrt(rows.precision)
    return replace(rows, far=bool(far))


def _inverse(directions: np.ndarray) -> np.ndarray:
    """Return the map (e x d) from directions (d x e) back to columns, on their span."""
    q, r = np.linalg.qr(directions)
    return np.asarray(solve_triangular(r, q.T))


@dataclass(frozen=True, eq=False)
class SoftCoordinates(LinearCoordinates):
    """Coordinates in which directions with little variance are stretched less.

    Attributes
    ----------
    whitened : Conditioning
        The ones that stretch all.
    """

    whitened: Conditioning


def soften(kernels: Kernels, whitened: Conditioning, free: float) -> SoftCoordinates:
    """Scale the principal axes of the data to unit variance, except those with little variance.

    Along these the norm decides, so they are stretched less. Above a variance of ``free``
    the norm costs next to nothing. The coordinates cover
    the span of the data only: of all metrics with the same distances, the one on
    the span has the least norm (docs/frobenius.md).
    """
    span, root = np.linalg.qr(whitened.inverse.T)
    points = whitened.points
    scatter = root @ total_scatter(kernels, points) @ root.T
    values, vectors = np.linalg.eigh(scatter / points.n_rows)
    sizes = np.sqrt(np.maximum(values, min(SOFT_FLOOR * values.mean(), free)))
    rotation = span @ vectors
    return SoftCoordinates(
        points=kernels.mapped(points, root.T @ vectors / sizes),
        matrix=rotation / sizes,
        inverse=(rotation * sizes).T,
        whitened=whitened,
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
        return np.abs(components) @ self.matrix.T

    @property
    def varies(self) -> np.ndarray:
        """Whether the data vary along each column of the basis, shape (m,)."""
        return np.asarray(self.matrix.any(axis=0))


def scale_basis(
    kernels: Kernels, points: Points, basis: np.ndarray, targets: Pattern
) -> ScaledBasis:
    """Bring the data to unit spread along every column of a basis (d x m).

    A column along which they do not vary gets weight zero, which costs nothing. If
    outliers set the spread of a column, it is stretched: its target pairs count, too.
    """
    along = Points(kernels.embed(points, basis.T).coordinates, points.class_start)
    given, found = kernels.columns(points), kernels.columns(along)
    largest = np.maximum(-given.lowest, given.highest)
    rounding = points.precision * (largest @ np.abs(basis))
    scale = np.where(found.spread > CONSTANT * rounding, found.spread, np.inf)
    rows = kernels.mapped(along, shift=found.mean, scale=scale)
    pull = np.sqrt(kernels.edge_scatter(rows, [Edge(targets)]).squares / targets.size)
    stretched = (pull > CONSTANT * rounding / scale) & (pull < STRETCHED)
    scale[stretched] *= pull[stretched] / STRETCHED
    return ScaledBasis(kernels.mapped(along, shift=found.mean, scale=scale), basis / scale)
