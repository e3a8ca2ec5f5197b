"""Cross-validated 1-nearest-neighbour accuracy of several metrics on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from lnml.evaluation.results import FoldResult
from lnml.kernels import get_kernels


def predict_nearest(train: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Label of the nearest training row of every test row; ties to the lowest row.

    Parameters
    ----------
    train : ndarray of shape (n, r)
        Training rows.
    labels : ndarray of shape (n,)
        Their labels.
    test : ndarray of shape (m, r)
        Rows to classify.

    Returns
    -------
    predicted : ndarray of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> predict_nearest(np.array([[0.0], [2.0]]), np.array(["a", "b"]), np.array([[1.0], [1.5]]))
    array(['a', 'b'], dtype='<U1')
    """
    kernels = get_kernels()
    points = kernels.points(np.asarray(train, dtype=np.float64), np.array([0, len(train)]))
    embedding = kernels.embed(points, np.eye(points.data.shape[1]))
    _, nearest = kernels.nearest(embedding, 1, same_class=False, queries=test)
    return np.asarray(labels)[nearest[:, 0]]


def cross_validate(
    X: np.ndarray,
    y: np.ndarray,
    methods: Mapping[str, Any],
    *,
    n_folds: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Iterator[FoldResult]:
    """Yield one result per fold and method, folds in parallel, as they are done.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Data.
    y : ndarray of shape (n,)
        Class labels.
    methods : mapping of str to estimator or None
        Metric learners by name; None is the Euclidean metric.
    n_folds : int, default=10
        Folds, stratified by class and shuffled.
    seed : int, default=0
        Seed of the shuffle. All methods see the same folds.
    n_jobs : int, default=None
        Processes, as in joblib.
    """
    splits = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y)
    tasks = (
        delayed(_run_fold)(X, y, methods, fold, train, test)
        for fold, (train, test) in enumerate(splits)
    )
    for results in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        yield from results


def _run_fold(
    X: np.ndarray,
    y: np.ndarray,
    methods: Mapping[str, Any],
    fold: int,
    train: np.ndarray,
    test: np.ndarray,
) -> list[FoldResult]:
    results = []
    for name, method in methods.items():
        start = time.perf_counter()
        inside, outside, converged = X[train], X[test], True
        if method is not None:
            with warnings.catch_warnings():
                # Counted through converged_ and told by the caller.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = clone(method).fit(inside, y[train])
            inside, outside, converged = (
                model.transform(inside),
                model.transform(outside),
                (model.converged_),
            )
        seconds = time.perf_counter() - start
        correct = predict_nearest(inside, y[train], outside) == y[test]
        results.append(FoldResult(name, fold, test, correct, converged, seconds))
    return results
