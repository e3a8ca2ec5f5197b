"""Relative comparisons with a Frobenius regulariser: 1/2 |M|_F^2 + C * hinges.

Full metrics (Nguyen, Guo 2008) and weighted bases, M = A W A^T with W >= 0
diagonal (Schultz, Joachims 2003). The derivations are in docs/frobenius.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from lnml.core.pairs import Edge, Hinge, Pattern
from lnml.core.points import Embedding
from lnml.core.solution import Proof
from lnml.kernels.training import TrainingSet
from lnml.objectives.conditioning import (
    SoftCoordinates,
    class_pull,
    for_proof,
    scale_basis,
    soften,
    whiten_pull,
)
from lnml.objectives.margins import sample_margins
from lnml.objectives.norms import DiagonalNorm, FullNorm, SquaredNorm, half_square
from lnml.objectives.streamed_proof import slope_sums
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.objectives.triplet_task import PointCoordinates, TripletTask, count_triplets
from lnml.objectives.triplets import TripletObjective
from lnml.proofs.differences import column_moments
from lnml.proofs.hinges import (
    norm_bound,
    push_moment,
    slope_edges,
    slope_total,
    weights_bound,
)
from lnml.proofs.objective import Value
from lnml.proofs.rounding import UNIT, gamma
from lnml.proofs.slopes import Slopes, SlopesAt

# Variance above which a norm counts as free, in units where it costs as much as all hinges.
FREE = 10.0
# A norm is negligible if it is below this share of what slack may cost.
NEGLIGIBLE = 0.1
# Largest multiple of a metric that is looked at, and the accuracy of the best one.
LARGEST_MULTIPLE = 1.3
MULTIPLE_ACCURACY = 1e-5


class FrobeniusObjective(TripletObjective):
    """Half the squared Frobenius norm of M + C * sum over triplets of [1 + D_ij - D_il]+.

    Parameters
    ----------
    training : TrainingSet
        The data.
    C : float
        Weight of the hinges.
    impostors : Pattern, optional
        Replace the rows of other classes.
    """

    def __init__(self, training: TrainingSet, C: float, impostors: Pattern | None = None) -> None:
        super().__init__(training, hinge_weight=C, pull_weight=0.0, impostors=impostors)

    def free_term(self, components: np.ndarray) -> float:
        """Half the squared Frobenius norm of M = L^T L."""
        return half_square(components @ components.T)

    def task(self, targets: Pattern) -> FrobeniusTask:
        """Whiten the hinges; the norm stays that of the data's coordinates."""
        kernels, points = self.training.kernels, self.training.points
        # First those of LMNN, which leave out directions in which the data do not vary.
        whitened = whiten_pull(kernels, points, Edge(targets))
        if whitened.points.far:
            # Outliers set the variance of all rows: it says nothing about what hinges need.
            conditioning = SoftCoordinates(
                whitened.points, whitened.matrix, whitened.inverse, whitened
            )
            return self._task(conditioning, targets, FullNorm(conditioning))
        whitened = whiten_pull(kernels, points, class_pull(points))
        # A distance of one along a direction of variance s costs a norm of 1 / (2 s^2), which
        # is next to nothing beside the hinges of the zero metric.
        n_triplets = count_triplets(points, targets, self.impostors)
        free = FREE / np.sqrt(max(self.hinge_weight * n_triplets, 1e-300))
        conditioning = soften(kernels, whitened, free)
        return self._task(conditioning, targets, FullNorm(conditioning))

    def metric_value(self, finished: FinishedTriplets) -> Value:
        """Half the squared Frobenius norm of M = L^T L."""
        components = finished.components
        gram = components @ components.T
        norm = float(np.linalg.norm(gram))
        moved = gamma(len(components.T) + 2) * float(np.vdot(components, components))
        return Value(half_square(gram), norm * moved + moved**2 + gamma(gram.size + 4) * norm**2)

    def proved(self, finished: FinishedTriplets, slopes: Slopes | SlopesAt) -> Proof:
        """Return the bound of docs/frobenius.md."""
        kernels, points = self.training.kernels, self.training.points
        known = finished.task.coordinates.whitened
        whitened = for_proof(kernels, points, known, class_pull(points))
        if isinstance(slopes, SlopesAt):
            sums = slope_sums(kernels, finished, slopes, whitened.matrix)
            push, total = sums.push, sums.weighted(self.hinge_weight)
        else:
            push = push_moment(finished.pairs, slopes, whitened.matrix)
            total = slope_total(slopes, self.hinge_weight)
        push = push.times(self.hinge_weight)
        bound = norm_bound(push, total, whitened.matrix, whitened.inverse)
        if isinstance(slopes, SlopesAt):
            duals = sums.duals(bound.share)
        else:
            duals = slopes.scaled(bound.share).duals()
        if bound.dominator is not None:
            duals["dominator"] = bound.dominator
        return Proof(
            finished.objective,
            0.0,
            bound.value,
            method="frobenius",
            parameters={"C": self.hinge_weight},
            coordinates=whitened.matrix,
            duals=duals,
        )

    def _task(
        self, coordinates: PointCoordinates, targets: Pattern, term: SquaredNorm
    ) -> FrobeniusTask:
        return FrobeniusTask(
            self.training.kernels, coordinates, targets, self.hinge_weight, term, self.impostors
        )


class WeightedBasisObjective(FrobeniusObjective):
    """The same over M = A W A^T, W >= 0 diagonal.

    Parameters
    ----------
    training : TrainingSet
        The data.
    C : float
        Weight of the hinges.
    basis : ndarray of shape (d, m)
        A.
    impostors : Pattern, optional
        Replace the rows of other classes.
    """

    def __init__(
        self,
        training: TrainingSet,
        C: float,
        basis: np.ndarray,
        impostors: Pattern | None = None,
    ) -> None:
        super().__init__(training, C, impostors)
        self.basis = basis

    def task(self, targets: Pattern) -> FrobeniusTask:
        """Use coordinates along the basis, each brought to unit spread."""
        kernels, points = self.training.kernels, self.training.points
        scaled = scale_basis(kernels, points, self.basis, targets)
        return self._task(scaled, targets, DiagonalNorm(scaled.matrix))

    def proved(self, finished: FinishedTriplets, slopes: Slopes | SlopesAt) -> Proof:
        """Return the bound of docs/frobenius.md, along the columns of the basis."""
        # A column along which rows do not differ needs no weight.
        basis = np.where(finished.task.coordinates.varies, self.basis, 0.0)
        if isinstance(slopes, SlopesAt):
            sums = slope_sums(self.training.kernels, finished, slopes, basis)
            push, total = sums.push, sums.weighted(self.hinge_weight)
            found, error = -np.diag(push.matrix), push.error
        else:
            i, j, weights, summed = slope_edges(finished.pairs, slopes)
            total = slope_total(slopes, self.hinge_weight)
            found, error = column_moments(finished.pairs.rows, i, j, -weights, basis)
            error = error + gamma(summed) * np.abs(found)
        # Pairs may not differ at all along a column, and a check knows rows to so many digits only.
        columns = self.training.kernels.columns(self.training.points)
        largest = np.maximum(-columns.lowest, columns.highest) @ np.abs(basis)
        error = error + UNIT**3 * total / self.hinge_weight * largest**2
        bound = weights_bound(
            self.hinge_weight * found,
            self.hinge_weight * error + 2.0 * UNIT * np.abs(self.hinge_weight * found),
            total,
            basis,
        )
        if isinstance(slopes, SlopesAt):
            duals = sums.duals(bound.share)
        else:
            duals = slopes.scaled(bound.share).duals()
        assert bound.dominator is not None, "weights always dominate"
        return Proof(
            finished.objective,
            0.0,
            bound.value,
            method="weighted_basis",
            parameters={"C": self.hinge_weight},
            duals={**duals, "basis": basis, "weights": bound.dominator},
        )


class FrobeniusTask(TripletTask):
    """The objective in the coordinates of a solve, over a working set of impostors."""

    term: SquaredNorm
    # Columns keep their units here: where these are far apart, an old model may stall a solve.
    keeps_curvature = False

    def aim(self, components: np.ndarray, worth: float) -> None:
        """Ask for slopes that are feasible with some slack, where the norm gives none.

        See docs/frobenius.md; ``worth`` is how much of the objective it may cost.
        """
        norm, size = self.term.norm(components), float(np.vdot(components, components))
        self.term.slack = worth / size if norm < NEGLIGIBLE * worth and size > 0.0 else 0.0

    def exact(
        self, components: np.ndarray, embedding: Embedding, terms: Hinge
    ) -> tuple[float, float]:
        """Exact objective of the best multiple from 1 to 1.3 of the metric, and the multiple.

        Where the hinges can almost be satisfied, many small ones cost more than
        the norm of a slightly larger metric. A larger metric has no impostors
        that the search did not find. Without a search each multiple would cost one, so that the
        metric stays as it is.
        """
        if self.streamed:
            return super().exact(components, embedding, terms)
        norm = self.term.norm(components)
        plain = self.working.with_multipliers(None)

        def hinges(multiple: float) -> Hinge:
            factor = float(np.sqrt(multiple))
            larger = replace(
                embedding,
                coordinates=factor * embedding.coordinates,
                components=factor * components,
            )
            return self.kernels.hinge(larger, plain, 0.0)

        def slope(multiple: float, at: Hinge | None = None) -> float:
            # Active hinges sum up to their number plus the multiple times their slope.
            at = at or hinges(multiple)
            return 2.0 * norm * multiple**2 + self.hinge_weight * (at.exact - at.n_active)

        objective = norm + self.hinge_weight * terms.exact
        if slope(1.0, terms) >= 0.0:
            return objective, 1.0
        multiple = LARGEST_MULTIPLE
        if slope(multiple) > 0.0:
            multiple = _root(slope, 1.0, multiple, MULTIPLE_ACCURACY)
        scaled = norm * multiple**2 + self.hinge_weight * hinges(multiple).exact
        return (scaled, multiple) if scaled < objective else (objective, 1.0)

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray.

        There the objective is q t^2 / 2 plus hinges, convex, so its slope rises
        through zero once. A sample of the triplets is enough: any multiple is a
        valid start.
        """
        sample = sample_margins(self, components)
        curvature = 2.0 * self.term.norm(components)
        weight = self.hinge_weight * sample.all_rows
        typical = float(np.abs(sample.margins).mean())
        totals = np.zeros(sample.margins.size + 1)
        np.cumsum(sample.weights * sample.margins, out=totals[1:])
        totals *= weight
        if curvature == 0.0 or typical == 0.0:
            return 1.0
        if totals[-1] >= 0.0:
            return 1.0 / typical

        rising = sample.margins[::-1]

        def slope(log_scale: float) -> float:
            # A triplet is active at t while margin > -1 / t; its slope there is its margin.
            active = rising.size - np.searchsorted(rising, -np.exp(-log_scale), side="right")
            return float(curvature * np.exp(log_scale) + totals[active])

        all_active = min(-1.0 / sample.margins[-1], -totals[-1] / curvature) / 2.0
        too_far = -2.0 * totals.min() / curvature
        return float(np.exp(_root(slope, np.log(all_active), np.log(too_far), 0.1)))


def _root(function: Callable[[float], float], low: float, high: float, accuracy: float) -> float:
    """Return a root of a function between two points of different sign."""
    # SciPy wraps the function into a reference cycle. What a function holds, rows of the data and
    # a working set, would stay in memory until Python looks for cycles.
    held = [function]
    try:
        return float(brentq(lambda at: held[0](at), low, high, xtol=accuracy))
    finally:
        held.clear()
