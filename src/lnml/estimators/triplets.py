"""What estimators that also learn from given triplets have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from lnml.core.checks import check_between
from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Pattern
from lnml.estimators.base import Learned, MetricLearner, check_limits, nearest_targets
from lnml.estimators.validation import check_triplets, refuse_fourth_powers, set_features
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import host_array
from lnml.kernels.training import TrainingSet
from lnml.objectives.frobenius import FrobeniusObjective
from lnml.solvers.path import solve
from lnml.solvers.problem import ObjectiveProblem


class TripletLearner(MetricLearner):
    """Base of the estimators that learn from classes or from relative comparisons."""

    n_neighbors: int
    C: float
    max_iter: int

    @abstractmethod
    def objective(
        self, training: TrainingSet, impostors: Pattern | None = None
    ) -> FrobeniusObjective:
        """Return what is asked of the metric; impostors replace the rows of other classes."""

    def check_parameters(self) -> None:
        """Refuse bad parameters before any work."""
        check_limits(self)
        check_between("C", self.C, 0.0, np.inf)

    def metric_problem(self, training: TrainingSet) -> ObjectiveProblem:
        """Return the problem over the training data."""
        refuse_fourth_powers(self, training.points.data)
        return ObjectiveProblem(self.objective(training), self.max_iter)

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

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            checked = check_triplets(host_array(triplets))
            self.check_parameters()
            set_features(self, checked.shape[2])
            if isinstance(self.init, str) and self.init == "lda":
                raise ValueError("init='lda' needs classes, triplets have none: use another init")
            training, targets, impostors = _as_rows(checked, kernels)
            refuse_fourth_powers(self, training.points.data)
            points = checked.reshape(-1, checked.shape[2])
            solution = solve(
                self.objective(training, impostors),
                targets,
                self.initial_components(points, np.zeros(len(points), dtype=int)),
                tol=self.tol,
                max_iter=self.max_iter,
                monitor=monitor,
            )
            return Learned(solution, training.points.dtype)

        return self._fit(triplets, learn)


def _as_rows(triplets: np.ndarray, kernels: Kernels) -> tuple[TrainingSet, Pattern, Pattern]:
    """Training rows, targets and impostors that say the same as some triplets.

    Every triplet becomes three rows, moved so that the anchor is at zero: only
    differences count, and small ones keep their digits.
    """
    m, _, d = triplets.shape
    rows = np.moveaxis(triplets - triplets[:, :1], 0, 1).reshape(3 * m, d)
    points = kernels.points(rows, np.array([0, 3 * m]))
    training = TrainingSet(points, np.arange(3 * m), kernels, n_target_pairs=m)
    indptr = np.concatenate([np.arange(m + 1), np.full(2 * m, m)])
    near, far = np.arange(m, 3 * m, dtype=np.int32).reshape(2, m)
    targets, impostors = (kernels.pattern(Pattern(indptr, ends)) for ends in (near, far))
    return training, targets, impostors
