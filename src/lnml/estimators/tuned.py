"""A metric learner whose parameters are chosen by inner cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.utils import _safe_indexing

from lnml.core.monitor import Monitor
from lnml.estimators.base import Learned, MetricEstimator, solution_of
from lnml.kernels.protocol import Kernels
from lnml.learning.knn import predict_nearest


class TunedMetric(MetricEstimator):
    """A metric learner whose parameters are chosen by inner cross-validation.

    Each point of the grid is fitted on the training part of each inner fold and
    judged by the accuracy of the nearest-neighbour rule on the rest; the first of
    the best is fitted on all rows.

    Parameters
    ----------
    estimator : estimator
        The metric learner.
    grid : dict of str to sequence
        Parameters to try.
    cv : int, default=2
        Inner folds, stratified and shuffled.
    random_state : int, default=0
        Seed of the shuffle.
    candidate_params : dict, default=None
        Parameters of the candidates alone, such as a smaller ``max_iter``.

    Attributes
    ----------
    best_params_ : dict
        The parameters chosen.
    best_estimator_ : estimator
        Fitted on all rows.
    components_, objective_, duality_gap_, certificate_, converged_, history_, n_iter_
        Those of ``best_estimator_``.
    """

    def __init__(
        self,
        estimator: Any,
        grid: Mapping[str, Sequence[Any]],
        *,
        cv: int = 2,
        random_state: int = 0,
        candidate_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.random_state = random_state
        self.candidate_params = candidate_params

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Choose the parameters, then learn the metric from all rows."""

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.random_state)
            splits = list(folds.split(X, y))
            candidates = list(ParameterGrid(dict(self.grid)))
            scores = [self._score(parameters, X, y, splits) for parameters in candidates]
            chosen = candidates[int(np.argmax(scores))]
            model = clone(self.estimator).set_params(**chosen).fit(X, y)
            self.n_features_in_ = X.shape[1]
            solution = solution_of(model)
            attributes = {"best_params_": chosen, "best_estimator_": model}
            # The final fit has warned already, if there was a reason.
            return Learned(
                solution,
                solution.components.dtype,
                attributes,
                limit="",
                certificate=getattr(model, "certificate_", None),
            )

        return self._fit(X, learn)

    def _score(
        self,
        parameters: dict[str, Any],
        X: np.ndarray,
        y: np.ndarray,
        splits: list[tuple[np.ndarray, np.ndarray]],
    ) -> float:
        candidate = clone(self.estimator).set_params(**(self.candidate_params or {}))
        candidate.set_params(**parameters)
        right = 0
        for train, test in splits:
            with warnings.catch_warnings():
                # A candidate need not be finished to be judged; the final fit warns.
                warnings.simplefilter("ignore", ConvergenceWarning)
                known, unknown = (_safe_indexing(X, rows) for rows in (train, test))
                model = clone(candidate).fit(known, y[train])
            inside, outside = model.transform(known), model.transform(unknown)
            right += int((predict_nearest(inside, y[train], outside) == y[test]).sum())
        return right / len(y)
