"""Which methods tie, which one stands for the best, and whether any beats the largest class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnml.core.checks import check_between
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import PairwiseTests, holm, mcnemar, pairwise_mcnemar

# Metrics that are not learned, and how sentences call them.
BASELINES = {
    "Euclidean": "plain Euclidean distance",
    "Euclidean (scaled)": "Euclidean distance on standardised columns",
}


def tied_groups(
    comparison: Comparison, alpha: float = 0.05, *, tests: PairwiseTests | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the metrics from the most accurate down, in groups that tie with their first one.

    The most accurate metric leads the first group. All metrics belong to it that McNemar's test,
    with Holm's correction for all pairs, cannot tell from the leader. Of the others, the most
    accurate leads the next group, and so on.

    Parameters
    ----------
    comparison : Comparison
        Metrics on the same rows. Classifiers take no part.
    alpha : float, default=0.05
        Level of the tests.
    tests : PairwiseTests, optional
        The tests of all pairs, if they are known.

    Returns
    -------
    groups : tuple of tuple of str

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.evaluation import Comparison, DataSummary, FoldResult, tied_groups
    >>> rows = np.arange(40)
    >>> right = {"Euclidean": rows < 20, "LMNN": rows < 38, "NCA": rows < 39}
    >>> results = tuple(FoldResult(name, 0, rows, correct) for name, correct in right.items())
    >>> tied_groups(Comparison(DataSummary("toy", 2, {"x": 40}), results))
    (('NCA', 'LMNN'), ('Euclidean',))
    """
    check_between("alpha", alpha, 0.0, 1.0)
    tests = pairwise_mcnemar(comparison) if tests is None else tests
    left = by_accuracy(comparison, comparison.metrics)
    groups = []
    while left:
        leader = left[0]
        tied = [m for m in left if tests.verdict(leader, m, alpha, holm=True) == 0]
        groups.append(tuple(tied))
        left = [method for method in left if method not in tied]
    return tuple(groups)


def by_accuracy(comparison: Comparison, methods: tuple[str, ...]) -> list[str]:
    """Return methods from the most accurate down; equals stay in their order."""
    return sorted(methods, key=lambda method: -comparison.accuracy(method))


def learned_metrics(comparison: Comparison) -> list[str]:
    """Return the metrics that are learned, from the most accurate down."""
    return [m for m in by_accuracy(comparison, comparison.metrics) if m not in BASELINES]


def best_metric(comparison: Comparison) -> str:
    """Return the most accurate learned metric; if none is learned, the most accurate metric.

    Of equally accurate ones it is the first that was compared, so that it does not depend on
    times, which vary.
    """
    return (learned_metrics(comparison) or by_accuracy(comparison, comparison.metrics))[0]


@dataclass(frozen=True)
class Majority:
    """What always answering the largest class would achieve.

    Attributes
    ----------
    label : str
        The largest class.
    accuracy : float
        Share of the test rows that have it.
    beaten_by : tuple of str or None
        Metrics that are significantly better: McNemar's test with Holm's correction for all
        metrics. None if the classes of the rows are not known, as in results of older versions.
    """

    label: str
    accuracy: float
    beaten_by: tuple[str, ...] | None


def majority(comparison: Comparison, alpha: float = 0.05) -> Majority:
    """Compare all metrics with always answering the largest class."""
    sizes = comparison.data.class_sizes
    label = max(sizes, key=lambda name: sizes[name])
    if not comparison.data.truth:
        return Majority(label, sizes[label] / comparison.data.n_rows, None)
    rows = comparison.tested(comparison.metrics[0])
    constant = np.array(comparison.data.truth)[rows] == list(sizes).index(label)
    tests = [mcnemar(comparison.correct(method), constant) for method in comparison.metrics]
    pvalues = holm([test.pvalue for test in tests])
    beaten_by = tuple(
        method
        for method, test, pvalue in zip(comparison.metrics, tests, pvalues, strict=True)
        if pvalue < alpha and test.n_only_a > test.n_only_b
    )
    return Majority(label, float(constant.mean()), beaten_by)
