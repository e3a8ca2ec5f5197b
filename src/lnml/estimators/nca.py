"""Neighbourhood components analysis."""

from __future__ import annotations

from typing import Any, Self

from lnml.core.checks import check_trace_penalty
from lnml.core.monitor import Monitor
from lnml.estimators.base import Learned, check_limits
from lnml.estimators.penalised import TracePenalised
from lnml.estimators.validation import check_training_data, refuse_unknown
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.nca import NCAObjective
from lnml.solvers.path import solve


class NCA(TracePenalised):
    """Neighbourhood components analysis.

    Every row chooses a neighbour at random, near ones more often:
    ``p(j | i)`` is proportional to ``exp(-D_ij)``. The metric minimises the
    expected number of rows that choose one of another class. The problem is not
    convex, so there is no optimality gap; what is found depends on ``init``. No
    n x n array is made.

    Parameters
    ----------
    trace_penalty : float, default=0.0
        rho. Adds ``rho * 2 n v * trace(M)``, n the number of rows and v the mean variance
        of the data, against overfitting (docs/trace_penalty.md). It should be below
        ``max_trace_penalty(X, y)``.
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
        Called after every step with a :class:`lnml.core.monitor.FitState`;
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
        Expected number of rows whose random neighbour is of another class, at
        ``components_`` as returned: the
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
    certificate_ : None
        As there is nothing to prove.
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

    not_on_cluster_because = ""

    def __init__(
        self,
        *,
        trace_penalty: float = 0.0,
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

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like, torch tensor, Dask array or Dask DataFrame of shape (n, d)
            Training data, float32 or float64 (others become float64).
        y : array-like of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X and y")

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            rows = check_training_data(self, X, y)
            self.check_parameters()
            training = TrainingSet.from_labels(rows.X, rows.codes, kernels)
            objective = self.penalised_objective(training)
            solution = solve(
                objective,
                None,
                self.initial_components(rows.X, rows.codes),
                tol=self.tol,
                max_iter=self.max_iter,
                monitor=monitor,
                keep_scale=self.warm_start and hasattr(self, "components_"),
            )
            if solution.converged:
                objective.refuse_zero(solution.objective)
            return Learned(solution, training.points.dtype, {"classes_": rows.classes})

        return self._fit(X, learn)

    def penalised_objective(self, training: TrainingSet) -> NCAObjective:
        """Return the NCA objective over the training data."""
        return NCAObjective(training, float(self.trace_penalty))

    def max_trace_penalty(self, X: Any, y: Any, target_neighbors: None = None) -> float:
        """Return the penalty from which the zero metric is a local optimum.

        The problem is not convex: a fit may still find a better metric above it, or end at
        zero a little below it.

        Parameters
        ----------
        X, y : array-likes of shape (n, d) and (n,)
            Training data and class labels.
        target_neighbors : None
            NCA has none.

        Returns
        -------
        penalty : float
        """
        return super().max_trace_penalty(X, y, target_neighbors)
