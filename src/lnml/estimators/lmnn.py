"""Large margin nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.checks import check_between, check_trace_penalty
from lnml.core.neighborhoods import Neighborhoods
from lnml.estimators.base import MetricLearner, check_limits, nearest_targets
from lnml.estimators.penalised import TracePenalised
from lnml.kernels.training import TrainingSet
from lnml.objectives.lmnn import LMNNObjective
from lnml.solvers.problem import ObjectiveProblem


class LMNN(TracePenalised, MetricLearner):
    """Large margin nearest neighbours, solved to a proved optimality gap.

    Pulls every row towards its target neighbours and pushes rows of other
    classes out of their neighbourhood by a margin: minimises the sum over
    target pairs (i, j) of ``(1 - mu) D_ij + mu * sum_l max(0, 1 + D_ij - D_il)``
    with D the squared learned distance and l over the rows of other classes.
    The problem is convex in the metric; the fit stops when the relative duality
    gap is at most ``tol``.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of every row: its nearest rows of the same class by
        Euclidean distance, ties to the lower index. ``fit(target_neighbors=...)``
        replaces them.
    push_weight : float, default=0.5
        mu, the weight of the hinge, above 0 and below 1.
    trace_penalty : float, default=0.0
        rho. Adds ``(1 - mu) * rho * 2 P v * trace(M)``, P the number of target pairs
        and v the mean variance of the data: as if there were ``rho * P`` more pairs in
        random directions. 0.1 protects well against overfitting where the columns
        have similar scales (docs/trace_penalty.md). It must be below
        ``max_trace_penalty(X, y)``.
    n_components : int, default=None
        Rows of L, at most the number of features (the default). Fewer give a
        metric of low rank: the problem is then not convex, ``duality_gap_`` is
        still measured against the bound over metrics of *any* rank, and the fit
        also stops when five iterations gain less than ``tol / 10``.
    init : {'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='identity'
        Metric to start from, up to its scale. The optimum of the full-rank
        problem does not depend on it.
    max_iter : int, default=100
        Most iterations; one is up to 30 L-BFGS steps and one exact search.
    tol : float, default=1e-3
        Largest relative duality gap, (objective - bound) / max(objective, floor).
    warm_start : bool, default=False
        Start from the components of the last fit, and, if the rows and their target
        neighbours are the same, from its dual point: then little is left to do.
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
        The objective at ``components_`` as returned.
    duality_gap_ : float
        Proved, for these target neighbours: no metric of any rank has an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        a millionth of the objective of the zero metric (docs/lmnn.md).
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``.
    converged_ : bool
        Whether the fit met its stopping rule.
    history_ : list of dict
        What the solver saw, one record per iteration: objective (after a full search), bound,
        gap, n_active (number of violated triplets), n_evaluations, seconds.
    n_iter_ : int
        Number of iterations.
    target_neighbors_ : scipy.sparse.csr_array of shape (n, n)
        The target neighbours used.
    n_target_neighbors_ : ndarray of shape (n,)
        How many each row has.
    classes_ : ndarray
        Class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Their names, where X has string column names.

    References
    ----------
    Weinberger, Saul. Distance metric learning for large margin nearest neighbor
    classification. JMLR 10, 2009.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = LMNN().fit(wine.data, wine.target)
    >>> model.converged_, model.duality_gap_ <= 1e-3
    (True, True)
    """

    not_on_cluster_because = ""

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        push_weight: float = 0.5,
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
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
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
        check_between("push_weight", self.push_weight, 0.0, 1.0)
        check_trace_penalty(self.trace_penalty)

    def metric_problem(self, training: TrainingSet) -> ObjectiveProblem:
        """Return the LMNN problem over the training data."""
        return ObjectiveProblem(self.penalised_objective(training), self.max_iter)

    def penalised_objective(self, training: TrainingSet) -> LMNNObjective:
        """Return the LMNN objective over the training data."""
        return LMNNObjective(training, self.push_weight, float(self.trace_penalty))

    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> Neighborhoods:
        """Return the nearest rows of the same class by Euclidean distance."""
        return nearest_targets(training, classes, self.n_neighbors)
