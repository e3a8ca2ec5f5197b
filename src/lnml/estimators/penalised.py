"""Estimators that a large trace penalty leaves without a metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sklearn.base import clone

from lnml.estimators.base import ComponentsLearner
from lnml.estimators.guards import expected_rounding
from lnml.estimators.validation import check_training_data
from lnml.kernels.training import TrainingSet
from lnml.objectives.trace import PenalisedObjective


class TracePenalised(ComponentsLearner, ABC):
    """Base of the estimators whose ``trace_penalty`` has a largest value."""

    trace_penalty: float = 0.0

    @abstractmethod
    def penalised_objective(self, training: TrainingSet) -> PenalisedObjective:
        """Return the objective over the training data."""

    def max_trace_penalty(self, X: Any, y: Any, target_neighbors: Any = None) -> float:
        """Return the penalty from which the zero metric, which says nothing, is the best.

        ``fit`` refuses it, and larger ones. It does not depend on ``trace_penalty``
        (docs/trace_penalty.md).

        Parameters
        ----------
        X, y : array-likes of shape (n, d) and (n,)
            Training data and class labels.
        target_neighbors : Neighborhoods or (sparse) array of shape (n, n), optional
            As for ``fit``.

        Returns
        -------
        penalty : float
            Zero: no metric is better than the zero metric, even without a penalty.
        """
        model = clone(self).set_params(trace_penalty=1.0)
        model._refuse_cluster(X)
        kernels = model.kernels_for(X)
        with kernels.session(), expected_rounding():
            rows = check_training_data(model, X, y)
            model.check_parameters()
            training, targets = model._prepared(rows, kernels, target_neighbors)
            return float(model.penalised_objective(training).max_trace_penalty(targets))
