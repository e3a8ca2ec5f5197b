"""What results mean, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lnml.evaluation.ranks import CriticalDifference, critical_difference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import PairwiseTests, pairwise_mcnemar, paper_scores, total_scores

BASELINE = "Euclidean"
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
    """Say which method is best on a data set, by how much, and whether that is significant.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    alpha : float, default=0.05
        Level of McNemar's tests, with Holm's correction for all pairs.
    """
    name, methods = comparison.data.name, comparison.methods
    n_rows = comparison.correct(methods[0]).size
    accuracies = {method: 100 * comparison.accuracy(method) for method in methods}
    top = max(accuracies.values())
    leaders = [method for method in methods if accuracies[method] == top]
    if len(methods) == 1:
        return f"{methods[0]} is right on {top:.1f} % of {n_rows} rows of {name}."
    others = sorted((m for m in methods if m not in leaders), key=lambda m: -accuracies[m])
    if not others:
        return f"All methods are right on {top:.1f} % of {n_rows} rows of {name}: none is better."
    tests = pairwise_mcnemar(comparison)
    margins = [_margin(tests, accuracies, leaders[0], others[0], alpha)]
    if BASELINE in others[1:]:
        margins.append(_margin(tests, accuracies, leaders[0], BASELINE, alpha))
    start = (
        f"{join_words(leaders)} {'is' if len(leaders) == 1 else 'are equally'} best on {name}"
        if BASELINE not in leaders
        else f"No learned metric is more accurate than the Euclidean one on {name}"
    )
    who = "" if BASELINE not in leaders or len(leaders) == 1 else f" by {join_words(leaders)}"
    return f"{start}: {top:.1f} % of {n_rows} rows right{who}, {' and '.join(margins)}."


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
        for method in comparisons[0].methods
        if all(method in found.methods for found in comparisons)
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
