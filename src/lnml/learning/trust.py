"""Which rows the learned neighbourhoods trust least."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lnml.core.checks import check_integer, kind_of
from lnml.learning.coupling import name_with_neighborhoods


def least_trusted(model: Any, n: int | None = 10) -> np.ndarray:
    """Rank the training rows that LNML trusts least: candidates for wrong labels.

    Rows with few target neighbours come first. Among rows with equally many,
    those whose pairs cost more on average (``target_costs_``) come first, then
    the lower row number. Rows of classes too small for the sizes asked for
    have few neighbours for that reason alone.

    Parameters
    ----------
    model : LNML, LNMLCV or AveragedMetric
        A fitted model. Sizes that may vary, such as (1, 3, 5), and few rounds
        (``max_rounds=2``) tell most (docs/trust.md). Of an average, numbers and costs are
        means over the fits that saw a row; rows that none saw come last.
    n : int or None, default=10
        How many rows; None for all.

    Returns
    -------
    rows : ndarray of int, shape (min(n, number of rows),)
        Row numbers of the data given to ``fit``, least trusted first.

    Examples
    --------
    >>> from lnml import LNML, least_trusted
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> labels = iris.target.copy()
    >>> labels[7] = "virginica"  # a setosa
    >>> model = LNML(k_min=1, k_av=3, k_max=5).fit(iris.data, labels)
    >>> print(least_trusted(model, n=1))
    [7]
    """
    count = None if n is None else check_integer("n", n, 1)
    if isinstance(model, type) or not hasattr(type(model), "fit"):
        raise TypeError(
            f"least_trusted needs a fitted LNML, LNMLCV or AveragedMetric, got {kind_of(model)}"
        )
    if hasattr(model, "metric_problem") or getattr(model, "not_coupled_because", False):
        # A metric learner on its own. To fit it would not help.
        raise _no_costs(model)
    check_is_fitted(model)
    if hasattr(model, "target_shares_"):
        sizes, costs = _means_over_fits(model)
        return np.lexsort((-costs, sizes))[:count]
    if not hasattr(model, "target_costs_"):
        raise _no_costs(model)
    return np.lexsort((-mean_costs(model), model.n_target_neighbors_))[:count]


def _no_costs(model: Any) -> TypeError:
    return TypeError(
        f"{type(model).__name__} learns no neighbourhoods, so it trusts all rows alike: fit "
        f"{name_with_neighborhoods(model)} instead"
    )


def _means_over_fits(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean number of target neighbours of every row, and their mean cost, over its fits."""
    n = model.target_shares_.shape[0]
    seen, sizes, costs = np.zeros(n), np.zeros(n), np.zeros(n)
    for fit, rows in zip(model.estimators_, model.subsamples_, strict=True):
        if not hasattr(fit, "target_costs_"):
            raise _no_costs(fit)
        seen[rows] += 1.0
        sizes[rows] += fit.n_target_neighbors_
        costs[rows] += mean_costs(fit)
    with np.errstate(invalid="ignore"):
        # Rounded, so that equal means are equal. NaN, for a row that no fit saw, sorts last.
        return np.round(sizes / seen, 9), costs / seen


def mean_costs(model: Any) -> np.ndarray:
    """Mean cost of the target pairs of every row, shape (n,); zero for a row without any."""
    sizes = model.n_target_neighbors_
    rows = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(rows, weights=model.target_costs_.data, minlength=sizes.size)
    return total / np.maximum(sizes, 1)
