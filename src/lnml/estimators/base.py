"""What fitting has in common for all metric learners: one skeleton, one way to store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lnml.certificates import Certificate
from lnml.core.checks import check_between, check_integer
from lnml.core.contract import MetricProblem
from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.solution import Solution
from lnml.core.warm_start import WarmStart
from lnml.core.warn import warn_user
from lnml.estimators.certification import certificate_of, warn_of_little_proof
from lnml.estimators.guards import expected_rounding, untouched_on_failure
from lnml.estimators.init import initial_components
from lnml.estimators.metric import MahalanobisMetric
from lnml.estimators.resuming import slopes_of_last_fit
from lnml.estimators.validation import (
    TrainingRows,
    check_target_neighbors,
    check_training_data,
    refuse_unknown,
)
from lnml.kernels import device_of, get_kernels
from lnml.kernels.dask_rows import known_rows
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import host_array, is_dask, is_tensor, like
from lnml.kernels.training import TrainingSet
from lnml.learning.assignment import warn_small_classes
from lnml.learning.targets import nearest_neighborhoods
from lnml.solvers.problem import ObjectiveProblem, resumable

# Attributes that only some fits have.
NOT_ALWAYS = (
    "classes_",
    "target_neighbors_",
    "n_target_neighbors_",
    "target_shares_",
    "pairs_",
)


@dataclass(frozen=True)
class Learned:
    """What a fit found, ready to be stored.

    Attributes
    ----------
    solution : Solution
        The metric.
    dtype : dtype
        Type of ``components_``.
    attributes : dict
        Other fitted attributes, by name.
    limit : str
        Parameter that ends a fit which does not converge; nothing is said without it.
    limit_value : Any
        Its value, where that is not an attribute of the estimator. None, with no such
        attribute, stands for a learner from outside that has no such parameter.
    order : ndarray of shape (n,), or None
        Row of the user's X at each position of the training set, for fits to rows.
    certificate : Certificate or None
        What was proved, where another fit made it.
    """

    solution: Solution
    dtype: Any
    attributes: dict[str, Any] = field(default_factory=dict)
    limit: str = "max_iter"
    limit_value: Any = None
    order: np.ndarray | None = None
    certificate: Certificate | None = None


class Prepared(NamedTuple):
    """Training data on the device, and target neighbours; None where classes stand for them."""

    training: TrainingSet
    targets: Neighborhoods | None


class MetricEstimator(MahalanobisMetric):
    """Base of all estimators that learn a metric.

    Attributes
    ----------
    not_on_cluster_because : str
        Why it cannot be fitted to Dask arrays; empty if it can.
    """

    not_on_cluster_because: str = "its work is not cut into tasks for the workers of a cluster"

    tol: float = 1e-3
    callback: Any = None
    verbose: int = 0
    device: Any = None

    def kernels_for(self, X: Any) -> Kernels:
        """Kernels of the device that ``device``, or else the data X, asks for."""
        return get_kernels(device_of(self.device, X))

    def _fit(self, given: Any, learn: Callable[[Kernels, Monitor], Learned]) -> Self:
        """Run a fit: the skeleton of ``fit``, ``fit_pairs`` and ``fit_triplets``.

        Parameters
        ----------
        given : array-like or tensor
            The user's data; components are returned in kind.
        learn : callable
            Checks the input and learns. If it fails, the estimator stays as it was.
        """
        monitor = Monitor(type(self).__name__, self.verbose, self.callback)
        self._refuse_cluster(given)
        kernels = self.kernels_for(given)
        with expected_rounding():
            with untouched_on_failure(self), kernels.session():
                learned = learn(kernels, monitor)
                monitor.close()
                self._store(learned, given)
            self._warn(learned, given)
        return self

    def _refuse_cluster(self, given: Any) -> None:
        """Say clearly that rows which Dask holds are of no use here."""
        if is_dask(given) and self.not_on_cluster_because:
            raise TypeError(
                f"{type(self).__name__} cannot be fitted to a Dask array or DataFrame: "
                f"{self.not_on_cluster_because}. LMNN, NCA, MCML, and LNML, AveragedMetric or "
                f"AutoMetric over one of these can; or give it a sample of the rows as a NumPy "
                f"array (docs/cluster.md)"
            )

    def _warn(self, learned: Learned, given: Any) -> None:
        """Say what a fit could not reach, or not prove, unless the user's callback stopped it."""
        solution = learned.solution
        if solution.stopped:
            return
        if solution.short and is_dask(given):
            warn_user(
                f"{type(self).__name__} cannot show that its metric is near the best one: "
                f"duality_gap_ is {solution.gap:.1e}. Outliers, columns that nearly depend on each "
                f"other or of very different scale can be the cause: a fit to a sample of the rows "
                f"as a NumPy array names them"
            )
        elif solution.short and learned.order is not None:
            assert solution.gap is not None
            X = np.asarray(host_array(given) if is_tensor(given) else given, dtype=learned.dtype)
            names = getattr(self, "feature_names_in_", None)
            warn_of_little_proof(type(self).__name__, solution.gap, X, names)
        elif learned.limit and not solution.converged:
            self._warn_of_limit(learned)

    def certificate(self, X: Any, y: Any) -> Certificate:
        """Return what was proved about the fit, in a form that anyone can check.

        :func:`lnml.certificates.verify` does, from the data alone.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The data of the fit.
        y : array-like of shape (n,)
            Its class labels.

        Returns
        -------
        certificate : lnml.certificates.Certificate
        """
        check_is_fitted(self, "components_")
        if self.certificate_ is None:
            why = "was fitted to pairs or triplets, not to rows, or to values that are too large"
            if self.duality_gap_ is None:
                why = "has a problem that is not convex, so that nothing can be proved"
            raise ValueError(
                f"there is no certificate: {type(self).__name__} {why} (docs/certificates.md)"
            )
        counts = known_rows(X), known_rows(y)
        if not {*counts} <= {self._n_rows, None}:
            raise ValueError(
                f"the fit was to {self._n_rows} rows; X has {counts[0]} and y has {counts[1]}: "
                f"give the data of the fit"
            )
        return self.certificate_

    def _store(self, learned: Learned, given: Any) -> None:
        """Set the fitted attributes; those that only some fits have do not stay from another."""
        for name in NOT_ALWAYS:
            self.__dict__.pop(name, None)
        solution = learned.solution
        self.components_ = like(solution.components.astype(learned.dtype, copy=False), given)
        # A learner from outside may return NumPy's numbers; JSON and `is True` want Python's.
        self.objective_ = float(solution.objective)
        self.duality_gap_ = None if solution.gap is None else float(solution.gap)
        self.converged_ = bool(solution.converged)
        self._stopped = solution.stopped
        self.history_ = solution.history
        self.n_iter_ = len(solution.history)
        self.certificate_ = learned.certificate or certificate_of(solution, learned.order)
        self._n_rows = known_rows(given) if learned.order is None else learned.order.size
        self.__dict__.update(learned.attributes)

    def _warn_of_limit(self, learned: Learned) -> None:
        """Say that a fit did not converge, and what helps: a learner may lack a limit or tol."""
        name, limit, value = type(self).__name__, learned.limit, learned.limit_value
        value = getattr(self, limit, None) if value is None else value
        gap = learned.solution.gap
        proved = "" if gap is None else f" with a relative duality gap of {gap:.1e}"
        where = "a limit of its own" if value is None else f"{limit}={value}"
        cures = [] if value is None else [f"raise {limit}"]
        if learned.solution.streamed:
            # Such a fit also ends where it makes no progress.
            if value is not None and len(learned.solution.history) < value:
                where, cures = "the end of its progress", []
            cures.append("raise scikit-learn's working_memory, which its impostors do not fit")
        if "tol" in self.get_params(deep=False):
            cures.append("accept a larger tol")
        advice = ", or ".join(cures) or "its metric may be far from the best one"
        warn_user(
            f"{name} stopped at {where}{proved} (tol={self.tol:g}): {advice}", ConvergenceWarning
        )


class ComponentsLearner(MetricEstimator):
    """Base of the estimators that improve components L from a start."""

    n_components: int | None = None
    init: Any = "identity"
    warm_start: bool = False
    random_state: Any = None

    def check_parameters(self) -> None:
        """Refuse bad parameters before any work; a subclass says which."""

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

    def _prepared(self, rows: TrainingRows, kernels: Kernels, given: Any) -> Prepared:
        """Bring checked rows, and target neighbours if there are any, to the device."""
        if given is not None:
            raise ValueError(f"{type(self).__name__} has no target_neighbors: leave them out")
        return Prepared(TrainingSet.from_labels(rows.X, rows.codes, kernels), None)


class MetricLearner(ComponentsLearner, ABC):
    """Base of the estimators that learn a metric from given neighbourhoods.

    A subclass names its problem (:meth:`metric_problem`) and the neighbourhoods
    it uses by default (:meth:`default_targets`); a subclass whose problem keeps
    the contract of docs/contract.md also works inside :class:`lnml.LNML`.

    Examples
    --------
    >>> from lnml import LMNN, MMC, NCA
    >>> [issubclass(learner, MetricLearner) for learner in (LMNN, MMC, NCA)]
    [True, True, False]
    """

    @abstractmethod
    def metric_problem(self, training: TrainingSet) -> MetricProblem:
        """Return the problem to solve; ``training`` says how many target pairs there will be."""

    @abstractmethod
    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> Any:
        """Target neighbours when the user gives none; ``classes`` are labels in block order."""

    def fit(self, X: Any, y: Any, *, target_neighbors: Any = None, **unknown: Any) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like, torch tensor, Dask array or Dask DataFrame of shape (n, d)
            Training data, float32 or float64 (others become float64). Rows of Dask stay on
            their cluster (docs/cluster.md); what is learned is here, as for any other rows.
        y : array-like of shape (n,)
            Class labels.
        target_neighbors : Neighborhoods or (sparse) array of shape (n, n), optional
            Non-zero where column j is a target neighbour of row i.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X, y and target_neighbors")

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            rows = check_training_data(self, X, y)
            self.check_parameters()
            components = self.initial_components(rows.X, rows.codes)
            training, targets = self._prepared(rows, kernels, target_neighbors)
            problem = resumable(self.metric_problem(training))
            state = self._last_state(problem, training, targets, components)
            solution = problem.solve(
                targets, components, tol=self.tol, state=state, monitor=monitor
            )
            attributes = {"classes_": rows.classes, **target_attributes(targets, training)}
            return Learned(solution, training.points.dtype, attributes, order=training.order)

        return self._fit(X, learn)

    def _last_state(
        self, problem: Any, training: TrainingSet, targets: Any, components: np.ndarray
    ) -> WarmStart | None:
        """Return what the last fit knows beside its metric, for a warm start of our solvers."""
        known = getattr(self, "certificate_", None) if self.warm_start else None
        if targets is None or not isinstance(problem, ObjectiveProblem):
            return None
        return slopes_of_last_fit(known, training, targets, components)

    def _prepared(self, rows: TrainingRows, kernels: Kernels, given: Any) -> Prepared:
        """Bring checked rows and target neighbours to the device: those given, or the default."""
        training = TrainingSet.from_labels(rows.X, rows.codes, kernels)
        if given is None:
            targets = self.default_targets(training, rows.labels)
        else:
            checked = check_target_neighbors(given, rows.codes)
            targets = kernels.pattern(checked.renumbered(np.argsort(training.order)))
        if targets is not None:
            n_rows = int((targets.sizes > 0).sum())
            training = replace(training, n_target_pairs=targets.size, n_target_rows=n_rows)
        return Prepared(training, targets)


def check_limits(estimator: Any) -> None:
    """Refuse a bad ``tol`` or ``max_iter``."""
    check_between("tol", estimator.tol, 0.0, 1.0)
    check_integer("max_iter", estimator.max_iter, 1)


def solution_of(model: Any) -> Solution:
    """Return what a fitted estimator found, for one that offers it as its own."""
    return Solution(
        host_array(model.components_),
        model.objective_,
        gap=model.duality_gap_,
        converged=model.converged_,
        history=model.history_,
        # Learners from outside do not say.
        stopped=getattr(model, "_stopped", False),
    )


def target_attributes(targets: Neighborhoods | None, training: TrainingSet) -> dict[str, Any]:
    """Return the fitted attributes about target neighbours; there are none without them."""
    if targets is None:
        return {}
    graph = targets.renumbered(training.order).to_graph()
    return {"target_neighbors_": graph, "n_target_neighbors_": np.diff(graph.indptr)}


def nearest_targets(training: TrainingSet, classes: np.ndarray, n_neighbors: Any) -> Neighborhoods:
    """Return the nearest rows of the same class by Euclidean distance."""
    k = check_integer("n_neighbors", n_neighbors, 1)
    warn_small_classes(training.points.class_sizes, classes, k)
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
