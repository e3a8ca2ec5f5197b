"""Hinges over triplets (row, target, impostor): what LMNN and the Frobenius methods share.

An objective of this family is a term of the metric alone plus a weight times
the sum over triplets of [1 + D_ij - D_il]+. The methods differ in that term, a
:class:`MetricTerm`, and in the coordinates they are solved in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lnml.kernels.protocol import (
    Embedding,
    Hinge,
    Kernels,
    Multipliers,
    Pattern,
    Points,
    TooManyPairs,
)
from lnml.objectives.contract import Solution, TrainingSet
from lnml.solvers.monitor import Monitor
from lnml.solvers.multipliers import MARGIN, SMOOTHING, Certificate, Evaluation, solve_hinge
from lnml.solvers.scale import worthwhile

# Bytes that one candidate pair takes in a working set and its evaluation.
PAIR_BYTES = 24
# A search serves a radius this much smaller than its own, whatever the rounding.
SLACK = 1.0 + 1e-3


class MetricTerm(Protocol):
    """The part of an objective without a hinge, in the coordinates of a task."""

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Value at M = L^T L and its gradient in L (r x e)."""

    def restrict(self, gradient: np.ndarray) -> np.ndarray:
        """Return the part of a gradient along which the components may move."""

    def certificate(
        self, components: np.ndarray, objective: float, slope_sum: float, push: np.ndarray
    ) -> Certificate:
        """Bound proved by hinge slopes, and directions that a metric lacks.

        ``objective`` is the exact one of the metric or a multiple of it, ``slope_sum``
        the sum of the slopes and ``push`` (e x e) the sum of slope * (v_ij v_ij^T -
        v_il v_il^T), the last two times the weight of the hinge.
        """


class Coordinates(Protocol):
    """A linear change of coordinates, such as :class:`lnml.conditioning.LinearCoordinates`."""

    @property
    def points(self) -> Points:
        """The data in the new coordinates."""

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Components that give the same distances in the new coordinates."""

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Undo :meth:`to_conditioned`; zero rows fill up to ``n_rows``."""


@dataclass(frozen=True)
class _State:
    """Multipliers, and the targets whose slots they refer to."""

    targets: Pattern
    multipliers: Multipliers


@dataclass(frozen=True)
class _Search:
    """A search over all rows, and the metric and radius it was made for."""

    components: np.ndarray
    radius: Any
    found: Pattern

    def reaches(self, radius: Any) -> bool:
        """Whether it looked this far in every row."""
        return bool((SLACK * radius <= self.radius).all())

    def serves(self, components: np.ndarray, radius: Any) -> bool:
        """Whether it was made at this very metric and looked this far."""
        return self.components is components and self.reaches(radius)


class TripletProblem(ABC):
    """Metric term + hinge_weight * sum over targets and impostors of [1 + D_ij - D_il]+.

    A subclass writes the three abstract methods.

    Parameters
    ----------
    training : TrainingSet
        The data.
    hinge_weight : float
        Weight of the hinge.
    pull_weight : float
        Weight of the distance of a target pair in the metric term, if it has one.
    max_iter : int
        Most iterations of one solve.
    """

    fixed_row_sizes = False
    cost_grows_with_distance = True

    def __init__(
        self, training: TrainingSet, hinge_weight: float, pull_weight: float, max_iter: int
    ) -> None:
        self.training = training
        self.hinge_weight = hinge_weight
        self.pull_weight = pull_weight
        self.max_iter = max_iter
        self._last_search: _Search | None = None

    @abstractmethod
    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the targets."""

    @abstractmethod
    def prepare(
        self, targets: Pattern, impostors: Pattern | None
    ) -> tuple[Coordinates, TripletTask]:
        """Return the coordinates to solve in and the task there."""

    @abstractmethod
    def best_scale(self, task: TripletTask, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray."""

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """Pull plus push of every pair; searches are shared with the metric steps around it."""
        kernels, points = self.training.kernels, self.training.points
        embedding = kernels.embed(points, components)
        distances = kernels.distances(embedding, pairs)
        reach = 1.0 + kernels.row_maximum(distances, pairs)
        try:
            known = self._search(embedding, components, reach)
            push = kernels.hinge(embedding, pairs, known.found, 0.0, None).target_hinge
        except TooManyPairs:
            push = self._push_by_blocks(embedding, pairs, reach)
        return self.pull_weight * distances + self.hinge_weight * push

    def _search(self, embedding: Embedding, components: np.ndarray, radius: Any) -> _Search:
        """Return the last search where it serves, or one that serves the next metric step, too."""
        known, self._last_search = self._last_search, None
        if known is None or not known.serves(components, radius):
            radius = MARGIN * (radius + SMOOTHING)
            kernels = self.training.kernels
            found = kernels.within(embedding, radius, max_pairs=kernels.pair_budget(PAIR_BYTES))
            known = _Search(components, radius, found)
        self._last_search = known
        return known

    def _push_by_blocks(self, embedding: Embedding, pairs: Pattern, radius: Any) -> Any:
        """Hinge of every pair where all candidates at once would not fit: block by block."""
        kernels, n = self.training.kernels, self.training.points.n_rows
        push = 0.0 * kernels.distances(embedding, pairs)
        step = max(kernels.pair_budget(PAIR_BYTES) // n, 1)
        for lo in range(0, n, step):
            hi = min(lo + step, n)
            candidates = kernels.within(embedding, radius, rows=(lo, hi))
            part = slice(pairs.indptr[lo], pairs.indptr[hi])
            block = Pattern(pairs.indptr[lo : hi + 1] - pairs.indptr[lo], pairs.indices[part])
            terms = kernels.hinge(embedding, block, candidates, 0.0, None, first_row=lo)
            push[part] = terms.target_hinge
        return push

    def solve(
        self,
        targets: Pattern,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
        impostors: Pattern | None = None,
    ) -> Solution:
        """Minimise over the metric to a relative duality gap of ``tol``.

        ``impostors`` replace the rows of other classes where they are given.
        """
        monitor = monitor or Monitor()
        coordinates, task = self.prepare(targets, impostors)
        if state is not None:
            task.multipliers = self.training.kernels.carry_over(
                state.multipliers, state.targets, targets
            )
        known, self._last_search = self._last_search, None
        if state is not None and known is not None and known.components is components:
            task.known = known
        start = coordinates.to_conditioned(components)
        if state is None:
            start = start * np.sqrt(worthwhile(self.best_scale(task, start)))

        def to_original(found: np.ndarray) -> np.ndarray:
            return coordinates.to_original(found, components.shape[0])

        found = solve_hinge(
            task,
            start,
            tol=tol,
            max_iter=self.max_iter,
            monitor=monitor,
            to_original=to_original,
            warm=state is not None,
        )
        state = _State(targets, task.multipliers) if task.multipliers else None
        solution = Solution.of(found, to_original, monitor, state)
        last = task.last_search
        if last is not None and last.components is found.components:
            self._last_search = _Search(solution.components, last.radius, last.found)
        return solution


class TripletTask:
    """A triplet objective in given coordinates, over a working set of impostors.

    See :class:`lnml.solvers.multipliers.HingeTask`. With ``impostors`` these are
    the only ones and nothing is searched for.
    """

    def __init__(
        self,
        kernels: Kernels,
        points: Points,
        targets: Pattern,
        hinge_weight: float,
        term: MetricTerm,
        impostors: Pattern | None = None,
    ) -> None:
        self.kernels = kernels
        self.points = points
        self.targets = targets
        self.hinge_weight = hinge_weight
        self.term = term
        self.impostors = impostors
        self.precision = points.precision
        self.multipliers: Multipliers | None = None
        self.known: _Search | None = None
        self.last_search: _Search | None = None
        nobody = Pattern(np.zeros(points.n_rows + 1, np.int64), np.zeros(0, np.int32))
        self.candidates = kernels.pattern(nobody) if impostors is None else impostors
        n_triplets = kernels.count_triplets(points, targets, impostors)
        self.objective_at_zero = hinge_weight * n_triplets

    def search(self, components: np.ndarray, smoothing: float, margin: float = MARGIN) -> None:
        """Collect all impostors within reach, and some beyond if there is room."""
        if self.impostors is not None:
            return
        embedding = self.kernels.embed(self.points, components)
        distances = self.kernels.distances(embedding, self.targets)
        # A triplet acts while D_il < 1 + D_ij + smoothing * multiplier.
        beyond = smoothing * (1.0 if self.multipliers is None else self.multipliers.largest)
        radius = 1.0 + beyond + self.kernels.row_maximum(distances, self.targets)
        known, self.known = self.known, None
        if known is not None and known.reaches(radius):
            self._take(components, known.radius, known.found)
            return
        most = self.kernels.pair_budget(PAIR_BYTES)
        for factor in (margin, 1.0):
            try:
                found = self.kernels.within(embedding, factor * radius, max_pairs=most)
                self._take(components, factor * radius, found)
                return
            except TooManyPairs:
                continue
        raise MemoryError(
            f"more than {most:,} impostors are within reach of {self.points.n_rows:,} rows, "
            f"which takes more than {most * PAIR_BYTES / 2**30:.1f} GiB: raise "
            f"scikit-learn's working_memory (the memory of a GPU is what it is), or use fewer "
            f"rows or target neighbours"
        )

    def _take(self, components: np.ndarray, radius: Any, found: Pattern) -> None:
        self.candidates = found
        self.last_search = _Search(components, radius, found)

    def smoothed(self, components: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """Value and gradient (r x e) of the smoothed objective over the working set."""
        embedding = self.kernels.embed(self.points, components)
        terms = self._hinge(embedding, smoothing)
        value, gradient = self.term.value_and_gradient(components)
        moved = self.kernels.laplacian(self._edges(terms), embedding.coordinates)
        push = self.kernels.gram(moved, self.points.data, exact=False)
        gradient = self.term.restrict(gradient + 2.0 * self.hinge_weight * push)
        return value + self.hinge_weight * terms.smoothed, gradient

    def evaluate(self, components: np.ndarray, smoothing: float) -> Evaluation:
        """Exact objective and the dual bound (docs/lmnn.md, docs/frobenius.md)."""
        embedding = self.kernels.embed(self.points, components)
        terms = self._hinge(embedding, smoothing)
        push = self.hinge_weight * self.kernels.gram(
            self.kernels.laplacian(self._edges(terms), self.points.data), self.points.data
        )
        objective, multiple = self.exact(components, embedding, terms)
        certificate = self.term.certificate(
            components, objective, self.hinge_weight * terms.slope_sum, (push + push.T) / 2
        )
        return Evaluation(objective, multiple, terms.n_active, *certificate)

    def exact(
        self, components: np.ndarray, embedding: Embedding, terms: Hinge
    ) -> tuple[float, float]:
        """Exact objective of a multiple of the metric, here one, and the multiple."""
        return self.term.value_and_gradient(components)[0] + self.hinge_weight * terms.exact, 1.0

    def update_multipliers(self, components: np.ndarray, smoothing: float) -> None:
        """Take the slopes at a metric as the new multipliers."""
        embedding = self.kernels.embed(self.points, components)
        self.multipliers = self.kernels.slopes(
            embedding, self.targets, self.candidates, smoothing, self.multipliers
        )

    def _hinge(self, embedding: Any, smoothing: float) -> Hinge:
        return self.kernels.hinge(
            embedding, self.targets, self.candidates, smoothing, self.multipliers
        )

    def _edges(self, terms: Hinge) -> list[tuple[Pattern, Any, float]]:
        return [
            (self.targets, terms.target_weights, 1.0),
            (self.candidates, terms.candidate_weights, -1.0),
        ]
