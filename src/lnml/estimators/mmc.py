"""Metric learning from similar and dissimilar pairs: Xing's method."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lnml.core.checks import check_trace_penalty
from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.estimators.base import Learned, MetricLearner, check_limits, nearest_targets
from lnml.estimators.validation import check_labelled_pairs
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import host_array
from lnml.kernels.training import TrainingSet
from lnml.objectives.mmc import GivenPairsObjective, MMCObjective
from lnml.solvers.path import solve
from lnml.solvers.problem import ObjectiveProblem


class MMC(MetricLearner):
    """Xing's Mahalanobis metric for clustering, solved to a proved optimality gap.

    Makes similar pairs close while dissimilar ones stay apart: minimises the sum
    of D over similar pairs such that the sum of sqrt(D) over dissimilar pairs is
    at least one, with D the squared learned distance. The problem is convex in
    the metric; the fit stops when the relative duality gap is at most ``tol``.

    ``fit`` takes rows with class labels: similar are a row and its target
    neighbours, dissimilar any two rows of different class. Both orders of a pair
    count. ``fit_pairs`` takes the pairs themselves and counts each once. Pairs
    of identical points have no distance under any metric and change nothing.

    Parameters
    ----------
    n_neighbors : int, default=None
        Target neighbours of every row: its nearest rows of the same class by
        Euclidean distance, ties to the lower index. None: all rows of its
        class. ``fit(target_neighbors=...)`` replaces them.
    diagonal : bool, default=False
        Learn one weight for each feature, never negative, instead of a full metric.
    trace_penalty : float, default=0.0
        rho. Adds ``rho * 2 P v * trace(M)``, P the number of similar pairs and v the mean
        variance of the data, to what is minimised (docs/trace_penalty.md).
    n_components : int, default=None
        Rows of L, at most the number of features (the default, and the only
        choice for a diagonal metric). Fewer give a metric of low rank: the
        problem is then not convex, ``duality_gap_`` is still measured against
        the bound over metrics of *any* rank, and the fit also stops when five
        iterations gain less than ``tol / 10``.
    init : {'identity', 'pca', 'lda', 'random'} or array of shape (r, d), default='identity'
        Metric to start from, up to its scale. The optimum does not depend on
        it, unless ``n_components`` is below the number of features.
    max_iter : int, default=100
        Most iterations; one is up to 10 L-BFGS steps and one certificate.
    tol : float, default=1e-3
        Largest relative duality gap, (objective - bound) / objective.
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
        L; the learned squared distance is the sum of squares of L (a - b). Its
        scale is that of the constraint: the sum over dissimilar pairs is one.
    objective_ : float
        Sum of D over similar pairs at ``components_`` as returned.
    duality_gap_ : float
        Proved, for these pairs: no metric of any rank (no diagonal one, if ``diagonal``)
        that keeps the constraint has an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        1e-12 of the objective of the Euclidean metric (docs/mmc.md).
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``. None after
        ``fit_pairs``.
    converged_ : bool
        Whether the fit met its stopping rule.
    history_ : list of dict
        What the solver saw, one record per iteration: objective, bound, gap,
        n_evaluations, seconds.
    n_iter_ : int
        Number of iterations.
    target_neighbors_, n_target_neighbors_ : csr_array (n, n), ndarray (n,)
        Target neighbours; absent when the classes are the targets, and after
        ``fit_pairs``.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn; no classes after ``fit_pairs``.

    References
    ----------
    Xing, Ng, Jordan, Russell. Distance metric learning, with application to
    clustering with side-information. NIPS 2002.

    Examples
    --------
    >>> from lnml import MMC
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = MMC().fit(wine.data, wine.target)
    >>> model.converged_, model.duality_gap_ <= 1e-3
    (True, True)

    >>> import numpy as np
    >>> pairs = np.array([[[0, 0], [0, 1]], [[0, 0], [1, 0]], [[1, 1], [0, 1]]])
    >>> weights = MMC(diagonal=True).fit_pairs(pairs, [1, 1, -1]).get_mahalanobis_matrix()
    >>> print(weights.round(3))
    [[1. 0.]
     [0. 0.]]
    """

    def __init__(
        self,
        *,
        n_neighbors: int | None = None,
        diagonal: bool = False,
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
        self.diagonal = diagonal
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
        if not isinstance(self.diagonal, bool | np.bool_):
            raise ValueError(f"diagonal must be True or False, got {self.diagonal!r}")

    def metric_problem(self, training: TrainingSet) -> ObjectiveProblem:
        """Return Xing's problem over the training data."""
        objective = MMCObjective(training, bool(self.diagonal), float(self.trace_penalty))
        return ObjectiveProblem(objective, self.max_iter)

    def default_targets(self, training: TrainingSet, classes: np.ndarray) -> Neighborhoods | None:
        """Return the nearest rows of the same class; None stands for all of them."""
        if self.n_neighbors is None:
            return None
        return nearest_targets(training, classes, self.n_neighbors)

    def fit_pairs(self, pairs: Any, labels: Any) -> Self:
        """Learn the metric from pairs of points.

        Parameters
        ----------
        pairs : array-like of shape (m, 2, d)
            Pairs of points.
        labels : array-like of shape (m,)
            1 for a similar pair, -1 for a dissimilar one.

        Returns
        -------
        self
        """

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            ends, similar = check_labelled_pairs(self, host_array(pairs), host_array(labels))
            self.check_parameters()
            if isinstance(self.init, str) and self.init == "lda":
                raise ValueError("init='lda' needs classes, pairs have none: use another init")
            wide = ends.astype(np.float64)
            start = self.initial_components(wide.reshape(-1, ends.shape[2]), np.zeros(0))
            differences = wide[:, 0] - wide[:, 1]
            diagonal = bool(self.diagonal)
            objective = GivenPairsObjective(
                kernels, differences, similar, diagonal, ends.dtype, float(self.trace_penalty)
            )
            solution = solve(
                objective, None, start, tol=self.tol, max_iter=self.max_iter, monitor=monitor
            )
            return Learned(solution, ends.dtype)

        return self._fit(pairs, learn)

    def initial_components(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Components (r x d) the fit starts from; of a diagonal metric, its diagonal."""
        components = super().initial_components(X, codes)
        if not self.diagonal:
            return components
        if components.shape[0] < components.shape[1]:
            raise ValueError(
                f"n_components={self.n_components} does not go with diagonal=True: a diagonal "
                f"metric has one component for each feature; use n_components=None"
            )
        return np.diag(np.linalg.norm(components, axis=0))
