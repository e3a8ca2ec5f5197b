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

from lnml.core.pairs import Pattern, TooManyPairs
from lnml.core.points import Embedding
from lnml.core.solution import Proof
from lnml.core.warm_start import Search
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import FLOOR_SHARE, Form, PairCosts
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.objectives.triplet_task import MARGIN, PAIR_BYTES, SMOOTHING, TripletTask
from lnml.proofs.objective import Value
from lnml.proofs.slopes import Slopes


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
    def proved(self, finished: FinishedTriplets, slopes: Slopes) -> Proof:
        """Return what slopes prove; error, floor and targets are filled in elsewhere."""

    def prove(
        self, task: TripletTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective at components (r x d) as returned, and the proved bound."""
        finished = FinishedTriplets(self.training, task, found, components, care)
        value = self.metric_value(finished).plus(finished.hinges(), self.hinge_weight)
        finished.objective = value.value
        proof = self.proved(finished, task.dual())
        targets = np.stack([finished.pairs.i, finished.pairs.j], axis=1)
        return replace(
            proof,
            error=value.error,
            floor=FLOOR_SHARE * task.objective_at_zero,
            work=3.0 * (len(targets) + len(proof.duals["slopes"])) * components.size,
            duals={"targets": targets, **proof.duals},
        )

    def pair_costs(
        self, components: np.ndarray, pairs: Pattern, known: Search | None = None
    ) -> PairCosts:
        """Pull plus push of every pair; the search serves the next metric step, too."""
        kernels, points = self.training.kernels, self.training.points
        embedding = kernels.embed(points, components)
        distances = kernels.distances(embedding, pairs)
        reach = 1.0 + kernels.arrays.row_maximum(distances, pairs)
        try:
            search = self._search(embedding, components, reach, known)
            working = kernels.working_set(pairs, search.found)
            push = kernels.hinge(embedding, working, 0.0).target_hinge
        except TooManyPairs:
            search, push = None, self._push_by_blocks(embedding, pairs, reach)
        return PairCosts(self.pull_weight * distances + self.hinge_weight * push, search)

    def _search(
        self, embedding: Embedding, components: np.ndarray, radius: Any, known: Search | None
    ) -> Search:
        """Return the known search where it reaches, or one that looks a little further."""
        if known is not None and known.reaches(radius):
            return known
        radius = MARGIN * (radius + SMOOTHING)
        kernels = self.training.kernels
        found = kernels.within(embedding, radius, max_pairs=kernels.pair_budget(PAIR_BYTES))
        return Search(components, radius, found)

    def _push_by_blocks(self, embedding: Embedding, pairs: Pattern, radius: Any) -> Any:
        """Return the hinge of every pair, block by block; all candidates at once do not fit."""
        kernels, n = self.training.kernels, self.training.points.n_rows
        push = 0.0 * kernels.distances(embedding, pairs)
        step = max(kernels.pair_budget(PAIR_BYTES) // n, 1)
        for lo in range(0, n, step):
            hi = min(lo + step, n)
            candidates = kernels.within(embedding, radius, rows=(lo, hi))
            part = slice(pairs.indptr[lo], pairs.indptr[hi])
            block = Pattern(pairs.indptr[lo : hi + 1] - pairs.indptr[lo], pairs.indices[part])
            working = kernels.working_set(block, candidates)
            push[part] = kernels.hinge(embedding, working, 0.0, first_row=lo).target_hinge
        return push
