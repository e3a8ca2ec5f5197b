"""Fits to subsamples of the rows: what averages of metrics are made of."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from lnml.kernels.tensors import host_array, is_dask
from lnml.kernels.training import TrainingSet
from lnml.learning.votes import vote_correct
from lnml.objectives.scatter import total_scatter


class SubsampleFit(NamedTuple):
    """A metric learned from some of the rows.

    Attributes
    ----------
    model : estimator or None
        Fitted to the subsample.
    components : ndarray of shape (r, d)
        Its metric, in float64.
    correct : ndarray of bool, shape (n_k, m)
        Whether the votes of the subsample's rows are right on the m rows left out.
    seconds : float
        Time of the fit.
    warned : str
        The first warning of the fit. It is kept, so that it comes back from other processes and
        the user sees it once.
    """

    model: Any
    components: np.ndarray
    correct: np.ndarray
    seconds: float
    warned: str = ""

    @property
    def gap(self) -> float | None:
        """Its duality gap, where there is one."""
        return getattr(self.model, "duality_gap_", None)


def fit_subsample(
    estimator: Any,
    X: Any,
    labels: np.ndarray,
    rows: np.ndarray,
    votes: Sequence[int] = (),
) -> SubsampleFit:
    """Fit a clone of an estimator to some rows, and judge it by those left out.

    Parameters
    ----------
    estimator : estimator or None
        The metric learner; None for the Euclidean metric.
    X : array, tensor or settled Dask array of shape (n, d)
        All rows. Nothing is judged by those of Dask.
    labels : ndarray of shape (n,)
        Their labels.
    rows : ndarray of int
        Rows of the subsample.
    votes : sequence of int
        Numbers of voters to judge by; none if nothing is judged.
    """
    out = np.setdiff1d(np.arange(len(labels)), rows)
    correct = np.zeros((len(votes), out.size), dtype=bool)
    start = time.perf_counter()
    if estimator is None:
        if votes and out.size:
            correct = vote_correct(X[rows], labels[rows], X[out], labels[out], votes)
        return SubsampleFit(None, np.eye(X.shape[1]), correct, 0.0)
    with warnings.catch_warnings(record=True) as caught:
        # Few rounds are meant to be few; what a fit proves, its gap says.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(estimator).fit(X[rows], labels[rows])
    seconds = time.perf_counter() - start
    components = np.asarray(host_array(model.components_), dtype=np.float64)
    if votes and out.size:
        inside, outside = model.transform(X[rows]), model.transform(X[out])
        correct = vote_correct(inside, labels[rows], outside, labels[out], votes)
    warned = str(caught[0].message) if caught else ""
    return SubsampleFit(model, components, correct, seconds, warned)


def fit_subsamples(
    estimator: Any,
    X: Any,
    labels: np.ndarray,
    subsamples: Sequence[np.ndarray],
    votes: Sequence[int] = (),
    n_jobs: int | None = None,
) -> list[SubsampleFit]:
    """Fit an estimator to some subsamples, in ``n_jobs`` processes; see :func:`fit_subsample`.

    Fits to a Dask array run here, one after the other: each has the whole cluster.
    """
    if is_dask(X):
        return [fit_subsample(estimator, X, labels, part, votes) for part in subsamples]
    jobs = (delayed(fit_subsample)(estimator, X, labels, part, votes) for part in subsamples)
    return list(Parallel(n_jobs=n_jobs)(jobs))


def covariance_of(training: TrainingSet) -> np.ndarray:
    """Return the covariance (d x d) of the data."""
    kernels, points = training.kernels, training.points
    return total_scatter(kernels, points) / points.n_rows


def fit_record(number: int, fit: SubsampleFit) -> dict[str, Any]:
    """Return a line of ``history_`` about the fit to a subsample."""
    model = fit.model
    return {
        "subsample": number,
        "objective": model.objective_,
        "gap": fit.gap,
        "n_iter": model.n_iter_,
        "fit_seconds": fit.seconds,
    }
