"""Metrics for a falling list of trace penalties, each certified (docs/trace_path.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from lnml.core.checks import LEAST_PENALTY, check_integer, check_trace_penalty, kind_of
from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.solution import Solution
from lnml.estimators.base import Learned, MetricLearner, target_attributes
from lnml.estimators.guards import expected_rounding
from lnml.estimators.validation import TrainingRows, check_training_data
from lnml.kernels.tensors import matmul
from lnml.kernels.training import TrainingSet
from lnml.learning.knn import predict_nearest
from lnml.solvers.problem import ObjectiveProblem

# A path begins at this penalty, or at a share of the largest that leaves a metric.
LARGEST, SHARE = 10.0, 0.5
SMALLEST = 1e-3


@dataclass(frozen=True, eq=False)
class TracePath:
    """Metrics along a falling list of trace penalties.

    Attributes
    ----------
    trace_penalties : ndarray of shape (m,)
        The penalties, the largest first.
    models : list of m estimators
        A fitted estimator for each, with all its attributes.

    Examples
    --------
    >>> from sklearn.preprocessing import scale
    >>> from lnml import LMNN, trace_path
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> path = trace_path(LMNN(), scale(iris.data), iris.target, trace_penalties=[0.01, 1.0])
    >>> path.trace_penalties
    array([1.  , 0.01])
    >>> len(path.models), path.gaps.shape, path.components[0].shape
    (2, (2,), (4, 4))
    """

    trace_penalties: np.ndarray
    models: list[Any]

    @property
    def components(self) -> list[Any]:
        """Components (r x d) of each metric."""
        return [model.components_ for model in self.models]

    @property
    def objectives(self) -> np.ndarray:
        """Objective of each metric, penalty included: shape (m,)."""
        return np.array([model.objective_ for model in self.models])

    @property
    def gaps(self) -> np.ndarray:
        """Proved duality gap of each metric: shape (m,)."""
        return np.array([model.duality_gap_ for model in self.models])

    @property
    def n_evaluations(self) -> np.ndarray:
        """Evaluations of the objective that each metric took: shape (m,)."""
        counts = [sum(line["n_evaluations"] for line in model.history_) for model in self.models]
        return np.array(counts)

    def scores(self, X: Any, y: Any, X_test: Any, y_test: Any, *, n_neighbors: int = 1) -> Any:
        """Return the accuracy of the nearest-neighbour rule along the path, shape (m,).

        Parameters
        ----------
        X, y : arrays of shape (n, d) and (n,)
            Rows that vote, such as those of the fit.
        X_test, y_test : arrays of shape (n', d) and (n',)
            Rows to classify.
        n_neighbors : int, default=1
            Rows that vote.
        """
        labels, wanted = np.asarray(y), np.asarray(y_test)
        found = []
        for components in self.components:
            inside, outside = (matmul(rows, components) for rows in (X, X_test))
            predicted = predict_nearest(inside, labels, outside, n_neighbors)
            found.append(float(np.mean(predicted == wanted)))
        return np.array(found)


def trace_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    trace_penalties: Sequence[float] | None = None,
    n_penalties: int = 20,
    target_neighbors: Any = None,
) -> TracePath:
    """Learn a metric for each of some trace penalties, from the largest to the smallest.

    Each solve starts where the last one ended, with its multipliers and its curvature, and is
    certified as a fit of its own would be. All together take less than a third of the
    evaluations of separate fits (docs/trace_path.md).

    Parameters
    ----------
    estimator : LMNN, MCML or MMC
        A convex learner; its ``trace_penalty`` is not used. LNML and NCA are refused: their
        problems are not convex, so that a start near another solution changes what is found.
    X : array-like or torch tensor of shape (n, d)
        Training data.
    y : array-like of shape (n,)
        Class labels.
    trace_penalties : sequence of float, default=None
        Penalties in any order. By default ``n_penalties`` of them, from 10, or half of what
        leaves no metric, down to 0.001, each the same share of the one before.
    n_penalties : int, default=20
        How many, if they are not given.
    target_neighbors : optional
        As in ``fit``.

    Returns
    -------
    path : TracePath
        It ends early if the estimator's callback stops a solve.

    Examples
    --------
    >>> from lnml import LMNN, trace_path
    >>> from lnml.datasets import load_dataset
    >>> from sklearn.preprocessing import scale
    >>> wine = load_dataset("wine")
    >>> X = scale(wine.data)
    >>> path = trace_path(LMNN(), X[::2], wine.target[::2], n_penalties=5)
    >>> len(path.models), bool((path.gaps <= 1e-3).all())
    (5, True)
    >>> path.scores(X[::2], wine.target[::2], X[1::2], wine.target[1::2]).shape
    (5,)
    """
    base = _checked(estimator)
    base._refuse_cluster(X)
    penalties = _penalties(base, X, y, trace_penalties, n_penalties, target_neighbors)
    kernels = base.kernels_for(X)
    models: list[Any] = []
    with kernels.session(), expected_rounding():
        rows = check_training_data(base, X, y)
        training, targets = base._prepared(rows, kernels, target_neighbors)
        start, last = base.initial_components(rows.X, rows.codes), None
        for penalty in penalties:
            model = clone(base).set_params(trace_penalty=float(penalty))
            last = _next(model, model.metric_problem(training), targets, start, last)
            models.append(_stored(model, last, X, y, training, rows, targets))
            if last.stopped:
                break
    return TracePath(penalties[: len(models)], models)


def _next(
    model: Any, problem: Any, targets: Any, start: np.ndarray, last: Solution | None
) -> Solution:
    """Solve the next problem of a path from the last solution; anew if that does not converge."""
    assert isinstance(problem, ObjectiveProblem)
    monitor = Monitor(type(model).__name__, model.verbose, model.callback)
    solve = partial(problem.solve, targets, tol=model.tol, monitor=monitor, on_path=True)
    found = solve(start) if last is None else solve(last.components, state=last.state)
    if last is not None and not (found.converged or found.stopped):
        # A fit of its own has as many iterations as it asks for, and both count.
        before = list(monitor.history)
        monitor.history.clear()
        anew = solve(start)
        better = anew.converged or _gap(anew) < _gap(found)
        found = replace(anew if better else found, history=[*before, *monitor.history])
    monitor.close()
    return found


def _gap(solution: Solution) -> float:
    """Gap that is proved; infinite if there is none."""
    return np.inf if solution.gap is None else solution.gap


def _checked(estimator: Any) -> MetricLearner:
    """Return a clone of a convex learner with a trace penalty, or say why it is none."""
    if isinstance(estimator, type):
        raise TypeError(f"there is no path for {kind_of(estimator)}")
    name = type(estimator).__name__
    if not isinstance(estimator, MetricLearner) or "trace_penalty" not in estimator.get_params():
        raise TypeError(
            f"there is no path for {name}: it needs a convex learner with a trace_penalty (LMNN, "
            f"MCML or MMC). Where a problem is not convex, a start near another solution changes "
            f"what is found; fit {name} for each penalty instead"
        )
    model = clone(estimator)
    model.check_parameters()
    return model


def _penalties(
    base: Any, X: Any, y: Any, given: Sequence[float] | None, count: int, target_neighbors: Any
) -> np.ndarray:
    """Return the penalties, the largest first."""
    if given is not None:
        found = np.unique([check_trace_penalty(each) for each in given])[::-1]
        if not found.size:
            raise ValueError("trace_penalties is empty: name at least one, or use None")
        return found
    check_integer("n_penalties", count, 1)
    most = LARGEST
    if hasattr(base, "max_trace_penalty"):
        most = min(most, SHARE * base.max_trace_penalty(X, y, target_neighbors))
    if most <= LEAST_PENALTY:
        raise ValueError(
            "no penalty leaves a metric on these data that is more than rounding: the classes do "
            "not differ, or columns have very different scales; scale the columns first"
        )
    return np.geomspace(most, max(min(SMALLEST, 1e-3 * most), LEAST_PENALTY), count)


def _stored(
    model: Any,
    found: Solution,
    X: Any,
    y: Any,
    training: TrainingSet,
    rows: TrainingRows,
    targets: Neighborhoods | None,
) -> Any:
    """Return the model with a solution of the path as what it found."""
    attributes = {"classes_": rows.classes, **target_attributes(targets, training)}
    found = replace(found, history=list(found.history))
    learned = Learned(found, training.points.dtype, attributes, order=training.order)
    check_training_data(model, X, y)
    model._store(learned, X)
    model._warn(learned, X)
    return model
