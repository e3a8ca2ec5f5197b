"""What estimators that also learn from given triplets have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from lnml.estimators.base import (
    MetricLearner,
    nearest_targets,
    store,
    untouched_on_failure,
    warn_if_unfinished,
)
from lnml.estimators.validation import check_triplets
from lnml.kernels.protocol import Kernels, Pattern
from lnml.neighborhoods.graph import Neighborhoods
from lnml.objectives.contract import TrainingSet
from lnml.objectives.frobenius import FrobeniusProblem
from lnml.solvers.monitor import Monitor
from lnml.tensors import host_array, like


class TripletLearner(MetricLearner):
    """Base of the estimators that learn from classes or from relative comparisons."""

    n_neighbors: int
    C: float
    max_iter: int

    @abstractmethod
    def metric_problem(self, training: TrainingSet) -> FrobeniusProblem:
        """Check the parameters and return the problem to solve."""

    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> Neighborhoods:
        """Return the nearest rows of the same class by Euclidean distance."""
        return nearest_targets(training, classes, self.n_neighbors)

    def fit_triplets(self, triplets: Any) -> Self:
        """Learn the metric from relative comparisons instead of classes.

        Parameters
        ----------
        triplets : array-like of shape (m, 3, d)
            Points (anchor, near, far): the squared distance from anchor to far
            should exceed that from anchor to near by one at least.

        Returns
        -------
        self
            Without ``classes_`` and ``target_neighbors_``.
        """
        monitor = Monitor(type(self).__name__, self.verbose, self.callback)
        kernels, given = self.kernels_for(triplets), triplets
        with untouched_on_failure(self), kernels.session():
            triplets = check_triplets(host_array(triplets))
            self.n_features_in_ = triplets.shape[2]
            self.__dict__.pop("feature_names_in_", None)
            training, targets, impostors = _as_rows(triplets, kernels)
            problem = self.metric_problem(training)
            if isinstance(self.init, str) and self.init == "lda":
                raise ValueError("init='lda' needs classes, triplets have none: use another init")
            points = triplets.reshape(-1, triplets.shape[2])
            components = self.initial_components(points, np.zeros(len(points), dtype=int))
            solution = problem.solve(
                targets, components, tol=self.tol, monitor=monitor, impostors=impostors
            )
            monitor.close()
            store(self, solution, None, training, None)
            self.components_ = like(self.components_, given)
        warn_if_unfinished(self, solution, "max_iter")
        return self


def _as_rows(triplets: np.ndarray, kernels: Kernels) -> tuple[TrainingSet, Pattern, Pattern]:
    """Training rows, targets and impostors that say the same as some triplets.

    Every triplet becomes three rows, moved so that the anchor is at zero: only
    differences count, and small ones keep their digits.
    """
    m, _, d = triplets.shape
    rows = np.moveaxis(triplets - triplets[:, :1], 0, 1).reshape(3 * m, d)
    training = TrainingSet(kernels.points(rows, np.array([0, 3 * m])), np.arange(3 * m), kernels)
    indptr = np.concatenate([np.arange(m + 1), np.full(2 * m, m)])
    near, far = np.arange(m, 3 * m, dtype=np.int32).reshape(2, m)
    targets, impostors = (kernels.pattern(Pattern(indptr, ends)) for ends in (near, far))
    return training, targets, impostors
