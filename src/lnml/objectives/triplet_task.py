"""A triplet objective in the coordinates it is solved in, over a working set of impostors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from lnml.core.pairs import (
    PAIR_BYTES,
    Hinge,
    Pattern,
    Search,
    Streamed,
    TooManyPairs,
    WorkingSet,
)
from lnml.core.points import Embedding, Points
from lnml.core.solution import Certificate
from lnml.core.text import memory_text
from lnml.core.warm_start import WarmStart
from lnml.kernels.protocol import Kernels
from lnml.objectives.base import Coordinates, Task
from lnml.objectives.seen_slopes import KeptSlopes, SeenSlopes
from lnml.proofs.slopes import Slopes, SlopesAt

# A search looks further than it must by this factor, so that its result stays useful
# while the metric moves.
MARGIN = 1.1
# The first search looks still further: the metric moves most after it. Less so among many rows,
# where evaluations of its candidates take longest.
FIRST_MARGIN = 1.3
MANY_ROWS = 10_000
FIRST_MARGIN_OF_MANY = 1.2
# Smoothing of the hinges, once a solve has settled; a search looks that far, too.
SMOOTHING = 0.15
# Rows of a sample that a metric is learned from first, if there is no room for impostors.
SAMPLED_ROWS = 2000

# Maps components (r x e) and a smoothing to a value and its gradient.
Smoothed = Callable[[np.ndarray, float], tuple[float, np.ndarray]]


class MetricTerm(Protocol):
    """The part of an objective without a hinge, in the coordinates of a task."""

    # Components and gradients are arrays, or what a trail of the task has.
    def value_and_gradient(self, components: Any) -> tuple[Any, Any]:
        """Value at M = L^T L and its gradient in L (r x e)."""

    def restrict(self, gradient: Any) -> Any:
        """Return the part of a gradient along which the components may move."""

    def certificate(
        self,
        components: np.ndarray,
        objective: float,
        slope_sum: float,
        push: np.ndarray,
        tol: float = 0.0,
    ) -> Certificate:
        """Bound proved by hinge slopes, and directions that a metric lacks.

        ``objective`` is the exact one of the metric or a multiple of it. ``slope_sum`` is
        the sum of the slopes, and ``push`` (e x e) the sum of slope * (v_ij v_ij^T -
        v_il v_il^T). Both are multiplied by the weight of the hinge. A bound that leaves a
        relative gap of ``tol`` is good enough.
        """

    def forget(self) -> None:
        """Do not mix the dual points so far with later ones."""


class PointCoordinates(Coordinates, Protocol):
    """Coordinates of some rows."""

    @property
    def points(self) -> Points:
        """The data in the new coordinates."""


def count_triplets(points: Points, targets: Pattern, impostors: Pattern | None) -> int:
    """Return the number of (target, impostor) pairs of all rows.

    Without ``impostors``, all rows of other classes count as impostors.
    """
    if impostors is not None:
        # One target and one impostor in each row that has any.
        return impostors.size
    others = points.n_rows - points.class_sizes
    return int(targets.counts_in(points.class_start) @ others)


class TripletTask(Task, ABC):
    """Metric term plus hinges; see :class:`lnml.solvers.multipliers.HingeTask`.

    Parameters
    ----------
    kernels : Kernels
        The device.
    coordinates : PointCoordinates
        Where the components live.
    targets : Pattern
        Target pairs.
    hinge_weight : float
        Weight of the hinge.
    term : MetricTerm
        The rest of the objective.
    impostors : Pattern, optional
        If given, the only ones: nothing is searched for.

    Attributes
    ----------
    working : WorkingSet
        The triplets that are looked at.
    known : Search or None
        A search at the start, in the coordinates of the data, if there is one.
    keeps_curvature : bool
        Whether a model of the curvature serves all iterations of a solve.
    """

    keeps_curvature = True

    def __init__(
        self,
        kernels: Kernels,
        coordinates: PointCoordinates,
        targets: Pattern,
        hinge_weight: float,
        term: MetricTerm,
        impostors: Pattern | None = None,
    ) -> None:
        super().__init__(coordinates)
        # Any: a method knows more about its coordinates than the task needs.
        self.coordinates: Any = coordinates
        points = coordinates.points
        self.kernels = kernels
        self.points = points
        self.targets = targets
        self.hinge_weight = hinge_weight
        self.term = term
        self.impostors = impostors
        self.precision = points.precision
        self.known: Search | None = None
        self.dual_bound = 0.0
        self._dual: SlopesAt | KeptSlopes | None = None
        # Slopes at the last metrics, as many as a certificate may mix; the newest last.
        self._recent: list[SeenSlopes] = []
        self.last_search: Search | None = None
        self.working: WorkingSet = kernels.working_set(targets, impostors)
        self.objective_at_zero = hinge_weight * count_triplets(points, targets, impostors)

    @property
    def first_margin(self) -> float:
        """How much further than it must the first search looks."""
        return FIRST_MARGIN if self.points.n_rows < MANY_ROWS else FIRST_MARGIN_OF_MANY

    @property
    def streamed(self) -> bool:
        """Whether impostors, slopes and multipliers are not kept: there is no room for them."""
        return isinstance(self.working, Streamed)

    @abstractmethod
    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray."""

    def resume(self, warm: WarmStart, components: np.ndarray) -> None:
        """Start from the multipliers and the search of an earlier task, where they still hold."""
        if warm.multipliers is None or warm.targets is None:
            return
        kept = self.kernels.carry_over(warm.multipliers, warm.targets, self.targets)
        self.working = self.working.with_multipliers(kept)
        self.known = warm.take_search(components)

    def warm_start(self, found: np.ndarray, components: np.ndarray) -> WarmStart:
        """Return the multipliers, and the last search if it was made at what was found."""
        search = self.last_search
        if search is not None and search.made_at(found):
            search = replace(search, components=components)
        else:
            search = None
        return WarmStart(components, self.targets, self.working.multipliers, search=search)

    def search(self, components: np.ndarray, smoothing: float, margin: float = MARGIN) -> None:
        """Collect all impostors within reach, and some beyond if there is room."""
        if self.impostors is not None or self.streamed:
            return
        embedding = self.kernels.embed(self.points, components)
        multipliers = self.working.multipliers
        # A triplet acts while D_il < 1 + D_ij + smoothing * multiplier.
        beyond = smoothing * (1.0 if multipliers is None else multipliers.largest)
        longest = self.kernels.distances(embedding, self.targets, longest=True)
        found = self._search(embedding, longest + (1.0 + beyond), margin)
        if found is None:
            self._stream()
            return
        self.working = self.kernels.working_set(self.targets, found.found, multipliers)
        self.last_search = replace(found, components=components)

    def _search(self, embedding: Embedding, radius: Any, margin: float) -> Search | None:
        """Return the known search if it reaches, or one that looks as far as there is room for.

        None if there is no room at all.
        """
        known, self.known = self.known, None
        try:
            return self.kernels.within(embedding, margin * radius, known=known, needed=radius)
        except TooManyPairs:
            pass
        try:
            return self.kernels.within(embedding, radius, known=known)
        except TooManyPairs as error:
            most = error.most
        if not self.kernels.remote:
            return None
        raise MemoryError(
            f"more than {most:,} impostors are within reach of {self.points.n_rows:,} rows, "
            f"which takes more than {memory_text(most * PAIR_BYTES)}: raise "
            f"scikit-learn's working_memory, or use more workers, fewer rows or target neighbours"
        )

    def _stream(self) -> None:
        """Let go of all that grows with the impostors."""
        self.working = Streamed.of(self.kernels.working_set(self.targets, None))
        self.last_search = self._dual = None
        self.dual_bound = 0.0
        self._recent.clear()

    def smoothed(self, components: Any, smoothing: float) -> tuple[Any, Any]:
        """Value and gradient (r x e) of the smoothed objective over the working set.

        Components are an array, or what a trail of the task has; the gradient is the same.
        """
        return self._smoothed_over(self.working, self.hinge_weight, components, smoothing)

    def _smoothed_over(
        self, working: WorkingSet, weight: float, components: Any, smoothing: float
    ) -> tuple[Any, Any]:
        embedding = self.kernels.embed(self.points, components)
        terms = self.kernels.hinge(embedding, working, smoothing, moment="coordinates")
        assert terms.moment is not None
        # Last: a device is busy with the hinges while the host asks for this.
        value, gradient = self.term.value_and_gradient(components)
        gradient = self.term.restrict(gradient + 2.0 * weight * terms.moment)
        return value + weight * terms.smoothed, gradient

    def sampled(self) -> Smoothed | None:
        """Return the smoothed objective over some rows for all; None if there are few rows."""
        pairs = self.kernels.pattern(self.targets).to_host()
        rows = np.flatnonzero(pairs.sizes)
        if rows.size < 2 * SAMPLED_ROWS:
            return None
        # Rows are sorted by class: in this way, each class has its share.
        chosen = np.zeros(pairs.sizes.size, dtype=bool)
        chosen[rows[:: rows.size // SAMPLED_ROWS]] = True
        sizes = np.where(chosen, pairs.sizes, 0)
        kept = pairs.indices[np.repeat(chosen, pairs.sizes)]
        targets = self.kernels.pattern(Pattern(np.concatenate([[0], np.cumsum(sizes)]), kept))
        working = Streamed.of(self.kernels.working_set(targets, None))
        return partial(self._smoothed_over, working, self.hinge_weight * pairs.size / kept.size)

    def evaluate(self, components: np.ndarray, smoothing: float, tol: float = 0.0) -> Certificate:
        """Exact objective and the dual bound (docs/lmnn.md, docs/frobenius.md).

        A bound that leaves a relative gap of ``tol`` is good enough.
        """
        if self.streamed:
            # Slopes that are not kept cannot be mixed with those before.
            self.term.forget()
        embedding = self.kernels.embed(self.points, components)
        terms = self.kernels.hinge(embedding, self.working, smoothing, moment="data")
        assert terms.moment is not None
        push = self.hinge_weight * terms.moment
        objective, multiple = self.exact(components, embedding, terms)
        certificate = self.term.certificate(
            components, objective, self.hinge_weight * terms.slope_sum, (push + push.T) / 2, tol
        )
        newest = SeenSlopes(self.kernels, self.points, self.working, components, smoothing)
        self._recent = [*self._recent, newest][-len(certificate.shares) :]
        kept = self.impostors is not None or self.streamed
        if not kept and terms.n_active > self.kernels.most_slopes:
            # There is room for the impostors, but not for the slopes of their triplets.
            self._stream()
        return certificate._replace(multiple=multiple, n_active=terms.n_active)

    def exact(
        self, components: np.ndarray, embedding: Embedding, terms: Hinge
    ) -> tuple[float, float]:
        """Exact objective of a multiple of the metric, here one, and the multiple."""
        return self.term.value_and_gradient(components)[0] + self.hinge_weight * terms.exact, 1.0

    def aim(self, components: np.ndarray, worth: float) -> None:
        """Choose what the next steps aim at, if that may cost ``worth``; here nothing changes."""

    def keep_dual(self, components: np.ndarray, smoothing: float, seen: Certificate) -> None:
        """Keep slopes at a metric, the one evaluated last, in the dual point of the bound.

        The slopes themselves are computed when they are asked for.
        """
        self.dual_bound = seen.bound
        if self.streamed:
            assert seen.shares == (1.0,), "slopes that are not kept cannot be mixed"
            self._dual = SlopesAt(components, smoothing)
            return
        new = zip(seen.shares, self._recent, strict=True)
        parts: list[tuple[float, Slopes | SeenSlopes]] = [part for part in new if part[0] > 0.0]
        if seen.kept > 0.0:
            # At once: else all points that were ever mixed would stay.
            parts = [(seen.kept, self.dual.on_host()), *parts]
            parts = [(1.0, KeptSlopes(self.kernels, self.targets, parts).on_host())]
        self._dual = KeptSlopes(self.kernels, self.targets, parts)

    @property
    def slopes_at(self) -> SlopesAt | None:
        """Where the slopes of the dual point are, if there is no room to keep them."""
        return self._dual if isinstance(self._dual, SlopesAt) else None

    @property
    def dual(self) -> KeptSlopes:
        """The dual point that was kept, if there is room for its slopes."""
        assert isinstance(self._dual, KeptSlopes)
        return self._dual

    def update_multipliers(self, components: np.ndarray, smoothing: float) -> None:
        """Take the slopes at a metric as the new multipliers."""
        slopes = SeenSlopes(self.kernels, self.points, self.working, components, smoothing)
        if self._recent and self._recent[-1].awaited(self.working, components, smoothing):
            slopes = self._recent[-1]
        self.working = self.working.with_multipliers(slopes.slopes())
