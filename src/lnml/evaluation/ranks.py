"""Methods ranked over several data sets: see docs/statistics.md for what the tests assume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lnml.core.checks import check_between


@dataclass(frozen=True)
class CriticalDifference:
    """Methods ranked over several data sets.

    Attributes
    ----------
    methods : tuple of str
        Names, best average rank first.
    ranks : ndarray of shape (N,)
        Their average ranks; 1 is best.
    n_datasets : int
        Number of data sets.
    alpha : float
        Level of the tests.
    friedman_pvalue : float
        P-value of Friedman's test that all methods are equally good.
    pvalues : ndarray of shape (N, N)
        P-values of Nemenyi's test, in the order of ``methods``.
    difference : float
        Average ranks that differ by this much or more differ significantly.
    groups : tuple of tuple of str
        Largest sets of two or more methods that do not differ.
    """

    methods: tuple[str, ...]
    ranks: np.ndarray
    n_datasets: int
    alpha: float
    friedman_pvalue: float
    pvalues: np.ndarray
    difference: float
    groups: tuple[tuple[str, ...], ...]


def critical_difference(
    accuracies: Any, names: Sequence[str], alpha: float = 0.05
) -> CriticalDifference:
    """Compare average ranks over data sets by Friedman's and Nemenyi's tests.

    Needs scikit-posthocs: ``pip install "lnml[cli]"``.

    Parameters
    ----------
    accuracies : array-like of shape (n_datasets, N)
        Accuracies, larger is better; at least 2 data sets and 3 methods.
    names : sequence of str, length N
        Names of the methods.
    alpha : float, default=0.05
        Level of both tests.

    Examples
    --------
    >>> found = critical_difference([[0.9, 0.8, 0.7]] * 8, ["a", "b", "c"])
    >>> found.methods, found.groups
    (('a', 'b', 'c'), (('a', 'b'), ('b', 'c')))
    """
    values = np.asarray(accuracies, dtype=float)
    _check_accuracies(values, names)
    check_between("alpha", alpha, 0.0, 1.0)
    try:
        import scikit_posthocs
    except ImportError as error:
        raise ImportError(
            "critical_difference needs scikit-posthocs; install it with: pip install 'lnml[cli]'"
        ) from error
    n_datasets, n_methods = values.shape
    ranks = stats.rankdata(-values, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    # If all accuracies are equal, no rank varies, and both tests would divide 0 by 0.
    tied = bool((values == values[:, :1]).all())
    friedman = 1.0 if tied else float(stats.friedmanchisquare(*values.T).pvalue)
    pvalues = scikit_posthocs.posthoc_nemenyi_friedman(values).to_numpy()[np.ix_(order, order)]
    spread = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return CriticalDifference(
        methods=tuple(names[i] for i in order),
        ranks=ranks[order],
        n_datasets=n_datasets,
        alpha=alpha,
        friedman_pvalue=friedman,
        pvalues=pvalues,
        difference=float(spread * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))),
        groups=_groups(pvalues >= alpha, [names[i] for i in order]),
    )


def _check_accuracies(values: np.ndarray, names: Sequence[str]) -> None:
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(
            f"accuracies must have one row for each data set and one column for each of the "
            f"{len(names)} names; got shape {values.shape}"
        )
    if values.shape[0] < 2 or values.shape[1] < 3:
        raise ValueError(
            f"a critical difference needs at least 2 data sets and 3 methods; got {values.shape}"
        )
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"the name {twice[0]!r} stands for two methods: rename one")
    if not np.isfinite(values).all():
        raise ValueError(
            "accuracies must be finite: leave out methods that are missing on a data set"
        )


def _groups(alike: np.ndarray, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of methods, ordered by rank, whose ends do not differ."""
    groups = []
    reached = 0
    for start in range(len(names)):
        end = start + 1
        while end < len(names) and alike[start, end]:
            end += 1
        if end - start > 1 and end > reached:
            groups.append(tuple(names[start:end]))
        reached = max(reached, end)
    return tuple(groups)
