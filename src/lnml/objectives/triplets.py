"""Hinges over triplets (row, target, impostor): what LMNN and the Frobenius methods share.

An objective of this family is a term of the metric alone plus a weight times
the sum over triplets of [1 + D_ij - D_il]+. The methods differ in that term, a
:class:`lnml.objectives.triplet_task.MetricTerm`, and in the coordinates they are
solved in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from lnml.core.pairs import Pattern, Search, TooManyPairs
from lnml.core.solution import Proof
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import FLOOR_SHARE, Form, PairCosts
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.objectives.triplet_task import MARGIN, SMOOTHING, TripletTask
from lnml.proofs.objective import Value


class TripletObjective(ABC):
    """Metric term + hinge_weight * sum over targets and impostors of [1 + D_ij - D_il]+.

    A subclass writes the two abstract methods.

    Parameters
    ----------
    training : TrainingSet
        The data.
    hinge_weight : float
        Weight of the hinge.
    pull_weight : float
        Weight of the distance of a target pair in the metric term, if it has one.
    impostors : Pattern, optional
        Replace the rows of other classes.
    """

    form = Form.HINGES
    fixed_row_sizes = False
    cost_grows_with_distance = True
    # Whether a large fit can be proved without the rows on the host. Its certificates mix slopes
    # at metrics alone, not dual points that were kept before.
    proves_large = False

    def __init__(
        self,
        training: TrainingSet,
        hinge_weight: float,
        pull_weight: float,
        impostors: Pattern | None = None,
    ) -> None:
        self.training = training
        self.dtype = training.points.dtype
        self.hinge_weight = hinge_weight
        self.pull_weight = pull_weight
        self.impostors = impostors

    @abstractmethod
    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the targets."""

    @abstractmethod
    def task(self, targets: Pattern) -> TripletTask:
        """Return the objective for target pairs, in the coordinates that suit it."""

    @abstractmethod
    def metric_value(self, finished: FinishedTriplets) -> Value:
        """Return the part of the objective without a hinge."""

    @abstractmethod
    def proved(self, finished: FinishedTriplets, slopes: Any) -> Proof:
        """Return what slopes prove; error, floor and targets are filled in elsewhere.

        They are a :class:`Slopes`, a :class:`SlopesAt`, or a
        :class:`lnml.core.pairs.MixedSlopes` if ``proves_large``, as
        :meth:`lnml.objectives.triplet_proof.FinishedTriplets.dual` returns them.
        """

    def prove(
        self, task: TripletTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective at components (r x d) as returned, and the proved bound."""
        finished = FinishedTriplets(
            self.training, task, found, components, care, may_be_large=self.proves_large
        )
        value = self.metric_value(finished).plus(finished.hinges(), self.hinge_weight)
        finished.objective = value.value
        proof = self.proved(finished, finished.dual())
        targets = np.stack([finished.pairs.i, finished.pairs.j], axis=1)
        n_slopes = len(proof.duals.get("slopes", ()))
        n_pairs = len(targets) + n_slopes
        if finished.streamed:
            # All pairs, for the objective and for the slopes.
            n_pairs = 2 * self.training.points.n_rows**2
        return replace(
            proof,
            error=value.error,
            floor=FLOOR_SHARE * task.objective_at_zero,
            # More care needs the rows on the host.
            work=np.inf if self.training.kernels.remote else 3.0 * n_pairs * components.size,
            duals={"targets": targets, **proof.duals},
        )

    def pair_costs(
        self, components: np.ndarray, pairs: Pattern, known: Search | None = None
    ) -> PairCosts:
        """Pull plus push of every pair; the search serves the next metric step, too."""
        kernels, points = self.training.kernels, self.training.points
        embedding = kernels.embed(points, components)
        reach = kernels.distances(embedding, pairs, longest=True) + 1.0
        try:
            further = MARGIN * (reach + SMOOTHING)
            search = kernels.within(embedding, further, known=known, needed=reach)
            working = kernels.working_set(pairs, search.found)
            push = kernels.hinge(embedding, working, 0.0).target_hinge
        except TooManyPairs:
            search, push = None, kernels.target_hinges(embedding, pairs, reach)
        pull = kernels.distances(embedding, pairs)
        return PairCosts(self.pull_weight * pull + self.hinge_weight * push, search)
