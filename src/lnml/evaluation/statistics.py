"""Whether differences in accuracy are real: see docs/statistics.md for what each test assumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from lnml.core.checks import check_between
from lnml.errors import unknown_name
from lnml.evaluation.results import Comparison


@dataclass(frozen=True)
class McNemar:
    """McNemar's test of two methods on the same rows.

    Attributes
    ----------
    pvalue : float
        Two-sided.
    n_only_a, n_only_b : int
        Rows on which only the first, or only the second, method was right.
    """

    pvalue: float
    n_only_a: int
    n_only_b: int


def mcnemar(correct_a: Any, correct_b: Any, *, mid_p: bool = False) -> McNemar:
    """Test whether two methods are right equally often, exactly.

    Parameters
    ----------
    correct_a, correct_b : array-like of bool, shape (m,)
        Whether each method was right on each row, in the same order.
    mid_p : bool, default=False
        Count only half of the probability of the observed table. This is less
        cautious than the exact test, which rejects less often than its level says.

    Returns
    -------
    test : McNemar

    Examples
    --------
    >>> test = mcnemar([1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0])
    >>> print(test.n_only_a, test.n_only_b, f"{test.pvalue:.3f}")
    4 0 0.125
    """
    a, b = _as_correct("correct_a", correct_a), _as_correct("correct_b", correct_b)
    if a.shape != b.shape:
        raise ValueError(
            f"correct_a and correct_b must be about the same rows; they have {a.size} and {b.size}"
        )
    only_a, only_b = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    fewer, total = min(only_a, only_b), only_a + only_b
    pvalue = 2.0 * stats.binom.cdf(fewer, total, 0.5)
    if mid_p:
        pvalue -= stats.binom.pmf(fewer, total, 0.5)
    return McNemar(min(1.0, float(pvalue)), only_a, only_b)


def _as_correct(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"{name} must be a one-dimensional array of at least one truth value; "
            f"got shape {values.shape}"
        )
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{name} must hold truth values (right or wrong), not labels")
    return values.astype(bool)


def correct_by_method(comparison: Comparison | Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return for each method which rows it got right; refuse methods that saw different rows.

    Parameters
    ----------
    comparison : Comparison or mapping of str to array-like of bool, shape (m,)
        Results; arrays must list the rows in the same order. Of a comparison only the metrics
        count: classifiers have tests of their own (:func:`classifier_tests`).
    """
    if not isinstance(comparison, Comparison):
        if not isinstance(comparison, Mapping) or not comparison:
            raise ValueError(
                f"give a Comparison, or a mapping of names to arrays of right and wrong; got "
                f"{comparison!r}"
            )
        return {name: _as_correct(name, values) for name, values in comparison.items()}
    _check_same_rows(comparison)
    return {name: comparison.correct(name) for name in comparison.metrics}


def _check_same_rows(comparison: Comparison) -> None:
    rows = {name: comparison.tested(name) for name in comparison.methods}
    for name, seen in rows.items():
        first = comparison.methods[0]
        if not np.array_equal(seen, rows[first]):
            raise ValueError(
                f"{comparison.data.name}: {name} was tested on other rows than {first} "
                f"({seen.size} and {rows[first].size} of them); finish or leave out the method"
            )


@dataclass(frozen=True)
class PairwiseTests:
    """Every method against every other.

    Attributes
    ----------
    methods : tuple of str
        Names, in the order of rows and columns.
    pvalues : ndarray of shape (N, N)
        McNemar's p-values, symmetric, 1 on the diagonal.
    adjusted : ndarray of shape (N, N)
        The same after Holm's correction for N (N - 1) / 2 tests.
    winners : ndarray of int, shape (N, N)
        Sign of (row right alone) - (column right alone), whether significant or not.
    """

    methods: tuple[str, ...]
    pvalues: np.ndarray
    adjusted: np.ndarray
    winners: np.ndarray

    def verdict(self, a: str, b: str, alpha: float = 0.05, *, holm: bool = False) -> int:
        """1 if method a is significantly better than b, -1 if b is, else 0."""
        for name in (a, b):
            if name not in self.methods:
                raise unknown_name("method", name, self.methods)
        check_between("alpha", alpha, 0.0, 1.0)
        row, column = self.methods.index(a), self.methods.index(b)
        pvalues = self.adjusted if holm else self.pvalues
        return int(self.winners[row, column]) if pvalues[row, column] < alpha else 0


def pairwise_mcnemar(
    comparison: Comparison | Mapping[str, Any], *, mid_p: bool = False
) -> PairwiseTests:
    """McNemar's test of all pairs of methods, plain and with Holm's correction.

    Parameters
    ----------
    comparison : Comparison or mapping of str to array-like of bool, shape (m,)
        Results on the same rows.
    mid_p : bool, default=False
        See :func:`mcnemar`.

    Examples
    --------
    >>> tests = pairwise_mcnemar({"a": [1] * 8, "b": [0] * 8, "c": [1] * 8})
    >>> print(tests.pvalues[0])
    [1.        0.0078125 1.       ]
    >>> tests.verdict("b", "a", holm=True)
    -1
    """
    correct = correct_by_method(comparison)
    methods = tuple(correct)
    pairs = list(combinations(range(len(methods)), 2))
    found = [mcnemar(correct[methods[i]], correct[methods[j]], mid_p=mid_p) for i, j in pairs]
    corrected = holm([test.pvalue for test in found])
    pvalues, adjusted = np.ones((2, len(methods), len(methods)))
    winners = np.zeros((len(methods), len(methods)), dtype=int)
    for (i, j), test, after in zip(pairs, found, corrected, strict=True):
        pvalues[i, j] = pvalues[j, i] = test.pvalue
        adjusted[i, j] = adjusted[j, i] = after
        winners[i, j] = np.sign(test.n_only_a - test.n_only_b)
        winners[j, i] = -winners[i, j]
    return PairwiseTests(methods, pvalues, adjusted, winners)


@dataclass(frozen=True)
class ClassifierTests:
    """Every classifier against every metric.

    Attributes
    ----------
    classifiers, metrics : tuple of str
        Names, in the order of rows and of columns.
    adjusted : ndarray of shape (C, M)
        McNemar's p-values after Holm's correction for C M tests.
    winners : ndarray of int, shape (C, M)
        1 where the classifier is right more often, -1 where the metric is.
    """

    classifiers: tuple[str, ...]
    metrics: tuple[str, ...]
    adjusted: np.ndarray
    winners: np.ndarray

    def verdicts(self, alpha: float = 0.05) -> np.ndarray:
        """Return 1 where a classifier is significantly better, -1 where a metric is, else 0."""
        return np.where(self.adjusted < check_between("alpha", alpha, 0.0, 1.0), self.winners, 0)

    def above_all(self, alpha: float = 0.05) -> list[str]:
        """Return the classifiers that are significantly better than every metric."""
        found = zip(self.classifiers, self.verdicts(alpha), strict=True)
        return [name for name, verdicts in found if (verdicts > 0).all()]


def classifier_tests(comparison: Comparison) -> ClassifierTests:
    """McNemar's test of every classifier of a comparison against every metric.

    These are a family of their own for Holm's correction, so that the tests among metrics do not
    depend on which classifiers take part.

    Parameters
    ----------
    comparison : Comparison
        Metrics and classifiers on the same rows.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> wine = load_dataset("wine")
    >>> methods = {"Euclidean": None, "forest": RandomForestClassifier(random_state=0)}
    >>> tests = classifier_tests(compare(wine.data, wine.target, methods, n_folds=3))
    >>> tests.classifiers, tests.metrics, tests.above_all(0.001)
    (('forest',), ('Euclidean',), ['forest'])
    """
    _check_same_rows(comparison)
    rows, columns = comparison.classifiers, comparison.metrics
    found = [mcnemar(comparison.correct(a), comparison.correct(b)) for a in rows for b in columns]
    shape = len(rows), len(columns)
    return ClassifierTests(
        rows,
        columns,
        holm([test.pvalue for test in found]).reshape(shape),
        np.array([np.sign(t.n_only_a - t.n_only_b) for t in found], dtype=int).reshape(shape),
    )


def holm(pvalues: Any) -> np.ndarray:
    """Adjust the p-values of several tests by Holm's method.

    If you reject every hypothesis whose adjusted p-value is below alpha, the
    probability of one or more false rejections is at most alpha.

    Parameters
    ----------
    pvalues : array-like of shape (m,)
        P-values of m tests, dependent or not.

    Returns
    -------
    adjusted : ndarray of shape (m,)
        In the same order.

    Examples
    --------
    >>> print(holm([0.01, 0.04, 0.03]))
    [0.03 0.06 0.06]
    """
    pvalues = np.asarray(pvalues, dtype=float)
    if pvalues.ndim != 1 or not ((pvalues >= 0) & (pvalues <= 1)).all():
        raise ValueError("pvalues must be a one-dimensional array of numbers from 0 to 1")
    order = np.argsort(pvalues, kind="stable")
    scaled = pvalues[order] * np.arange(pvalues.size, 0, -1)
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def paper_scores(
    correct: Comparison | Mapping[str, Any], alpha: float = 0.05, *, mid_p: bool = False
) -> dict[str, float]:
    """Score methods as the paper does: 1 point for each win, 0.5 for each draw.

    McNemar's test at level alpha decides, without correction, as in the
    paper. The scores of N methods sum to N (N - 1) / 2.

    Parameters
    ----------
    correct : Comparison or mapping of str to array-like of bool, shape (m,)
        Results on the same rows.
    alpha : float, default=0.05
        Level of the tests.
    mid_p : bool, default=False
        See :func:`mcnemar`.

    Examples
    --------
    >>> paper_scores({"a": [1] * 8, "b": [0] * 8, "c": [1] * 8})
    {'a': 1.5, 'b': 0.0, 'c': 1.5}
    """
    return scores_of(pairwise_mcnemar(correct, mid_p=mid_p), alpha)


def scores_of(tests: PairwiseTests, alpha: float = 0.05) -> dict[str, float]:
    """Scores of :func:`paper_scores` from tests already made."""
    check_between("alpha", alpha, 0.0, 1.0)
    points = np.where(tests.pvalues < alpha, (1 + tests.winners) / 2, 0.5)
    np.fill_diagonal(points, 0.0)
    return dict(zip(tests.methods, points.sum(axis=1).tolist(), strict=True))


def best_methods(
    comparison: Comparison | Mapping[str, Any], alpha: float = 0.05
) -> tuple[str, ...]:
    """Return the methods that do not differ significantly from the most accurate one.

    If several methods are most accurate, it is enough not to differ from one of
    them. The tests are McNemar's, without correction, as for the bold numbers of
    the paper.

    Examples
    --------
    >>> best_methods({"a": [1] * 8, "b": [0] * 8, "c": [1] * 7 + [0]})
    ('a', 'c')
    """
    check_between("alpha", alpha, 0.0, 1.0)
    correct = correct_by_method(comparison)
    tests = pairwise_mcnemar(correct)
    n_right = {method: int(values.sum()) for method, values in correct.items()}
    leaders = [method for method in correct if n_right[method] == max(n_right.values())]
    return tuple(
        method
        for method in correct
        if any(tests.verdict(leader, method, alpha) == 0 for leader in leaders)
    )


def total_scores(scores: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sum the scores of each method over the data sets that it was run on.

    Examples
    --------
    >>> total_scores([{"a": 1.0, "b": 0.0}, {"a": 0.5, "b": 0.5}])
    {'a': 1.5, 'b': 0.5}
    """
    totals: dict[str, float] = {}
    for of_one in scores:
        for method, score in of_one.items():
            totals[method] = totals.get(method, 0.0) + score
    return totals


def accuracy_interval(correct: Any, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of an accuracy.

    Parameters
    ----------
    correct : array-like of bool, shape (m,)
        Whether each row was classified correctly.
    confidence : float, default=0.95
        Confidence level of the interval.

    Examples
    --------
    >>> low, high = accuracy_interval([True] * 8 + [False] * 2)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.490 to 0.943
    """
    right = _as_correct("correct", correct)
    check_between("confidence", confidence, 0.0, 1.0)
    interval = stats.binomtest(int(right.sum()), right.size).proportion_ci(confidence, "wilson")
    return float(interval.low), float(interval.high)
