"""The mean of metrics learned from subsamples of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from lnml.certificates import Certificate
from lnml.core.chance import own_generator
from lnml.core.checks import check_between, check_integer, kind_of
from lnml.core.monitor import Monitor
from lnml.core.solution import Solution
from lnml.core.warn import warn_user
from lnml.estimators.base import Learned, MetricEstimator
from lnml.estimators.coupled import CoupledEstimator
from lnml.estimators.lmnn import LMNN
from lnml.estimators.lnml import LNML
from lnml.estimators.subsamples import SubsampleFit, covariance_of, fit_record, fit_subsamples
from lnml.estimators.validation import TrainingRows, check_training_data, refuse_unknown
from lnml.kernels.dask_rows import settled
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import is_dask
from lnml.kernels.training import TrainingSet
from lnml.learning.averages import balanced_subsamples, mean_components, target_shares


class Measured(NamedTuple):
    """Rows that subsamples are drawn from.

    Attributes
    ----------
    rows : TrainingRows
        Checked. Those of Dask are on the workers, as an array that takes row numbers.
    covariance : ndarray of shape (d, d)
        Their covariance: a mean is taken of metrics in its units.
    dtype : numpy.dtype
        Type of the metric.
    """

    rows: TrainingRows
    covariance: np.ndarray
    dtype: np.dtype


class MeanMetric(CoupledEstimator):
    """Base of the estimators whose metric is a mean of others."""

    estimators_: list[Any]

    def _measured(self, X: Any, y: Any, kernels: Kernels) -> Measured:
        """Check and measure the rows."""
        rows = check_training_data(self, X, y)
        if is_dask(rows.X):
            rows = rows._replace(X=settled(rows.X, rows.codes.size))
        training = TrainingSet.from_labels(rows.X, rows.codes, kernels)
        return Measured(rows, covariance_of(training), training.points.dtype)

    def _mean(
        self,
        fits: list[SubsampleFit],
        subsamples: list[np.ndarray],
        measured: Measured,
        monitor: Monitor,
    ) -> Learned:
        """Return the mean of fits to subsamples; of none, the Euclidean metric."""
        rows, covariance, dtype = measured
        metrics = [fit.components for fit in fits] or [np.eye(len(covariance))]
        solution = Solution(
            mean_components(metrics, covariance),
            np.nan,
            converged=all_met(fits),
            history=monitor.history,
            stopped=monitor.stopped,
        )
        attributes = mean_attributes(fits, subsamples, len(rows.codes))
        attributes["classes_"] = rows.classes
        return Learned(solution, dtype, attributes, limit="")

    def certificate(self, X: Any, y: Any) -> Certificate:
        """Refuse: a mean solves no problem of its own. Each of ``estimators_`` has a proof."""
        check_is_fitted(self, "components_")
        # A model that was loaded from a file has none.
        if not getattr(self, "estimators_", True):
            raise ValueError("there is no certificate: the Euclidean metric was not learned")
        raise ValueError(
            f"there is no certificate: {type(self).__name__} is a mean of metrics, and no optimum "
            f"of one problem. Each metric has its own: for the first, "
            f"model.estimators_[0].certificate(X[rows], y[rows]) with "
            f"rows = model.subsamples_[0] (docs/averages.md)"
        )


def mean_attributes(
    fits: list[SubsampleFit], subsamples: list[np.ndarray], n_rows: int
) -> dict[str, Any]:
    """Return the fitted attributes about the metrics that a mean is made of."""
    models = [fit.model for fit in fits]
    gaps = np.array([np.nan if fit.gap is None else fit.gap for fit in fits])
    attributes: dict[str, Any] = {
        "estimators_": models,
        "subsamples_": subsamples[: len(fits)],
        "gaps_": gaps,
        "objective_": None,
    }
    if models and all(hasattr(model, "target_neighbors_") for model in models):
        graphs = [model.target_neighbors_ for model in models]
        shares = target_shares(graphs, attributes["subsamples_"], n_rows)
        attributes["target_shares_"] = shares
    return attributes


class AveragedMetric(MeanMetric):
    """The mean of metrics learned from subsamples of the rows.

    A fit of LNML ends in one of many local optima, and follows its rows closely. The mean of a
    few such fits, each to other rows, is better on new data (docs/averages.md). It is a metric,
    but the optimum of no problem: each of the fits has a proof, their mean has none.

    Parameters
    ----------
    estimator : metric learner, default=None
        What is fitted to each subsample. By default LN-LMNN with one to five neighbours:
        ``LNML(LMNN(trace_penalty=0.01), k_min=1, k_av=3, k_max=5, max_rounds=10, tol=1e-2)``.
    n_subsamples : int, default=4
        Number of fits.
    subsample : float, default=0.75
        Share of the rows of each class in a subsample. All rows are used about equally
        often: with these defaults, each in three of the four fits.
    n_jobs : int, default=None
        Processes over the fits, as in joblib. Fits to Dask data run one after the other: each
        has the whole cluster.
    callback : callable, default=None
        Called after every fit with a :class:`lnml.core.monitor.FitState`; return True to
        stop with the mean of the metrics so far.
    verbose : int, default=0
        Show a live line on stderr.
    random_state : int, RandomState or None, default=0
        Seed of the subsamples.
    device : str, torch.device or None, default=None
        Where the fits run, as in :class:`lnml.LNML`.

    Attributes
    ----------
    components_ : ndarray of shape (r, d)
        L of the mean metric. Before the mean is taken, each metric M is divided by <M, C>, C the
        covariance of the data. Rows are orthogonal, the longest first.
    estimators_ : list of estimators
        The fits, each with its own ``certificate``.
    subsamples_ : list of ndarray of int
        Row numbers of each.
    gaps_ : ndarray of shape (n_subsamples,)
        Duality gap of each; NaN where nothing is proved.
    target_shares_ : scipy.sparse.csr_array of shape (n, n)
        A soft neighbourhood: how often each pair is a target pair, as a share of the fits
        that saw both rows. Only if the fits have target neighbours.
    objective_, duality_gap_, certificate_ : None
        A mean solves no problem of its own.
    converged_ : bool
        Whether all fits proved what was asked for, or met their own stopping rule.
    history_ : list of dict
        One record per fit: subsample, objective, gap, n_iter, fit_seconds, seconds.
    n_iter_ : int
        Number of fits.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from lnml import AveragedMetric
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = AveragedMetric().fit(wine.data, wine.target)
    >>> len(model.estimators_), bool((model.gaps_ <= 1e-2).all())
    (4, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_subsamples: int = 4,
        subsample: float = 0.75,
        n_jobs: int | None = None,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
        device: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_subsamples = n_subsamples
        self.subsample = subsample
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Learn a metric from each subsample, and take their mean.

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
            count = check_integer("n_subsamples", self.n_subsamples, 1)
            share = check_between("subsample", self.subsample, 0.0, 1.0)
            estimator = on_device(self._estimator(), self.device)
            measured = self._measured(X, y, kernels)
            rows, rng = measured.rows, own_generator(self.random_state)
            subsamples = balanced_subsamples(rows.codes, count, share, rng)
            fits = self._fits(estimator, rows.X, rows.labels[rows.codes], subsamples, monitor)
            return self._mean(fits, subsamples, measured, monitor)

        return self._fit(X, learn)

    def _estimator(self) -> Any:
        if self.estimator is None:
            return default_estimator()
        if not isinstance(self.estimator, MetricEstimator):
            raise TypeError(
                f"AveragedMetric cannot use {kind_of(self.estimator)}: it needs a metric learner "
                f"of this library, such as LNML(LMNN()), MCML() or NCA()"
            )
        return self.estimator

    def _fits(
        self,
        estimator: Any,
        X: Any,
        labels: np.ndarray,
        subsamples: list[np.ndarray],
        monitor: Monitor,
    ) -> list[SubsampleFit]:
        """Fit all subsamples; report each."""
        # As many at a time as there are processes, so that a callback can stop in between.
        step = 1 if is_dask(X) else effective_n_jobs(self.n_jobs)
        fits: list[SubsampleFit] = []
        for lo in range(0, len(subsamples), step):
            parts = subsamples[lo : lo + step]
            for fit in fit_subsamples(estimator, X, labels, parts, n_jobs=self.n_jobs):
                fits.append(fit)
                if monitor.step(fit_record(len(fits) - 1, fit), fit.components.copy):
                    return fits
        return fits


def default_estimator() -> LNML:
    """Return what is averaged by default (docs/generalisation.md)."""
    return LNML(LMNN(trace_penalty=0.01), k_min=1, k_av=3, k_max=5, max_rounds=10, tol=1e-2)


def on_device(estimator: Any, device: Any) -> Any:
    """Let an estimator fit on a device; None leaves it as it is."""
    return estimator if device is None else clone(estimator).set_params(device=device)


def all_met(fits: list[SubsampleFit]) -> bool:
    """Whether all fits proved their tolerance or met their own rule; if not, say so.

    What the fits warned of is told once.
    """
    warned = [fit.warned for fit in fits if fit.warned]
    if warned:
        warn_user(f"{len(warned)} of the {len(fits)} fits to subsamples warned: {warned[0]}")
    short = [
        fit
        for fit in fits
        if not fit.model.converged_ and (fit.gap is None or fit.gap > fit.model.tol)
    ]
    if short:
        gaps = [fit.gap for fit in short if fit.gap is not None]
        largest = f", with gaps up to {max(gaps):.1e}" if gaps else ""
        warn_user(
            f"{len(short)} of the {len(fits)} fits did not meet their tolerance{largest}: raise "
            f"their max_iter, or accept a larger tol",
            ConvergenceWarning,
        )
    return not short
