"""The inner cross-validation of LNMLCV: all candidates on one fold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from lnml.core.labels import classes_by_appearance
from lnml.core.monitor import Monitor
from lnml.core.solution import Solution
from lnml.estimators.base import MetricLearner
from lnml.estimators.coupled import coupled
from lnml.estimators.cv_results import CandidateFit
from lnml.kernels import get_kernels
from lnml.kernels.tensors import host_array, matmul
from lnml.learning.assignment import Sizes
from lnml.learning.coupling import Coupling
from lnml.learning.knn import predict_nearest


@dataclass(frozen=True)
class FoldSearch:
    """What all folds have in common; runs one of them.

    Attributes
    ----------
    base : MetricLearner
        The metric learner.
    device : str
        Where fits run.
    grid : list of Sizes
        Candidates.
    classifier : KNeighborsClassifier
        What is scored, on transformed rows.
    scorer : callable or None
        A scorer of scikit-learn; None for the accuracy of the nearest neighbour.
    tol : float
        Tolerance of the fits.
    max_rounds : int
        Most rounds of a fit.
    every_round : bool
        Score the metric of every round, not only the last one.
    warm : bool
        Start candidates after the first where that one ended.
    verbose : int
        Show a live line for every fit.
    """

    base: MetricLearner
    device: str
    grid: list[Sizes]
    classifier: KNeighborsClassifier
    scorer: Callable[..., float] | None
    tol: float
    max_rounds: int
    every_round: bool
    warm: bool
    verbose: int

    def run(
        self, X: Any, y: np.ndarray, number: int, train: np.ndarray, test: np.ndarray
    ) -> list[CandidateFit]:
        """Fit all candidates on the training part of a fold and score them on the rest."""
        results = []
        start = time.perf_counter()
        kernels = get_kernels(self.device)
        with kernels.session():
            codes = classes_by_appearance(y[train]).codes
            coupling = coupled(clone(self.base), X[train], codes, kernels)
            dtype, origin = coupling.training.points.dtype, coupling.start
            coupling.share_ranking(origin, self.grid)
            for position, sizes in enumerate(self.grid):
                title = f"LNMLCV fold {number} sizes {tuple(sizes)}"
                found, metrics = self._learn(coupling, sizes, origin, title)
                if self.warm and position == 0:
                    origin = found.components
                    coupling.share_ranking(origin, self.grid, found.state)
                learned = time.perf_counter()
                scores = [
                    self._score(metric.astype(dtype), X, y, train, test) for metric in metrics
                ]
                done = time.perf_counter()
                times = learned - start, done - learned
                components = found.components.astype(dtype)
                results.append(CandidateFit(components, scores, found.converged, *times))
                start = done
        return results

    def _learn(
        self, coupling: Coupling, sizes: Sizes, origin: np.ndarray, title: str
    ) -> tuple[Solution, list[np.ndarray]]:
        """Fit one candidate; return the metrics to score as well."""
        metrics: list[np.ndarray] = []
        monitor = Monitor(title, self.verbose)
        if self.every_round:
            monitor.callback = lambda state: metrics.append(state.components)
        found = coupling.learn(
            sizes, origin, tol=self.tol, max_rounds=self.max_rounds, monitor=monitor
        )
        monitor.close()
        return found, metrics or [found.components]

    def _score(
        self, components: np.ndarray, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> float:
        inside, outside = (matmul(X[part], components) for part in (train, test))
        if self.scorer is None:
            predicted = predict_nearest(inside, y[train], outside, device=self.device)
            return float(np.mean(predicted == y[test]))
        inside, outside = host_array(inside), host_array(outside)
        return float(self.scorer(clone(self.classifier).fit(inside, y[train]), outside, y[test]))
