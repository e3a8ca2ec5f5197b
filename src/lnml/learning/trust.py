"""Which rows the learned neighbourhoods trust least."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lnml.core.checks import check_integer


def least_trusted(model: Any, n: int | None = 10) -> np.ndarray:
    """Rank the training rows that LNML trusts least: candidates for wrong labels.

    Rows with few target neighbours come first. Among rows with equally many,
    those whose pairs cost more on average (``target_costs_``) come first, then
    the lower row number. Rows of classes too small for the sizes asked for
    have few neighbours for that reason alone.

    Parameters
    ----------
    model : LNML or LNMLCV
        A fitted model. Sizes that may vary, such as (1, 3, 5), and few rounds
        (``max_rounds=2``) tell most (docs/trust.md).
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
    if not hasattr(type(model), "fit"):
        raise TypeError(f"least_trusted needs a fitted LNML or LNMLCV, got {type(model).__name__}")
    check_is_fitted(model)
    if not hasattr(model, "target_costs_"):
        raise TypeError(
            f"{type(model).__name__} learns no neighbourhoods, so it trusts all rows alike: "
            f"fit LNML({type(model).__name__}()) instead"
        )
    return np.lexsort((-mean_costs(model), model.n_target_neighbors_))[:count]


def mean_costs(model: Any) -> np.ndarray:
    """Mean cost of the target pairs of every row, shape (n,); zero for a row without any."""
    sizes = model.n_target_neighbors_
    rows = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(rows, weights=model.target_costs_.data, minlength=sizes.size)
    return total / np.maximum(sizes, 1)
