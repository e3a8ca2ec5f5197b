"""What results mean, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lnml.evaluation.ranks import CriticalDifference, critical_difference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import (
    PairwiseTests,
    classifier_tests,
    pairwise_mcnemar,
    paper_scores,
    total_scores,
)

# Metrics that are not learned, and how sentences call them.
BASELINES = {
    "Euclidean": "Euclidean distance",
    "Euclidean (scaled)": "Euclidean distance on standardised columns",
}
# Fewer data sets than this say too little about ranks to draw them.
LEAST_DATASETS = 3
LEAST_METHODS = 3


def format_pvalue(pvalue: float) -> str:
    """Return a p-value with three digits, or say that it is smaller.

    Examples
    --------
    >>> format_pvalue(0.04), format_pvalue(2e-9)
    ('= 0.040', '< 0.001')
    """
    return "< 0.001" if pvalue < 0.001 else f"= {pvalue:.3f}"


def join_words(words: Sequence[str]) -> str:
    """Join words by commas and a final "and"; by semicolons if the words have commas.

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    >>> join_words(["a", "b, wide", "c"])
    'a; b, wide; and c'
    """
    if len(words) > 2 and any("," in word for word in words):
        return "; ".join([*words[:-1], f"and {words[-1]}"])
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def verdict_on_data(comparison: Comparison, alpha: float = 0.05) -> str:
    """Say which metric is best on a data set, by how much, and whether that is significant.

    More sentences say if no learned metric is significantly better than one that is not learned,
    and if a classifier that is no distance is significantly better than every metric.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    alpha : float, default=0.05
        Level of McNemar's tests, with Holm's correction for all pairs of metrics, and for all
        pairs of a classifier and a metric.
    """
    return " ".join(
        filter(
            None,
            [
                _about_the_best(comparison, alpha),
                _about_learning(comparison, alpha),
                _about_classifiers(comparison, alpha),
            ],
        )
    )


def _accuracies(comparison: Comparison) -> dict[str, float]:
    """Accuracy of every metric in percent."""
    return {method: 100 * comparison.accuracy(method) for method in comparison.metrics}


def _leaders(accuracies: dict[str, float]) -> list[str]:
    top = max(accuracies.values())
    return [method for method, accuracy in accuracies.items() if accuracy == top]


def _learned(comparison: Comparison) -> list[str]:
    return [method for method in comparison.metrics if method not in BASELINES]


def _about_the_best(comparison: Comparison, alpha: float) -> str:
    name, methods = comparison.data.name, comparison.metrics
    n_rows = comparison.correct(methods[0]).size
    accuracies = _accuracies(comparison)
    leaders = _leaders(accuracies)
    top = accuracies[leaders[0]]
    if len(methods) == 1:
        return f"{methods[0]} is right on {top:.1f} % of {n_rows} rows of {name}."
    others = sorted((m for m in methods if m not in leaders), key=lambda m: -accuracies[m])
    if not others:
        return f"All methods are right on {top:.1f} % of {n_rows} rows of {name}: none is better."
    learned = _learned(comparison)
    unlearned = [BASELINES[leader] for leader in leaders if leader in BASELINES]
    start = f"{join_words(leaders)} {'is' if len(leaders) == 1 else 'are equally'} best on {name}"
    who = ""
    if unlearned and learned:
        start = f"On {name} no learned metric is more accurate than {unlearned[0]}"
        who = "" if len(leaders) == 1 else f" by {join_words(leaders)}"
    # The next one, those without learning, and, if one of these leads, the best of the learned.
    worth = {others[0], *BASELINES}
    if learned and len(unlearned) == len(leaders):
        worth.add(next(m for m in others if m in learned))
    tests = pairwise_mcnemar(comparison)
    margins = [_margin(tests, accuracies, leaders[0], m, alpha) for m in others if m in worth]
    return f"{start}: {top:.1f} % of {n_rows} rows right{who}, {_listed(margins)}."


def _listed(margins: Sequence[str]) -> str:
    """Join phrases that have commas inside their parentheses only."""
    return " and ".join(filter(None, [", ".join(margins[:-1]), margins[-1]]))


def _about_learning(comparison: Comparison, alpha: float) -> str:
    """Say if a metric is learned in vain; empty if not, or if the first sentence says it."""
    learned = _learned(comparison)
    if not learned or set(_leaders(_accuracies(comparison))) & set(BASELINES):
        return ""
    tests = pairwise_mcnemar(comparison)
    unbeaten = [
        base
        for base in BASELINES
        if base in comparison.metrics
        and not any(tests.verdict(method, base, alpha, holm=True) > 0 for method in learned)
    ]
    if not unbeaten:
        return ""
    if len(unbeaten) == len(BASELINES):
        what = "Euclidean distance, with or without standardised columns"
    else:
        what = BASELINES[unbeaten[0]]
    return f"No learned metric is significantly better than {what}."


def _about_classifiers(comparison: Comparison, alpha: float) -> str:
    if not comparison.classifiers:
        return ""
    above = classifier_tests(comparison).above_all(alpha)
    if not above:
        return ""
    shown = [f"{name} with {100 * comparison.accuracy(name):.1f} %" for name in above]
    one = len(above) == 1
    return (
        f"For reference: {join_words(shown)} {'is' if one else 'are'} significantly better than "
        f"every metric, but {'gives' if one else 'give'} no distance."
    )


def _margin(
    tests: PairwiseTests, accuracies: dict[str, float], best: str, other: str, alpha: float
) -> str:
    pvalue = tests.adjusted[tests.methods.index(best), tests.methods.index(other)]
    real = "significant" if tests.verdict(best, other, alpha, holm=True) else "not significant"
    return (
        f"{accuracies[best] - accuracies[other]:.1f} points more than {other} "
        f"({real}, p {format_pvalue(pvalue)})"
    )


def ranks_over(comparisons: Sequence[Comparison], alpha: float = 0.05) -> CriticalDifference | str:
    """Rank the methods that were run on all data sets, or say why they cannot be ranked.

    Returns
    -------
    ranks : CriticalDifference or str
    """
    if len(comparisons) < LEAST_DATASETS:
        return (
            f"Average ranks and their critical difference need at least {LEAST_DATASETS} data "
            f"sets; there {'is' if len(comparisons) == 1 else 'are'} {len(comparisons)}."
        )
    shared = [
        method
        for method in comparisons[0].metrics
        if all(method in found.metrics for found in comparisons)
    ]
    if len(shared) < LEAST_METHODS:
        return (
            f"Average ranks and their critical difference need at least {LEAST_METHODS} methods "
            f"that were run on all data sets; there {'is' if len(shared) == 1 else 'are'} "
            f"{len(shared)}."
        )
    accuracies = np.array([[found.accuracy(m) for m in shared] for found in comparisons])
    return critical_difference(accuracies, shared, alpha)


def verdict_on_several(
    comparisons: Sequence[Comparison], ranks: CriticalDifference | str, alpha: float = 0.05
) -> str:
    """Say which method has the best total score, and what the average ranks add to that.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each data set.
    ranks : CriticalDifference or str
        From :func:`ranks_over`.
    alpha : float, default=0.05
        Level of McNemar's tests.
    """
    scores = [paper_scores(found, alpha) for found in comparisons]
    totals = total_scores(scores)
    top = max(totals.values())
    leaders = [method for method, total in totals.items() if total == top]
    possible = {m: sum(len(score) - 1 for score in scores if m in score) for m in leaders}
    text = (
        f"{join_words(leaders)} {'has' if len(leaders) == 1 else 'share'} the best total score "
        f"over {len(comparisons)} data sets, {top:.1f} of {possible[leaders[0]]} points"
    )
    behind = sorted((m for m in totals if m not in leaders), key=lambda m: -totals[m])
    if behind:
        text += f", before {behind[0]} with {totals[behind[0]]:.1f}"
    if isinstance(ranks, CriticalDifference):
        text += "; " + _about_ranks(ranks)
    return text + "."


def _about_ranks(ranks: CriticalDifference) -> str:
    """Say what the average ranks mean for the method that leads them."""
    leader = ranks.methods[0]
    pvalue = format_pvalue(ranks.friedman_pvalue)
    if ranks.friedman_pvalue >= ranks.alpha:
        return f"the average ranks do not differ significantly (Friedman test, p {pvalue})"
    beaten = [m for m, p in zip(ranks.methods, ranks.pvalues[0], strict=True) if p < ranks.alpha]
    lead = f"the average rank of {leader}, {ranks.ranks[0]:.2f}, is"
    if not beaten:
        return f"{lead} best, but not significantly better than that of any other (Nemenyi test)"
    return f"{lead} significantly better than that of {join_words(beaten)} (Nemenyi test)"
