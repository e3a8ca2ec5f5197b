"""What fitting has in common for all metric learners."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lnml.estimators.init import initial_components
from lnml.estimators.validation import (
    check_integer,
    check_target_neighbors,
    check_training_data,
    refuse_unknown,
)
from lnml.kernels import device_of, get_kernels
from lnml.kernels.protocol import Kernels
from lnml.metric import MahalanobisMetric
from lnml.neighborhoods.assignment import warn_small_classes
from lnml.neighborhoods.graph import Neighborhoods
from lnml.neighborhoods.learned import nearest_neighborhoods
from lnml.objectives.contract import MetricProblem, Solution, TrainingSet
from lnml.solvers.monitor import Monitor
from lnml.tensors import host_array, like


class ComponentsLearner(MahalanobisMetric):
    """Base of the estimators that improve components L from a start."""

    n_components: int | None = None
    init: Any = "identity"
    tol: float = 1e-3
    warm_start: bool = False
    callback: Any = None
    verbose: int = 0
    random_state: Any = None
    device: Any = None

    def kernels_for(self, X: Any) -> Kernels:
        """Kernels of the device that ``device``, or else the data X, asks for."""
        return get_kernels(device_of(self.device, X))

    def initial_components(self, X: Any, codes: np.ndarray) -> np.ndarray:
        """Components (r x d) the fit starts from: warm start, or ``init``."""
        d = X.shape[1]
        rank = (
            d if self.n_components is None else check_integer("n_components", self.n_components, 1)
        )
        if rank > d:
            raise ValueError(
                f"n_components={rank} exceeds the {d} features of X: a metric over {d} features "
                f"has at most {d} components; use n_components=None or <= {d}"
            )
        if self.warm_start and hasattr(self, "components_"):
            return warm_components(self.components_, (rank, d))
        return initial_components(self.init, rank, X, codes, self.random_state)


class MetricLearner(ComponentsLearner, ABC):
    """Base of the estimators that learn a metric from given neighbourhoods.

    A subclass names its problem (:meth:`metric_problem`) and the neighbourhoods
    it uses by default (:meth:`default_targets`); a subclass whose problem keeps
    the contract of docs/contract.md also works inside :class:`lnml.LNML`.
    """

    @abstractmethod
    def metric_problem(self, training: TrainingSet) -> MetricProblem:
        """Check the parameters and return the problem to solve."""

    @abstractmethod
    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> Any:
        """Target neighbours when the user gives none."""

    def fit(self, X: Any, y: Any, *, target_neighbors: Any = None, **unknown: Any) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n, d)
            Training data, float32 or float64 (others become float64).
        y : array-like of shape (n,)
            Class labels.
        target_neighbors : Neighborhoods or (sparse) array of shape (n, n), optional
            Non-zero where column j is a target neighbour of row i.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X, y and target_neighbors")
        monitor = Monitor(type(self).__name__, self.verbose, self.callback)
        kernels = self.kernels_for(X)
        with untouched_on_failure(self), kernels.session():
            X, classes, codes = check_training_data(self, X, y)
            training = TrainingSet.from_labels(X, codes, kernels)
            problem = self.metric_problem(training)
            components = self.initial_components(X, codes)
            if target_neighbors is None:
                targets = self.default_targets(training, classes)
            else:
                given = check_target_neighbors(target_neighbors, codes)
                targets = kernels.pattern(given.renumbered(np.argsort(training.order)))
            solution = problem.solve(targets, components, tol=self.tol, monitor=monitor)
            monitor.close()
            store(self, solution, targets, training, classes)
            self.components_ = like(self.components_, X)
        warn_if_unfinished(self, solution, "max_iter")
        return self


def store(
    estimator: Any,
    solution: Solution,
    targets: Neighborhoods | None,
    training: TrainingSet,
    classes: np.ndarray | None,
) -> None:
    """Set the fitted attributes; there are none about targets or classes without them."""
    store_solution(estimator, solution, training.points.dtype)
    if classes is not None:
        estimator.classes_ = classes
    if targets is not None:
        estimator.target_neighbors_ = targets.renumbered(training.order).to_graph()
        estimator.n_target_neighbors_ = np.diff(estimator.target_neighbors_.indptr)


def store_solution(estimator: Any, solution: Solution, dtype: Any) -> None:
    """Set the attributes that every fitted metric has; remove those of an earlier fit to rows."""
    estimator.components_ = solution.components.astype(dtype, copy=False)
    estimator.objective_ = solution.objective
    estimator.duality_gap_ = solution.gap
    estimator.converged_ = solution.converged
    estimator.history_ = solution.history
    estimator.n_iter_ = len(solution.history)
    for name in ("classes_", "target_neighbors_", "n_target_neighbors_"):
        estimator.__dict__.pop(name, None)


def nearest_targets(training: TrainingSet, classes: np.ndarray, n_neighbors: Any) -> Neighborhoods:
    """Return the nearest rows of the same class by Euclidean distance."""
    k = check_integer("n_neighbors", n_neighbors, 1)
    warn_small_classes(np.diff(training.points.class_start), classes, k)
    return nearest_neighborhoods(training, np.eye(training.points.n_features), k)


def warm_components(components: Any, shape: tuple[int, int]) -> np.ndarray:
    """Components of the last fit, if they fit the data of this one."""
    components = host_array(components)
    if components.shape != shape:
        raise ValueError(
            f"warm_start needs components of shape {shape}, the fitted ones have "
            f"{components.shape}: set warm_start=False to start anew"
        )
    return components.astype(np.float64)


@contextmanager
def untouched_on_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its old attributes back when a fit fails or is interrupted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def warn_if_unfinished(estimator: Any, solution: Solution, limit: str, value: Any = None) -> None:
    """Non-convergence is never silent, unless the user's callback asked for it.

    ``limit`` names the parameter that ended the fit; ``value`` is its value where
    that is not an attribute of the estimator.
    """
    if estimator.converged_ or solution.stopped:
        return
    value = getattr(estimator, limit) if value is None else value
    gap = "" if solution.gap is None else f" with a relative duality gap of {solution.gap:.1e}"
    warnings.warn(
        f"{type(estimator).__name__} stopped at {limit}={value}{gap} "
        f"(tol={estimator.tol:g}): raise {limit}, or accept a larger tol",
        ConvergenceWarning,
        stacklevel=3,
    )
