"""The estimator to start with: a metric that was chosen with care."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from lnml.core.checks import check_between, check_integer, check_trace_penalty, kind_of
from lnml.core.monitor import Monitor
from lnml.estimators.auto_candidates import (
    EQUAL,
    EQUAL_SIZES,
    NO_NEIGHBOURHOODS,
    USUAL,
    Candidate,
    can_be_coupled,
    candidates,
    changed_plan,
)
from lnml.estimators.auto_search import CandidateSearch
from lnml.estimators.averaged import MeanMetric, on_device
from lnml.estimators.base import ComponentsLearner, Learned
from lnml.estimators.coupled import coupled
from lnml.estimators.lmnn import LMNN
from lnml.estimators.validation import TrainingRows, refuse_unknown
from lnml.kernels import get_kernels
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import is_dask
from lnml.learning.assignment import Sizes, check_sizes
from lnml.learning.coupling import Coupling


class AutoMetric(MeanMetric):
    """The metric to start with: learned, averaged and chosen with care.

    Candidates are learned neighbourhoods with a few sizes and penalties, the base learner on its
    own, and the Euclidean metric. Each is fitted to a few subsamples and judged by the rows left
    out. The default candidate is taken, unless another one is better by more than the noise of
    that judgement. If the default cannot be fitted, the next one stands for it. The metric is the
    mean over the subsamples, so that nothing is fitted twice.
    Scale the columns first, for example with :class:`sklearn.preprocessing.StandardScaler`.
    docs/generalisation.md shows what to expect.

    Dask arrays and DataFrames are fitted on their cluster (docs/cluster.md). A sample of
    ``search_rows`` rows is brought to this machine for the comparison. The last fits, to
    subsamples of all rows, run on the cluster. The choice is that of the same rows on one
    machine, and so is the metric, up to rounding.

    Parameters
    ----------
    estimator : metric learner, default=None
        The base learner: LMNN (the default), MCML, NCA, or another one with a
        ``trace_penalty``, which is set here.
    trace_penalties : sequence of float, default=None
        Penalties to try with each of the sizes and without; the first belongs to the default
        candidate.
    sizes : sequence of (k_min, k_av, k_max), default=None
        Sizes of learned neighbourhoods to try with each penalty; the first belongs to the
        default candidate. NCA has no neighbourhoods.

        Without both there are a few candidates that serve most data. For LMNN these are sizes
        (1, 3, 5) with penalty 0.01, which is the default candidate; (3, 3, 3) with 0; LMNN on
        its own with 0.1. For MCML: on its own with 0.1, the default, and 0.01; sizes (5, 5, 5)
        with both. For NCA: penalties 0.01, the default, 0.001 and 0.1.
    n_neighbors : int or 'auto', default='auto'
        Neighbours that vote. Candidates are judged by that vote, or by the nearest neighbour
        alone if it is 'auto'; then ``n_neighbors_`` is chosen for the best one.
    n_subsamples : int, default=4
        Number of subsamples, at least 2. Each leaves out another part of the rows.
    search_rows : int or None, default=10000
        Candidates are compared on so many rows at most, a stratified sample. The chosen one is
        then fitted to subsamples of all rows. None for all; of Dask data 20,000, because the
        sample is brought to this machine. It depends on labels and ``random_state`` alone.
    max_rounds : int, default=10
        Most rounds of LNML in a fit.
    tol : float, default=1e-2
        Largest relative duality gap of a fit.
    n_jobs : int, default=None
        Processes over the fits of a candidate, as in joblib. The last fits to Dask data run one
        after the other: each has the whole cluster.
    callback : callable, default=None
        Called after every candidate with a :class:`lnml.core.monitor.FitState`; return True to
        choose from the candidates so far.
    verbose : int, default=0
        Show a live line on stderr.
    random_state : int, RandomState or None, default=0
        Seed of the subsamples.
    device : str, torch.device or None, default=None
        Where the fits run, as in :class:`lnml.LNML`.

    Attributes
    ----------
    components_ : ndarray of shape (r, d)
        L of the mean metric; see :class:`lnml.AveragedMetric`.
    n_neighbors_ : int
        Neighbours that should vote.
    best_params_ : dict
        The choice: ``method``, and ``trace_penalty``, ``k_min``, ``k_av``, ``k_max`` where it
        has them.
    best_index_ : int
        Its position in ``cv_results_``.
    best_score_ : float
        Share of the rows left out that its nearest neighbours classify correctly.
    reason_ : str
        The choice and why it was made, in a sentence; also the size of the sample, if not all
        rows were looked at.
    search_sample_ : ndarray of int, or None
        Row numbers of the sample that candidates were compared on; None for all rows.
    cv_results_ : dict
        As in :class:`sklearn.model_selection.GridSearchCV`. A split is a subsample. A candidate
        that is no better than the default on the first half of the splits is not fitted to the
        others: it has NaN there, and as its mean. ``gain`` is the difference in accuracy from the
        default on the rows that both were judged by, ``gain_error`` its standard error.
    estimators_, subsamples_, gaps_, target_shares_, objective_, duality_gap_, certificate_
        As in :class:`lnml.AveragedMetric`. The Euclidean metric has no ``estimators_``.
    converged_ : bool
        Whether all fits of the choice met their tolerance.
    history_ : list of dict
        One record per candidate: its params, score, gap (the largest), seconds.
    n_iter_ : int
        Number of candidates.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from lnml import AutoMetric
    >>> from lnml.datasets import load_dataset
    >>> from sklearn.preprocessing import scale
    >>> balance = load_dataset("balance_scale")
    >>> model = AutoMetric().fit(scale(balance.data), balance.target)
    >>> model.best_params_["method"]
    'LN-LMNN'
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        trace_penalties: Any = None,
        sizes: Any = None,
        n_neighbors: Any = "auto",
        n_subsamples: int = 4,
        search_rows: int | None = 10_000,
        max_rounds: int = 10,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
        device: Any = None,
    ) -> None:
        self.estimator = estimator
        self.trace_penalties = trace_penalties
        self.sizes = sizes
        self.n_neighbors = n_neighbors
        self.n_subsamples = n_subsamples
        self.search_rows = search_rows
        self.max_rounds = max_rounds
        self.tol = tol
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Choose a metric.

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
            settings, base = self._settings(), self._base(is_dask(X))
            measured = self._measured(X, y, kernels)
            search = CandidateSearch(measured.rows, **settings)
            # Candidates are compared on this machine, also if the rows are on a cluster.
            here = get_kernels() if is_dask(X) else kernels
            grid = self._grid(base, search.sample, here)
            chosen = search.run(grid, monitor)
            learned = self._mean(chosen, search.subsamples, measured, monitor)
            return replace(learned, attributes=learned.attributes | search.attributes())

        return self._fit(X, learn)

    def _settings(self) -> dict[str, Any]:
        """Return how candidates are compared, checked."""
        names = ("n_subsamples", "n_neighbors", "search_rows", "n_jobs", "random_state")
        check_integer("n_subsamples", self.n_subsamples, 2)
        check_integer("max_rounds", self.max_rounds, 1)
        if self.search_rows is not None:
            check_integer("search_rows", self.search_rows, 2)
        if self.n_neighbors != "auto":
            check_integer("n_neighbors", self.n_neighbors, 1)
        return {name: getattr(self, name) for name in names}

    def _base(self, on_cluster: bool) -> Any:
        """Return the base learner, checked; one for a cluster follows the rows."""
        base = LMNN() if self.estimator is None else self.estimator
        needed = {"trace_penalty", "tol"}
        if not isinstance(base, ComponentsLearner) or not needed <= base.get_params().keys():
            raise TypeError(
                f"AutoMetric cannot use {kind_of(base)}: it needs a metric learner with a "
                f"trace_penalty and a tol, such as LMNN(), MCML() or NCA()"
            )
        base = clone(base).set_params(tol=check_between("tol", self.tol, 0.0, 1.0))
        base = base.set_params(device=None) if on_cluster else on_device(base, self.device)
        base.check_parameters()
        return base

    def _grid(self, base: Any, rows: TrainingRows, kernels: Kernels) -> list[Candidate]:
        """Check the parameters and return the candidates, the default first."""
        plan, sizes, penalties = NO_NEIGHBOURHOODS, None, None
        if can_be_coupled(base):
            coupling = coupled(clone(base), rows.X, rows.codes, kernels)
            plan = EQUAL_SIZES if coupling.problem(EQUAL).fixed_row_sizes else USUAL
            sizes = self._sizes(coupling)
        elif self.sizes is not None:
            raise ValueError(f"sizes do not go with {type(base).__name__}: it has no targets")
        if self.trace_penalties is not None:
            penalties = check_penalties(self.trace_penalties)
        if sizes is not None or penalties is not None:
            plan = tuple(changed_plan(plan, sizes, penalties))
        return candidates(base, plan, max_rounds=self.max_rounds, tol=base.tol)

    def _sizes(self, coupling: Coupling) -> list[Sizes] | None:
        """Return the given sizes of neighbourhoods, checked."""
        if self.sizes is None:
            return None
        given = list(self.sizes) if isinstance(self.sizes, Iterable) else []
        if not given or any(np.shape(each) != (3,) for each in given):
            raise ValueError(
                f"sizes must be a list of (k_min, k_av, k_max), such as [(1, 3, 5)], or None; "
                f"got {self.sizes!r}"
            )
        found = [check_sizes(*each) for each in given]
        for each in found:
            coupling.check(each)
        return found


def check_penalties(given: Any) -> list[float]:
    """Return the penalties to try, or say what is wrong."""
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if not found:
        raise ValueError(
            f"trace_penalties must be a list of one number or more, or None; got {given!r}"
        )
    return [check_trace_penalty(each) for each in found]
