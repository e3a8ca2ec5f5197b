"""Large margin nearest neighbours (paper, eq. 6) for given target neighbours."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh

from lnml.core.pairs import Edge, MixedSlopes, Pattern
from lnml.core.solution import Certificate, DualPoint, Proof
from lnml.core.trail import Trail
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import is_tensor, like
from lnml.kernels.training import TrainingSet
from lnml.objectives.conditioning import Conditioning, RowSpan, for_proof, whiten_pull
from lnml.objectives.large_proof import prove_large
from lnml.objectives.margins import sample_margins
from lnml.objectives.mixture import RecentPoints
from lnml.objectives.streamed_proof import pull_sum, slope_sums
from lnml.objectives.trace import PenalisedObjective, Ridge
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.objectives.triplet_task import TripletTask
from lnml.objectives.triplets import TripletObjective
from lnml.proofs.differences import moment
from lnml.proofs.hinges import Bound, pull_bound, push_moment, slope_total, unseen
from lnml.proofs.objective import Value
from lnml.proofs.slopes import Slopes, SlopesAt

# Eigenvalues of a scatter matrix below this share of its scale are rounding.
ROUNDING = 1e-12
# A saddle is left only if dual infeasibility exceeds this, in units of the pull.
ESCAPE_THRESHOLD = 1e-4


class LMNNObjective(TripletObjective, PenalisedObjective):
    """Sum over targets of (1 - mu) D_ij + mu * sum over impostors of [1 + D_ij - D_il]+.

    Parameters
    ----------
    training : TrainingSet
        The data.
    push_weight : float
        mu, the weight of the hinge.
    trace_penalty : float
        rho: the trace of the metric costs like so many times the target pairs.
    """

    proves_large = True

    def __init__(
        self, training: TrainingSet, push_weight: float, trace_penalty: float = 0.0
    ) -> None:
        super().__init__(training, push_weight, 1.0 - push_weight)
        self.ridge = Ridge.of(training, trace_penalty, training.n_target_pairs)
        self.span = RowSpan(training.kernels, training.points)

    def free_term(self, components: np.ndarray) -> float:
        """Return the trace penalty: every other term depends on the target pairs."""
        return self.pull_weight * self.ridge.value(components).value

    def task(self, targets: Pattern) -> LMNNTask:
        """Return the task in coordinates where the pull scatter is the identity."""
        task: LMNNTask = self.not_at_zero(targets)
        return task

    def penalised(self, targets: Pattern, ridge: Ridge) -> LMNNTask:
        """See :class:`lnml.objectives.trace.PenalisedObjective`."""
        kernels, points = self.training.kernels, self.training.points
        conditioning = whiten_pull(kernels, points, Edge(targets), ridge.weight, self.span)
        return LMNNTask(
            kernels, conditioning, targets, self.hinge_weight, self.impostors, ridge.weight
        )

    def metric_value(self, finished: FinishedTriplets) -> Value:
        """Return the pull, from the distances of the target pairs, and the penalty."""
        pull = finished.targets.total().plus(self.ridge.value(finished.components))
        return Value(0.0, 0.0).plus(pull, self.pull_weight)

    def proved(self, finished: FinishedTriplets, slopes: Slopes | SlopesAt | MixedSlopes) -> Proof:
        """Return the bound of docs/lmnn.md: slopes scaled until they are dual feasible."""
        if isinstance(slopes, SlopesAt):
            return self._proved_by_sums(finished, slopes)
        if isinstance(slopes, MixedSlopes):
            return prove_large(self.training, finished, slopes, self.hinge_weight, self.ridge)
        training, task = self.training, finished.task
        kernels, points = training.kernels, training.points
        conditioning = for_proof(kernels, points, task.coordinates, Edge(task.targets))
        coordinates, pairs = conditioning.matrix, finished.pairs
        pull = moment(pairs.rows, pairs.i, pairs.j, np.ones(pairs.i.size), coordinates)
        pull = pull.plus(self.ridge.moment(coordinates))

        def proved(slopes: Slopes) -> tuple[Bound, Slopes]:
            push = push_moment(pairs, slopes, coordinates).times(self.hinge_weight)
            total = slope_total(slopes, self.hinge_weight)
            return pull_bound(pull, push, self.pull_weight, total), slopes

        bound, slopes = proved(slopes)
        free = coordinates[:, conditioning.pull == 0.0]
        if bound.value < 0.5 * finished.objective and free.shape[1]:
            # More metric along directions without pull is free: triplets that it parts are not
            # active in the end, and their slopes are zero.
            kept = unseen(pairs, slopes, free)
            bound, slopes = max((bound, slopes), proved(kept), key=lambda pair: pair[0].value)
        return self._proof(finished, bound, coordinates, slopes.scaled(bound.share).duals())

    def _proved_by_sums(self, finished: FinishedTriplets, dual: SlopesAt) -> Proof:
        """Return the same bound where there is no room for the slopes."""
        kernels, points = self.training.kernels, self.training.points
        edge = Edge(finished.task.targets)
        coordinates = for_proof(kernels, points, finished.task.coordinates, edge).matrix
        pull = pull_sum(kernels, finished, coordinates).plus(self.ridge.moment(coordinates))
        sums = slope_sums(kernels, finished, dual, coordinates)
        push = sums.push.times(self.hinge_weight)
        bound = pull_bound(pull, push, self.pull_weight, sums.weighted(self.hinge_weight))
        return self._proof(finished, bound, coordinates, sums.duals(bound.share))

    def _proof(
        self,
        finished: FinishedTriplets,
        bound: Bound,
        coordinates: np.ndarray,
        duals: dict[str, np.ndarray],
    ) -> Proof:
        return Proof(
            finished.objective,
            0.0,
            bound.value,
            method="lmnn",
            parameters={"push_weight": self.hinge_weight, **self.ridge.parameters},
            coordinates=coordinates,
            slack=bound.slack,
            limit=bound.limit,
            duals=duals,
        )


class Pull:
    """(1 - mu) <S, M> for a diagonal pull scatter S.

    See :class:`lnml.objectives.triplet_task.MetricTerm`.

    Parameters
    ----------
    weight : float
        1 - mu.
    scatter : ndarray of shape (e,)
        Diagonal of S.
    """

    def __init__(self, weight: float, scatter: np.ndarray) -> None:
        self.weight = weight
        self._weights = weight * scatter
        # The same where components are tensors, once it was asked for.
        self._weights_there: Any = None
        # In units of the pull scatter, with a trace of it where there is none.
        self.scale = 1.0 / np.sqrt(scatter + ROUNDING)
        self.recent = RecentPoints(weight * scatter * self.scale**2, weight)

    def forget(self) -> None:
        """Do not mix the dual points so far with later ones."""
        self.recent.forget()

    def value_and_gradient(self, components: Any) -> tuple[Any, Any]:
        """Value at M = L^T L and its gradient in L (r x e), where the components are."""
        if not is_tensor(components):
            slope = components * self._weights
            return float(np.vdot(slope, components)), 2.0 * slope
        if self._weights_there is None:
            self._weights_there = like(self._weights, components)
        slope = components * self._weights_there
        return (slope * components).sum(), 2.0 * slope

    def restrict(self, gradient: Any) -> Any:
        """All metrics are allowed."""
        return gradient

    def certificate(
        self,
        components: np.ndarray,
        objective: float,
        slope_sum: float,
        push: np.ndarray,
        tol: float = 0.0,
    ) -> Certificate:
        """Return the bound of docs/lmnn.md: slopes mixed and scaled until they are feasible."""
        # In units of the pull scatter S, G = (1 - mu) S + push must be >= -nu S.
        point = DualPoint(slope_sum, push * self.scale[:, None] * self.scale)
        dual = np.diag(self.recent.pull) + point.matrix
        shortfall = max(0.0, -float(np.linalg.eigvalsh(dual)[0]))
        alone = self.weight / (self.weight + shortfall) * slope_sum
        best = self.recent.mixed(point, alone, objective, tol)
        lacking = partial(self._lacking, dual)
        return Certificate(objective, best.bound, lacking, shares=best.shares)

    def _lacking(self, dual: np.ndarray) -> np.ndarray:
        """Return the directions (e x m) along which a dual matrix is negative."""
        lowest = -np.inf, -ESCAPE_THRESHOLD
        directions = self.scale[:, None] * eigh(dual, subset_by_value=lowest)[1]
        return np.asarray(directions / np.linalg.norm(directions, axis=0))


class LMNNTask(TripletTask):
    """The LMNN objective in conditioned coordinates, over a working set of impostors."""

    def __init__(
        self,
        kernels: Kernels,
        conditioning: Conditioning,
        targets: Pattern,
        push_weight: float,
        impostors: Pattern | None = None,
        ridge: float = 0.0,
    ) -> None:
        pull = Pull(1.0 - push_weight, conditioning.pull)
        super().__init__(kernels, conditioning, targets, push_weight, pull, impostors)
        self.scatter, self.ridge = conditioning.pull, ridge

    def promising(self, components: np.ndarray) -> np.ndarray:
        """Return another start, if a penalty makes all multiples of one worse than no metric.

        It is the way down from the zero metric: the positive part of minus the slope there.
        """
        if self.ridge == 0.0 or self._along_ray(components)[1] is not None:
            return components
        values, vectors = np.linalg.eigh(self.slope_at_zero())
        return (np.sqrt(np.maximum(-values, 0.0)) * vectors).T[: len(components)]

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray.

        The objective is convex and piecewise linear in t. A sample of rows and
        impostors is enough, since any multiple is a valid start.
        """
        margins, closing = self._along_ray(components)
        if closing is not None:
            # Beyond this t the triplet is inactive and the slope is positive.
            return -1.0 / float(margins[closing])
        # On the way down from the zero metric the first piece is the safe one.
        return -1.0 / float(margins[-1]) if self.ridge > 0.0 and margins[-1] < 0.0 else 1.0

    def _along_ray(self, components: np.ndarray) -> tuple[np.ndarray, int | None]:
        """Margins of a sample of triplets, largest first, and the one up to which the slope falls.

        None if there is none.
        """
        sample = sample_margins(self, components)
        raw = components @ self.coordinates.matrix.T
        pull = sample.pull + self.ridge * float(np.vdot(raw, raw)) / sample.all_rows
        # A triplet is active at t while margin > -1 / t; its slope there is its margin.
        slopes = self.hinge_weight * np.cumsum(sample.weights * sample.margins)
        slopes += (1.0 - self.hinge_weight) * pull
        falls = (slopes <= 0) & (sample.margins < 0)
        return sample.margins, int(falls.argmax()) if falls.any() else None

    def trail(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> Trail:
        """Return a trail without pairs, where the device does its arithmetic.

        Other hinge tasks keep theirs on the host, since their terms know no tensors.
        """
        return self.kernels.trail(components, most_bytes, most_pairs)

    def slope_at_zero(self) -> np.ndarray:
        """See :class:`lnml.objectives.trace.PenalisedTask`: all hinges act."""
        points, kernels = self.points, self.kernels
        away = kernels.pair_scatter(points, None, self.targets.sizes)
        n_impostors = (points.n_rows - points.class_sizes).astype(np.float64)
        near = kernels.edge_scatter(points, [Edge(self.targets, by_class=n_impostors)]).matrix
        ratio = self.hinge_weight / (1.0 - self.hinge_weight)
        return np.diag(self.scatter) + ratio * (near - away)
