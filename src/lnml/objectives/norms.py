"""The squared Frobenius norm of a metric, and what it proves together with hinges.

The derivations are in docs/frobenius.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from lnml.core.solution import Certificate, DualPoint
from lnml.objectives.conditioning import LinearCoordinates

# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-12
# Smoothing changes by EASING if one part of the gap is more than IMBALANCE times the other.
EASING = 2.0
IMBALANCE = 2.0


def half_square(matrix: np.ndarray) -> float:
    """Half the sum of squares."""
    return 0.5 * float(np.vdot(matrix, matrix))


class SquaredNorm(ABC):
    """1/2 |M|_F^2 of the data's coordinates, for components in others.

    See :class:`lnml.objectives.triplet_task.MetricTerm`.

    Parameters
    ----------
    matrix : ndarray of shape (d, e)
        Components L' stand for L = L' @ matrix.T.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix
        self.dual: DualPoint | None = None
        # Weight of -tr M': what slopes must leave over in every direction.
        self.slack = 0.0

    @abstractmethod
    def restrict(self, gradient: np.ndarray) -> np.ndarray:
        """Return the part of a gradient along which the components may move."""

    @abstractmethod
    def conjugate(self, matrix: np.ndarray) -> float:
        """Max over the allowed M of <B, M> - 1/2 |M|_F^2, B given as e x e."""

    def forget(self) -> None:
        """Do not mix the dual points so far with later ones."""
        self.dual = None

    def norm(self, components: np.ndarray) -> float:
        """Half the squared norm of M = L^T L."""
        outside = components @ self.matrix.T
        return half_square(outside @ outside.T)

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the norm minus slack, which a solve minimises, and its gradient in L' (r x e)."""
        outside = components @ self.matrix.T
        gram = outside @ outside.T
        value = half_square(gram) - self.slack * float(np.vdot(components, components))
        gradient = (gram @ outside) @ self.matrix - self.slack * components
        return value, 2.0 * gradient

    def certificate(
        self,
        components: np.ndarray,
        objective: float,
        slope_sum: float,
        push: np.ndarray,
        tol: float = 0.0,
    ) -> Certificate:
        """Return the bound of docs/frobenius.md; it never falls from call to call."""
        bound, share = self._raise_bound(DualPoint(slope_sum, -push))
        easing = self._easing(components, objective, slope_sum, push)
        moved = (components @ self.matrix.T) @ self.matrix
        gradient = self.restrict(moved.T @ moved + push)
        values, vectors = np.linalg.eigh(gradient)
        wanted = values < -ROUNDING * np.abs(values).max()
        directions = vectors[:, wanted]
        # Along u the objective falls at this rate and its norm curves it up.
        curvature = np.linalg.norm(self.matrix @ directions, axis=0) ** 4
        room = -values[wanted] / curvature
        return Certificate(
            objective, bound, lambda: directions, room, easing, shares=(share,), kept=1.0 - share
        )

    def _easing(
        self, components: np.ndarray, objective: float, slope_sum: float, push: np.ndarray
    ) -> float:
        """More smoothing where the metric is off, less where the slopes are.

        The gap of some slopes is the sum of two parts: how far the metric is from
        the best one for these slopes, and how far these are from true slopes of the hinges.
        """
        norm = self.norm(components)
        lagrangian = norm + slope_sum + float(np.vdot(push @ components.T, components.T))
        metric_part = lagrangian - (slope_sum - self.conjugate(-push))
        slope_part = objective - lagrangian
        if metric_part > IMBALANCE * slope_part:
            return EASING
        return 1.0 / EASING if slope_part > IMBALANCE * metric_part else 1.0

    def _raise_bound(self, new: DualPoint) -> tuple[float, float]:
        """Mix new slopes with the best ones so far, since any mixture is a dual point.

        Returns the bound and the share of the new slopes.
        """
        if self.dual is None:
            self.dual = new
            return self._dual_value(new), 1.0
        old = self.dual
        found = minimize_scalar(
            lambda share: -self._dual_value(old.mixed(new, share)),
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 1e-6},
        )
        mixtures = [(share, old.mixed(new, share)) for share in (0.0, 1.0, float(found.x))]
        share, self.dual = max(mixtures, key=lambda pair: self._dual_value(pair[1]))
        return self._dual_value(self.dual), share

    def _dual_value(self, point: DualPoint) -> float:
        """Bound proved by the best multiple, at most 1, of some slopes."""
        curvature = 2.0 * self.conjugate(point.matrix)
        share = 1.0 if curvature <= point.value else point.value / curvature
        return share * point.value - 0.5 * share**2 * curvature


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
