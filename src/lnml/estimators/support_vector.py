"""Metric learning with a Frobenius regulariser, after Nguyen and Guo."""

from __future__ import annotations

from typing import Any

from lnml.core.pairs import Pattern
from lnml.estimators.triplets import TripletLearner
from lnml.kernels.training import TrainingSet
from lnml.objectives.frobenius import FrobeniusObjective


class SupportVectorMetric(TripletLearner):
    """Metric of least Frobenius norm that keeps impostors out, solved to a proved gap.

    Minimises ``1/2 |M|_F^2 + C * sum over triplets of max(0, 1 + D_ij - D_il)``
    over positive semidefinite M, with D the squared learned distance, j a target
    neighbour of row i and l a row of another class: a support vector machine
    whose weights are a metric (docs/frobenius.md). The norm depends on the units
    of the features as given: standardise features that have no common unit.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of every row: its nearest rows of the same class by
        Euclidean distance, ties to the lower index. ``fit(target_neighbors=...)``
        replaces them.
    C : float, default=1.0
        Weight of the hinges, above 0.
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
        neighbours are the same, from its dual point.
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
        Proved, for these neighbours or triplets: no metric of any rank has an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        a millionth of the objective of the zero metric (docs/frobenius.md).
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``. None after
        ``fit_triplets``.
    converged_ : bool
        Whether the fit met its stopping rule.
    history_ : list of dict
        What the solver saw, one record per iteration: objective (after a full search), bound,
        gap, n_active (number of violated triplets), n_evaluations, seconds.
    n_iter_ : int
        Number of iterations.
    target_neighbors_, n_target_neighbors_ : csr_array (n, n), ndarray (n,)
        The target neighbours used; absent after ``fit_triplets``.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Nguyen, Guo. Metric learning: a support vector approach. ECML-PKDD 2008.

    Examples
    --------
    >>> from lnml import SupportVectorMetric
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> model = SupportVectorMetric().fit(iris.data, iris.target)
    >>> model.converged_, model.duality_gap_ <= 1e-3
    (True, True)

    From comparisons: the first point is closer to the second than to the third.

    >>> triplets = [[[0, 0], [1, 0], [0, 2]], [[1, 1], [3, 1], [1, 4]]]
    >>> model = SupportVectorMetric(tol=1e-6).fit_triplets(triplets)
    >>> model.get_mahalanobis_matrix().diagonal().round(2)
    array([0.  , 0.25])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        C: float = 1.0,
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
        self.C = C
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def objective(
        self, training: TrainingSet, impostors: Pattern | None = None
    ) -> FrobeniusObjective:
        """Return what is asked of the metric; impostors replace the rows of other classes."""
        return FrobeniusObjective(training, self.C, impostors)
