"""Neighbourhood components analysis."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from lnml.conditioning import whiten_pull
from lnml.estimators.base import (
    ComponentsLearner,
    store,
    untouched_on_failure,
    warn_if_unfinished,
)
from lnml.estimators.validation import (
    check_between,
    check_integer,
    check_training_data,
    refuse_unknown,
)
from lnml.objectives.contract import Solution, TrainingSet
from lnml.objectives.nca import NCATask
from lnml.solvers.lbfgs import minimize_over_components
from lnml.solvers.monitor import Monitor
from lnml.tensors import like

# Past steps that L-BFGS keeps.
MEMORY = 20


class NCA(ComponentsLearner):
    """Neighbourhood components analysis.

    Every row chooses a neighbour at random, near ones more often:
    ``p(j | i)`` is proportional to ``exp(-D_ij)``. The metric minimises the
    expected number of rows that choose one of another class. The problem is not
    convex, so there is no optimality gap; what is found depends on ``init``. No
    n x n array is made.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L, at most the number of features (the default).
    init : {'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='identity'
        Metric to start from. Where it makes the distances within classes so long
        that rows see nothing but their nearest neighbour (or so short that all
        rows look the same), the fit starts from a multiple of it.
    max_iter : int, default=200
        Most L-BFGS steps.
    tol : float, default=1e-5
        The fit ends when a step lowers the objective by less than this share of
        its value at the start, or when the gradient vanishes.
    warm_start : bool, default=False
        Start from the components of the last fit.
    callback : callable, default=None
        Called after every step with a :class:`lnml.solvers.monitor.FitState`;
        return True to stop with the metric so far.
    verbose : int, default=0
        Show a live line on stderr.
    random_state : int, RandomState or None, default=None
        Seed of ``init='random'``; nothing else is random.
    device : str, torch.device or None, default=None
        Where the fit runs: 'cpu', 'cuda', 'cuda:1', ... (a GPU needs ``lnml[torch]``).
        None follows the data: a tensor is worked on where it is (docs/gpu.md).

    Attributes
    ----------
    components_ : ndarray of shape (r, d)
        L; the learned squared distance is the sum of squares of L (a - b).
    objective_ : float
        Expected number of rows whose random neighbour is of another class: the
        number of rows minus what scikit-learn's
        ``NeighborhoodComponentsAnalysis`` maximises.
    converged_ : bool
        Whether ``tol`` was met.
    history_ : list of dict
        One record per step: objective, seconds.
    n_iter_ : int
        Number of steps.
    duality_gap_ : None
        Nothing can be proved about a problem that is not convex.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Goldberger, Roweis, Hinton, Salakhutdinov. Neighbourhood components
    analysis. NIPS 2004.

    Examples
    --------
    >>> from lnml import NCA
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> model = NCA(n_components=2).fit(iris.data, iris.target)
    >>> model.transform(iris.data).shape
    (150, 2)
    """

    not_coupled_because = (
        "its objective, the expected number of random neighbours of another class, is not a sum "
        "of costs of target pairs"
    )

    def __init__(
        self,
        *,
        n_components: int | None = None,
        init: Any = "identity",
        max_iter: int = 200,
        tol: float = 1e-5,
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data, float32 or float64 (others become float64).
        y : array-like of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X and y")
        monitor = Monitor(type(self).__name__, self.verbose, self.callback)
        kernels = self.kernels_for(X)
        with untouched_on_failure(self), kernels.session():
            tol = check_between("tol", self.tol, 0.0, 1.0)
            max_iter = check_integer("max_iter", self.max_iter, 1)
            X, classes, codes = check_training_data(self, X, y)
            training = TrainingSet.from_labels(X, codes, kernels)
            components = self.initial_components(X, codes)
            solution = _solve(training, components, tol, max_iter, monitor, self.warm_start)
            monitor.close()
            store(self, solution, None, training, classes)
            self.components_ = like(self.components_, X)
        warn_if_unfinished(self, solution, "max_iter")
        return self


def _solve(
    training: TrainingSet,
    components: np.ndarray,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    keep_scale: bool,
) -> Solution:
    """Minimise NCA's objective in conditioned coordinates."""
    conditioning = whiten_pull(training.kernels, training.points, None)
    task = NCATask(training.kernels, conditioning)
    start = conditioning.to_conditioned(components)
    if not keep_scale:
        start = start * np.sqrt(task.workable_scale(start))

    def to_original(found: np.ndarray) -> np.ndarray:
        return conditioning.to_original(found, components.shape[0])

    def on_step(found: np.ndarray, value: float) -> bool:
        record = {"iteration": len(monitor.history) + 1, "objective": value}
        return monitor.step(record, partial(to_original, found))

    minimum = minimize_over_components(
        task.value_and_gradient,
        start,
        max_iter=max_iter,
        value_tol=max(tol, task.precision),
        memory=MEMORY,
        on_step=on_step,
    )
    return Solution(
        to_original(minimum.components),
        minimum.value,
        converged=minimum.converged or minimum.value <= task.rounding,
        history=monitor.history,
        stopped=monitor.stopped,
    )
