"""Maximally collapsing metric learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.checks import check_trace_penalty
from lnml.estimators.base import MetricLearner, check_limits
from lnml.estimators.penalised import TracePenalised
from lnml.kernels.training import TrainingSet
from lnml.objectives.mcml import MCMLObjective
from lnml.solvers.problem import ObjectiveProblem


class MCML(TracePenalised, MetricLearner):
    """Maximally collapsing metric learning, with a proved optimality gap.

    Every row chooses a neighbour at random, near ones more often:
    ``p(j | i)`` is proportional to ``exp(-D_ij)``. The metric minimises the sum
    over rows of the Kullback-Leibler divergence from an ideal distribution,
    uniform over the rows of the same class (or over given target neighbours).
    No n x n array is made.

    Where classes lie far apart, the objective is near zero and the solver's rounding
    matters: it is counted into the values of ``history_``. ``objective_`` is computed
    at the end without it, to the digits that the certificate states (docs/mcml.md).

    Parameters
    ----------
    trace_penalty : float, default=0.0
        rho. Adds ``rho * 2 n v * trace(M)``, n the number of rows with targets and v the
        mean variance of the data, against overfitting (docs/trace_penalty.md). It must be
        below ``max_trace_penalty(X, y)``.
    n_components : int, default=None
        Rows of L, at most the number of features (the default). With fewer rows
        the solver has no barrier (docs/mcml.md): the bound behind ``duality_gap_``
        is often only 0, and the fit stops when five iterations gain less than
        ``tol / 10``.
    init : {'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='identity'
        Metric to start from, up to its scale.
    max_iter : int, default=100
        Most iterations, of at most 160 L-BFGS steps each.
    tol : float, default=1e-3
        Largest relative duality gap. Where no better bound than KL >= 0 can be
        shown feasible, the fit stops when five iterations gain less than
        ``tol / 10``, and ``duality_gap_`` says how little is proved.
    warm_start : bool, default=False
        Start from the components of the last fit.
    callback : callable, default=None
        Called after every iteration with a :class:`lnml.core.monitor.FitState`;
        return True to stop with the best metric so far.
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
        Sum of the divergences at ``components_`` as returned, never negative.
    duality_gap_ : float
        Proved: no metric of any rank has an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        a millionth of the objective of the zero metric (docs/mcml.md).
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``.
    converged_ : bool
        Whether the fit met its stopping rule.
    history_ : list of dict
        What the solver saw, one record per iteration: objective, bound, gap,
        n_evaluations, seconds.
    n_iter_ : int
        Number of iterations.
    target_neighbors_, n_target_neighbors_ : csr_array (n, n), ndarray (n,)
        Given target neighbours; absent when the classes are the targets.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Globerson, Roweis. Metric learning by collapsing classes. NIPS 2005.

    Examples
    --------
    >>> from lnml import MCML
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> model = MCML().fit(iris.data, iris.target)
    >>> model.duality_gap_ <= 1e-3
    True
    """

    not_on_cluster_because = ""

    def __init__(
        self,
        *,
        trace_penalty: float = 0.0,
        n_components: int | None = None,
        init: Any = "identity",
        max_iter: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.trace_penalty = trace_penalty
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def check_parameters(self) -> None:
        """Refuse bad parameters before any work."""
        check_limits(self)
        check_trace_penalty(self.trace_penalty)

    def metric_problem(self, training: TrainingSet) -> ObjectiveProblem:
        """Return the MCML problem over the training data."""
        return ObjectiveProblem(self.penalised_objective(training), self.max_iter)

    def penalised_objective(self, training: TrainingSet) -> MCMLObjective:
        """Return the MCML objective over the training data."""
        return MCMLObjective(training, float(self.trace_penalty))

    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> None:
        """All rows of the same class are targets; that needs no graph."""
        return None
