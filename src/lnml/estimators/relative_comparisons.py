"""Weights of a basis from relative comparisons, after Schultz and Joachims."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lnml.core.pairs import Pattern
from lnml.estimators.base import warm_components
from lnml.estimators.triplets import TripletLearner
from lnml.estimators.validation import check_basis
from lnml.kernels.tensors import host_array
from lnml.kernels.training import TrainingSet
from lnml.objectives.frobenius import WeightedBasisObjective


class RelativeComparisons(TripletLearner):
    """Non-negative weights of features or given directions, solved to a proved gap.

    Minimises ``1/2 |M|_F^2 + C * sum over triplets of max(0, 1 + D_ij - D_il)``
    over metrics ``M = A W A^T`` with W diagonal and not negative, where D is the
    squared learned distance, j a target neighbour of row i and l a row of
    another class. With the default basis, the identity, the metric weights the
    features. The norm depends on the units of the features as given: standardise
    features that have no common unit.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of every row: its nearest rows of the same class by
        Euclidean distance, ties to the lower index. ``fit(target_neighbors=...)``
        replaces them.
    C : float, default=1.0
        Weight of the hinges, above 0.
    basis : array of shape (d, m), default=None
        A, one direction per column; None is the identity.
    max_iter : int, default=100
        Most iterations; one is up to 30 L-BFGS steps and one exact search.
    tol : float, default=1e-3
        Largest relative duality gap, (objective - bound) / max(objective, floor).
    warm_start : bool, default=False
        Start from the weights of the last fit; all are equal otherwise.
    callback : callable, default=None
        Called after every iteration with a :class:`lnml.core.monitor.FitState`;
        return True to stop with the best metric so far.
    verbose : int, default=0
        Show a live line on stderr.
    device : str, torch.device or None, default=None
        Where the fit runs: 'cpu', 'cuda', 'cuda:1', ... (a GPU needs ``lnml[torch]``).
        None follows the data: a tensor is worked on where it is (docs/gpu.md).

    Attributes
    ----------
    weights_ : ndarray of shape (m,)
        Diagonal of W.
    components_ : ndarray of shape (m, d)
        L = W^(1/2) A^T; the learned squared distance is the sum of squares of L (a - b).
    objective_ : float
        The objective at ``components_`` as returned.
    duality_gap_ : float
        Proved, for these neighbours or triplets: no weights have an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        a millionth of the objective of zero weights (docs/frobenius.md).
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
    Schultz, Joachims. Learning a distance metric from relative comparisons. NIPS 2003.

    Examples
    --------
    >>> from lnml import RelativeComparisons
    >>> triplets = [[[0, 0], [1, 0], [0, 2]], [[1, 1], [3, 1], [1, 4]]]
    >>> RelativeComparisons(tol=1e-6).fit_triplets(triplets).weights_.round(2)
    array([0.  , 0.25])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 3,
        C: float = 1.0,
        basis: Any = None,
        max_iter: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        device: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.C = C
        self.basis = basis
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.device = device

    @property
    def weights_(self) -> np.ndarray:
        """Diagonal of W, shape (m,)."""
        check_is_fitted(self, "components_")
        basis = check_basis(self.basis, self.n_features_in_)
        return (host_array(self.components_) ** 2).sum(axis=1) / (basis**2).sum(axis=0)

    def objective(
        self, training: TrainingSet, impostors: Pattern | None = None
    ) -> WeightedBasisObjective:
        """Return what is asked of the weights; impostors replace the rows of other classes."""
        basis = check_basis(self.basis, training.points.n_features)
        return WeightedBasisObjective(training, self.C, basis, impostors)

    def initial_components(self, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Components (m x d) of equal weights, or of the last fit."""
        start = check_basis(self.basis, X.shape[1]).T
        if self.warm_start and hasattr(self, "components_"):
            return warm_components(self.components_, start.shape)
        return start
