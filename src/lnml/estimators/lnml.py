"""Learning neighbourhoods for metric learning."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lnml.core.checks import check_between, check_integer
from lnml.core.monitor import Monitor
from lnml.estimators.base import (
    Learned,
    target_attributes,
    warm_components,
)
from lnml.estimators.coupled import CoupledEstimator, coupled, coupled_base
from lnml.estimators.validation import check_training_data, refuse_unknown
from lnml.kernels.protocol import Kernels
from lnml.learning.assignment import Sizes, check_sizes, warn_small_classes


class LNML(CoupledEstimator):
    """Learn the metric and the neighbourhoods it is learned from, in turn.

    Starting from the metric of the base estimator's ``init``, every round first
    assigns target neighbours (exactly: the least total cost over all
    neighbourhoods that keep ``k_min``, ``k_av``, ``k_max``), then learns the
    metric for them. The objective falls with every half-step; the rounds end
    when the neighbourhoods repeat after a metric solved to ``tol``.

    Parameters
    ----------
    estimator : metric learner, default=None
        The metric learner: :class:`LMNN` (the default), :class:`MCML` or any
        estimator whose ``metric_problem`` keeps the contract of
        docs/contract.md. The sizes below replace its ``n_neighbors``.
    k_min, k_av, k_max : int, default=3
        Least, average and largest number of target neighbours of a row. Rows
        in clean, dense regions receive more, others fewer. MCML needs all
        three equal.
    max_rounds : int, default=100
        Most rounds.
    tol : float, default=1e-3
        Tolerance of the metric in the last round; earlier rounds are solved more
        loosely (docs/lnml.md). It replaces the ``tol`` of the base estimator.
    warm_start : bool, default=False
        Start from the components of the last fit.
    callback : callable, default=None
        Called after every round with a :class:`lnml.core.monitor.FitState`;
        return True to stop with the metric so far.
    verbose : int, default=0
        Show a live line on stderr.
    device : str, torch.device or None, default=None
        Where the fit runs: 'cpu', 'cuda', 'cuda:1', ... (a GPU needs ``lnml[torch]``).
        None uses the device of the base estimator. If that is None, too, a tensor is
        fitted on its own device and other data on the CPU (docs/gpu.md).

    Attributes
    ----------
    components_ : ndarray of shape (r, d)
        L; the learned squared distance is the sum of squares of L (a - b).
    target_neighbors_ : scipy.sparse.csr_array of shape (n, n)
        The learned neighbourhoods, in the order of the rows of X; on this machine also if X is
        on a cluster.
    n_target_neighbors_ : ndarray of shape (n,)
        How many target neighbours each row received.
    target_costs_ : scipy.sparse.csr_array of shape (n, n)
        What each pair of ``target_neighbors_`` costs at the learned metric, in
        the same order. Their sum is ``objective_`` minus the part of it that does
        not depend on pairs (zero for LMNN and MCML).
    objective_ : float
        The objective at ``components_`` as returned and the learned neighbourhoods.
    duality_gap_ : float or None
        Proved, for the learned neighbourhoods: no metric is better by more than this
        share, as the base estimator measures it. None if that proves nothing.
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``.
    converged_ : bool
        Whether the neighbourhoods repeated, or a whole round lowered the objective
        by less than ``tol / 10``, after a metric solved to ``tol``.
    history_ : list of dict
        What was seen, one record per round: ``objective_assigned`` after the neighbourhoods,
        ``objective`` after the metric, bound, gap, ``n_changed`` (number of new pairs),
        ``neighborhood_sizes`` (number of rows for each size), n_iter, tol, seconds.
    n_iter_ : int
        Number of rounds.
    estimator_ : estimator
        The base estimator used (a clone, not fitted).
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Wang, Woznica, Kalousis. Learning neighborhoods for metric learning.
    ECML-PKDD 2012.

    Examples
    --------
    >>> from lnml import LMNN, LNML
    >>> from lnml.datasets import load_dataset
    >>> balance = load_dataset("balance_scale")
    >>> model = LNML(LMNN(), k_min=1, k_av=3, k_max=5).fit(balance.data, balance.target)
    >>> model.target_neighbors_.nnz == 3 * 625
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        k_min: int = 3,
        k_av: int = 3,
        k_max: int = 3,
        max_rounds: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        device: Any = None,
    ) -> None:
        self.estimator = estimator
        self.k_min = k_min
        self.k_av = k_av
        self.k_max = k_max
        self.max_rounds = max_rounds
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Learn metric and neighbourhoods.

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
        return self._fit_from(X, y, None)

    def _fit_from(self, X: Any, y: Any, start: np.ndarray | None) -> Self:
        """Learn from components (r x d); None for a warm start or the base estimator's own."""
        base = coupled_base(self.estimator)

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            sizes = self._sizes()
            tol = check_between("tol", self.tol, 0.0, 1.0)
            max_rounds = check_integer("max_rounds", self.max_rounds, 1)
            rows = check_training_data(self, X, y)
            coupling = coupled(base, rows.X, rows.codes, kernels)
            coupling.check(sizes)
            warn_small_classes(np.bincount(rows.codes), rows.labels, sizes.k_av)
            origin = self._start(coupling.start, start)
            found = coupling.learn(sizes, origin, tol=tol, max_rounds=max_rounds, monitor=monitor)
            attributes = {
                "classes_": rows.classes,
                **target_attributes(found.targets, coupling.training),
                "target_costs_": coupling.target_costs(sizes, found),
                "estimator_": base,
            }
            # If the rounds ended before max_rounds, the last metric solve hit its own limit.
            limit, value = "max_rounds", None
            if len(found.history) < max_rounds:
                limit = "estimator__max_iter"
                value = getattr(base, "max_iter", None)
            training = coupling.training
            return Learned(
                found, training.points.dtype, attributes, limit, value, order=training.order
            )

        return self._fit(X, learn)

    def _sizes(self) -> Sizes:
        """Return the sizes of the neighbourhoods, checked."""
        return check_sizes(self.k_min, self.k_av, self.k_max)

    def _start(self, initial: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        """Components of M0: given, of a warm start, or what the base estimator starts from."""
        if given is None and self.warm_start and hasattr(self, "components_"):
            given = self.components_
        return initial if given is None else warm_components(given, initial.shape)
