"""Relative comparisons with a Frobenius regulariser: 1/2 |M|_F^2 + C * hinges.

Full metrics (Nguyen, Guo 2008) and weighted bases, M = A W A^T with W >= 0
diagonal (Schultz, Joachims 2003). The derivations are in docs/frobenius.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar, nnls

from lnml.conditioning import LinearCoordinates, whiten_pull
from lnml.kernels.protocol import Embedding, Hinge, Kernels, Pattern, Points
from lnml.objectives.contract import TrainingSet
from lnml.objectives.margins import sample_margins
from lnml.objectives.triplets import Coordinates, TripletProblem, TripletTask
from lnml.solvers.multipliers import Certificate

# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-12
# Directions with less than this share of the mean variance are not whitened.
FLOOR = 1e-4
# Smoothing changes by this factor where one part of the gap is so much the larger.
EASING = 2.0
IMBALANCE = 2.0
# Largest multiple of a metric that is looked at, and the accuracy of the best one.
LARGEST_MULTIPLE = 1.3
MULTIPLE_ACCURACY = 1e-5
# A basis column along which data vary by fewer roundings than this is constant.
CONSTANT = 8.0


class FrobeniusProblem(TripletProblem):
    """Half the squared Frobenius norm of M + C * sum over triplets of [1 + D_ij - D_il]+.

    Parameters
    ----------
    training : TrainingSet
        The data.
    C : float
        Weight of the hinges.
    max_iter : int
        Most iterations of one solve.
    """

    def __init__(self, training: TrainingSet, C: float, max_iter: int) -> None:
        super().__init__(training, hinge_weight=C, pull_weight=0.0, max_iter=max_iter)

    def free_term(self, components: np.ndarray) -> float:
        """Half the squared Frobenius norm of M = L^T L."""
        return half_square(components @ components.T)

    def prepare(
        self, targets: Pattern, impostors: Pattern | None
    ) -> tuple[Coordinates, FrobeniusTask]:
        """Whitened coordinates for the hinges; the norm stays that of the data's coordinates."""
        kernels, points = self.training.kernels, self.training.points
        # First those of LMNN, which leave out directions in which the data do not vary.
        conditioning = soften(kernels, whiten_pull(kernels, points, None))
        return conditioning, self._task(conditioning, targets, FullNorm(conditioning), impostors)

    def best_scale(self, task: TripletTask, components: np.ndarray) -> float:
        """See :func:`best_scale`."""
        return best_scale(task, components)

    def _task(
        self,
        coordinates: Coordinates,
        targets: Pattern,
        term: SquaredNorm,
        impostors: Pattern | None,
    ) -> FrobeniusTask:
        return FrobeniusTask(
            self.training.kernels, coordinates.points, targets, self.hinge_weight, term, impostors
        )


class WeightedBasisProblem(FrobeniusProblem):
    """The same over M = A W A^T, W >= 0 diagonal.

    Parameters
    ----------
    training : TrainingSet
        The data.
    C : float
        Weight of the hinges.
    basis : ndarray of shape (d, m)
        A.
    max_iter : int
        Most iterations of one solve.
    """

    def __init__(self, training: TrainingSet, C: float, basis: np.ndarray, max_iter: int) -> None:
        super().__init__(training, C, max_iter)
        self.basis = basis

    def prepare(
        self, targets: Pattern, impostors: Pattern | None
    ) -> tuple[Coordinates, FrobeniusTask]:
        """Coordinates along the basis, each brought to unit spread."""
        scaled = scale_basis(self.training.kernels, self.training.points, self.basis)
        return scaled, self._task(scaled, targets, DiagonalNorm(scaled.matrix), impostors)


class FrobeniusTask(TripletTask):
    """The objective in the coordinates of a solve, over a working set of impostors."""

    def exact(
        self, components: np.ndarray, embedding: Embedding, terms: Hinge
    ) -> tuple[float, float]:
        """Exact objective of the best multiple from 1 to 1.3 of the metric, and the multiple.

        Where the hinges can almost be satisfied, many small ones cost more than
        the norm of a slightly larger metric. A larger metric has no impostors
        that the search did not find.
        """
        norm = self.term.value_and_gradient(components)[0]

        def hinges(multiple: float) -> Hinge:
            larger = Embedding(float(np.sqrt(multiple)) * embedding.coordinates, embedding.points)
            return self.kernels.hinge(larger, self.targets, self.candidates, 0.0, None)

        def slope(multiple: float, at: Hinge | None = None) -> float:
            # Active hinges sum up to their number plus the multiple times their slope.
            at = at or hinges(multiple)
            return 2.0 * norm * multiple**2 + self.hinge_weight * (at.exact - at.n_active)

        objective = norm + self.hinge_weight * terms.exact
        if slope(1.0, terms) >= 0.0:
            return objective, 1.0
        multiple = LARGEST_MULTIPLE
        if slope(multiple) > 0.0:
            multiple = brentq(slope, 1.0, multiple, xtol=MULTIPLE_ACCURACY)
        scaled = norm * multiple**2 + self.hinge_weight * hinges(multiple).exact
        return (scaled, multiple) if scaled < objective else (objective, 1.0)


def half_square(matrix: np.ndarray) -> float:
    """Half the sum of squares."""
    return 0.5 * float(np.vdot(matrix, matrix))


def soften(kernels: Kernels, whitened: LinearCoordinates) -> LinearCoordinates:
    """Bring principal axes to unit variance, all but small ones, on the span of the data.

    Small ones are governed by the norm, which wants them as they are. On the
    span, because of all metrics with the same distances that one has the least
    norm (docs/frobenius.md).
    """
    span, root = np.linalg.qr(whitened.inverse.T)
    points = whitened.points
    scatter = root @ kernels.gram(points.data, points.data) @ root.T
    values, vectors = np.linalg.eigh(scatter / points.n_rows)
    sizes = np.sqrt(np.maximum(values, FLOOR * values.mean()))
    rotation = span @ vectors
    return LinearCoordinates(
        points=kernels.mapped(points, root.T @ vectors / sizes),
        matrix=rotation / sizes,
        inverse=(rotation * sizes).T,
    )


@dataclass(frozen=True)
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


class DualPoint(NamedTuple):
    """Slopes of all hinges, as far as a bound needs them.

    ``total`` is C times their sum, ``matrix`` (e x e) C times the sum of slope *
    (v_il v_il^T - v_ij v_ij^T). The points of two sets of slopes mix as the slopes do.
    """

    total: float
    matrix: np.ndarray

    def mixed(self, other: DualPoint, share: float) -> DualPoint:
        """(1 - share) times this plus share times the other."""
        return DualPoint(
            (1.0 - share) * self.total + share * other.total,
            (1.0 - share) * self.matrix + share * other.matrix,
        )


class SquaredNorm(ABC):
    """1/2 |M|_F^2 of the data's coordinates, for components in others.

    See :class:`lnml.objectives.triplets.MetricTerm`.

    Parameters
    ----------
    matrix : ndarray of shape (d, e)
        Components L' stand for L = L' @ matrix.T.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix
        self.dual: DualPoint | None = None

    @abstractmethod
    def restrict(self, gradient: np.ndarray) -> np.ndarray:
        """Return the part of a gradient along which the components may move."""

    @abstractmethod
    def conjugate(self, matrix: np.ndarray) -> float:
        """Max over the allowed M of <B, M> - 1/2 |M|_F^2, B given as e x e."""

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Value at M = L^T L and its gradient in L' (r x e)."""
        outside = components @ self.matrix.T
        gram = outside @ outside.T
        return half_square(gram), 2.0 * (gram @ outside) @ self.matrix

    def certificate(
        self, components: np.ndarray, objective: float, slope_sum: float, push: np.ndarray
    ) -> Certificate:
        """Return the bound of docs/frobenius.md; it never falls from call to call."""
        bound = self._raise_bound(DualPoint(slope_sum, -push))
        easing = self._easing(components, objective, slope_sum, push)
        moved = (components @ self.matrix.T) @ self.matrix
        gradient = self.restrict(moved.T @ moved + push)
        values, vectors = np.linalg.eigh(gradient)
        wanted = values < -ROUNDING * np.abs(values).max()
        directions = vectors[:, wanted]
        # Along u the objective falls at this rate and its norm curves it up.
        curvature = np.linalg.norm(self.matrix @ directions, axis=0) ** 4
        return Certificate(bound, directions, -values[wanted] / curvature, easing)

    def _easing(
        self, components: np.ndarray, objective: float, slope_sum: float, push: np.ndarray
    ) -> float:
        """More smoothing where the metric is off, less where the slopes are.

        The gap of some slopes is the sum of two parts: how far the metric is from
        the best one for these slopes, and they from true slopes of the hinges.
        """
        norm = self.value_and_gradient(components)[0]
        lagrangian = norm + slope_sum + float(np.vdot(push @ components.T, components.T))
        metric_part = lagrangian - (slope_sum - self.conjugate(-push))
        slope_part = objective - lagrangian
        if metric_part > IMBALANCE * slope_part:
            return EASING
        return 1.0 / EASING if slope_part > IMBALANCE * metric_part else 1.0

    def _raise_bound(self, new: DualPoint) -> float:
        """Mix new slopes with the best ones so far, since any mixture is a dual point."""
        if self.dual is None:
            self.dual = new
            return self._dual_value(new)
        old = self.dual
        found = minimize_scalar(
            lambda share: -self._dual_value(old.mixed(new, share)),
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 1e-6},
        )
        values = [(self._dual_value(p), p) for p in (old, new, old.mixed(new, found.x))]
        value, self.dual = max(values, key=lambda pair: pair[0])
        return value

    def _dual_value(self, point: DualPoint) -> float:
        """Bound proved by the best multiple, at most 1, of some slopes."""
        curvature = 2.0 * self.conjugate(point.matrix)
        share = 1.0 if curvature <= point.total else point.total / curvature
        return share * point.total - 0.5 * share**2 * curvature


class FullNorm(SquaredNorm):
    """1/2 |M|_F^2 over all M >= 0.

    Parameters
    ----------
    coordinates : LinearCoordinates
        Where the components live.
    """

    def __init__(self, coordinates: LinearCoordinates) -> None:
        super().__init__(coordinates.matrix)
        # B in an orthonormal basis of the span is root B' root^T.
        self.root = np.asarray(np.linalg.qr(coordinates.inverse.T, mode="r"))

    def restrict(self, gradient: np.ndarray) -> np.ndarray:
        """All directions are allowed."""
        return gradient

    def conjugate(self, matrix: np.ndarray) -> float:
        """Half the squared norm of the positive part of B."""
        values = np.linalg.eigvalsh(self.root @ matrix @ self.root.T)
        return half_square(np.maximum(values, 0.0))


class DiagonalNorm(SquaredNorm):
    """1/2 |A W A^T|_F^2 for diagonal components, W' = diag(v^2).

    Parameters
    ----------
    matrix : ndarray of shape (d, m)
        The basis in the units of the task; zero columns have weight zero.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        super().__init__(matrix)
        lengths = np.linalg.norm(matrix, axis=0)
        self.used = lengths > 0
        self.squares = lengths[self.used] ** 2
        units = matrix[:, self.used] / lengths[self.used]
        # Q for weights in units of squared column lengths: one on the diagonal.
        products = (units.T @ units) ** 2
        self.orthogonal = bool(np.abs(products - np.eye(len(products))).max() <= ROUNDING)
        values, vectors = np.linalg.eigh(products)
        kept = values > ROUNDING * values[-1]
        self.factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        self.inverse_factor = vectors[:, kept].T / np.sqrt(values[kept])[:, None]

    def restrict(self, gradient: np.ndarray) -> np.ndarray:
        """Only the diagonal moves."""
        return np.diag(np.diag(gradient))

    def conjugate(self, matrix: np.ndarray) -> float:
        """Max over w >= 0 of b^T w - 1/2 w^T Q w."""
        gains = np.diag(matrix)[self.used] / self.squares
        if self.orthogonal:
            return half_square(np.maximum(gains, 0.0))
        weights, _ = nnls(self.factor, self.inverse_factor @ gains)
        return float(gains @ weights) - half_square(self.factor @ weights)


def best_scale(task: TripletTask, components: np.ndarray) -> float:
    """Multiple t of M = L^T L with about the least objective along the ray.

    There the objective is q t^2 / 2 plus hinges, convex, so its slope rises
    through zero once. A sample of the triplets is enough: any multiple is a
    valid start.
    """
    sample = sample_margins(task, components)
    curvature = 2.0 * task.term.value_and_gradient(components)[0]
    weight = task.hinge_weight * sample.per_row * sample.all_rows
    totals = weight * np.concatenate([[0.0], np.cumsum(sample.margins)])
    typical = float(np.abs(sample.margins).mean())
    if curvature == 0.0 or typical == 0.0:
        return 1.0
    if totals[-1] >= 0.0:
        return 1.0 / typical

    def slope(log_scale: float) -> float:
        # A triplet is active at t while margin > -1 / t; its slope there is its margin.
        active = np.searchsorted(-sample.margins, np.exp(-log_scale))
        return float(curvature * np.exp(log_scale) + totals[active])

    all_active = min(-1.0 / sample.margins[-1], -totals[-1] / curvature) / 2.0
    too_far = -2.0 * totals.min() / curvature
    return float(np.exp(brentq(slope, np.log(all_active), np.log(too_far), xtol=0.1)))
