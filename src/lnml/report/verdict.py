"""What results mean, in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lnml.core.text import shortened
from lnml.evaluation.groups import BASELINES, learned_metrics, majority, tied_groups
from lnml.evaluation.ranks import CriticalDifference, critical_difference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import (
    PairwiseTests,
    classifier_tests,
    pairwise_mcnemar,
    paper_scores,
    total_scores,
)

PLAIN, SCALED = BASELINES
WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# More methods than this are not named in a headline.
MOST_NAMED = 3
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


def in_words(number: int) -> str:
    """Return a number from 2 to 12 in words, and others in digits.

    Examples
    --------
    >>> in_words(7), in_words(40)
    ('seven', '40')
    """
    return WORDS[number - 2] if 2 <= number <= len(WORDS) + 1 else str(number)


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


@dataclass(frozen=True)
class Verdict:
    """What a comparison on one data set says.

    Attributes
    ----------
    headline : str
        Which methods are best, and which others they beat.
    details : tuple of str
        Further findings.
    warnings : tuple of str
        Reasons not to learn a metric, or not to trust any of them.
    """

    headline: str
    details: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, as running text."""
        return " ".join([self.headline, *self.details, *self.warnings])


def verdict_on_data(comparison: Comparison, alpha: float = 0.05) -> Verdict:
    """Say which metrics are best on a data set, which of them tie, and what that is worth.

    Warnings say if no learned metric is significantly better than one that is not learned, or
    than always answering the largest class.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    alpha : float, default=0.05
        Level of McNemar's tests. They have Holm's correction for all pairs of metrics, for all
        pairs of a classifier and a metric, and for all metrics against the largest class.
    """
    tests = pairwise_mcnemar(comparison)
    about_majority, beaten = _about_majority(comparison, alpha)
    headline, evidence = _about_the_best(comparison, tests, alpha)
    details = [
        *evidence,
        about_majority if beaten else "",
        _about_classifiers(comparison, alpha),
    ]
    warnings = [_about_learning(comparison, tests, alpha), "" if beaten else about_majority]
    return Verdict(headline, tuple(filter(None, details)), tuple(filter(None, warnings)))


def _percent(comparison: Comparison, method: str) -> str:
    return f"{100 * comparison.accuracy(method):.1f} %"


def _points(comparison: Comparison, better: str, worse: str) -> str:
    """Return the difference of two accuracies."""
    difference = 100 * (comparison.accuracy(better) - comparison.accuracy(worse))
    return f"{difference:.1f} point{'' if f'{difference:.1f}' == '1.0' else 's'}"


def _about_the_best(
    comparison: Comparison, tests: PairwiseTests, alpha: float
) -> tuple[str, list[str]]:
    """Return the headline, and the sentences with its evidence."""
    name, n_rows = comparison.data.name, comparison.tested(comparison.methods[0]).size
    first, *rest = tied_groups(comparison, alpha, tests=tests)
    others = [method for group in rest for method in group]
    top = _percent(comparison, first[0])
    if len(first) == 1 and not others:
        return f"{first[0]} is right on {top} of {n_rows:,} rows of {name}.", []
    if len(first) == 1:
        pvalue = tests.adjusted[tests.methods.index(first[0]), tests.methods.index(others[0])]
        evidence = (
            f"{top} of {n_rows:,} rows are right, {_points(comparison, first[0], others[0])} more "
            f"than with {others[0]} (p {format_pvalue(pvalue)})."
        )
        all_others = others[0] if len(others) == 1 else "every other method"
        return f"{first[0]} is best on {name}, significantly better than {all_others}.", [evidence]
    evidence = f"{_tied(comparison, first)}. {_about_the_tie(tests, first, alpha)}"
    count = in_words(len(first))
    if not others:
        who = "both" if len(first) == 2 else f"all {count}"
        return f"On {name} {who} methods tie.", [evidence]
    headline = f"On {name} {count} of {in_words(len(first) + len(others))} methods tie"
    by_all = [
        other
        for other in others
        if all(tests.verdict(method, other, alpha, holm=True) > 0 for method in first)
    ]
    if by_all == others and len(others) <= MOST_NAMED:
        shown = join_words(others)
        who = "both" if len(first) == 2 else f"all {count}"
        return f"{headline}; {who} are significantly better than {shown}.", [evidence]
    return f"{headline}.", [evidence, _about_others(comparison, first[0], others, by_all)]


def _tied(comparison: Comparison, group: Sequence[str]) -> str:
    """Name the leaders of a group, then the others, with accuracies."""
    top, n_rows = _percent(comparison, group[0]), comparison.tested(group[0]).size
    leaders = [m for m in group if comparison.accuracy(m) == comparison.accuracy(group[0])]
    behind = group[len(leaders) :]
    if not behind:
        return f"{join_words(leaders)} are right on {top} of {n_rows:,} rows"
    verb = "leads" if len(leaders) == 1 else "lead"
    shown = [f"{method} ({_percent(comparison, method)})" for method in behind]
    return (
        f"{join_words(leaders)} {verb} with {top} of {n_rows:,} rows right, and "
        f"{join_words(shown)} {'follows' if len(behind) == 1 else 'follow'}"
    )


def _about_the_tie(tests: PairwiseTests, group: Sequence[str], alpha: float) -> str:
    apart = any(tests.verdict(a, b, alpha, holm=True) for a in group for b in group)
    if apart:
        return "None of them differs significantly from the best."
    return "With Holm's correction, no test tells them apart."


def _about_others(
    comparison: Comparison, best: str, others: Sequence[str], by_all: Sequence[str]
) -> str:
    """Say whom a tied group beats; every other method is significantly worse than its first."""
    parts = []
    alone = [method for method in others if method not in by_all]
    for beaten, who in ((by_all, "All of them beat"), (alone, f"{best} beats")):
        if beaten:
            shown = [f"{method} ({_percent(comparison, method)})" for method in beaten]
            parts.append(f"{who} {join_words(shown)}")
    return f"{'; '.join(parts)}, significantly."


def _about_learning(comparison: Comparison, tests: PairwiseTests, alpha: float) -> str:
    """Say if a metric is learned in vain; empty if not."""
    learned = learned_metrics(comparison)
    bases = [base for base in BASELINES if base in comparison.metrics]
    unbeaten = [
        base
        for base in bases
        if not any(tests.verdict(method, base, alpha, holm=True) > 0 for method in learned)
    ]
    if not learned or not unbeaten:
        return ""
    if len(unbeaten) == len(BASELINES):
        return (
            "Learning does not pay here: no learned metric is significantly better than Euclidean "
            "distance, with or without standardised columns "
            f"({join_words([_percent(comparison, base) for base in unbeaten])})."
        )
    base = unbeaten[0]
    right = f"{BASELINES[base]} is right on {_percent(comparison, base)}"
    if base == SCALED and PLAIN in bases:
        return (
            f"Standardising the columns alone does as well: {right}, and no learned metric is "
            f"significantly better.{_gain_of_scaling(comparison, learned[0])}"
        )
    return f"Learning does not pay here: {right}, and no learned metric is significantly better."


def _gain_of_scaling(comparison: Comparison, best: str) -> str:
    """Say how much of the gain over plain Euclidean distance scaling alone brings, if any."""
    if comparison.accuracy(SCALED) <= comparison.accuracy(PLAIN):
        return ""
    return (
        f" {best} has {_points(comparison, best, PLAIN)} more than {BASELINES[PLAIN]}, and scaling "
        f"alone {_points(comparison, SCALED, PLAIN)} more."
    )


def _about_majority(comparison: Comparison, alpha: float) -> tuple[str, bool]:
    """Say what always answering the largest class achieves, and whether any metric beats it."""
    base = majority(comparison, alpha)
    sizes = list(comparison.data.class_sizes.values())
    which = "the largest class" if sizes.count(max(sizes)) == 1 else "one of the largest classes"
    text = (
        f"Always answering {shortened(base.label, 40)!r}, {which}, would be right on "
        f"{100 * base.accuracy:.1f} %"
    )
    metrics = comparison.metrics
    if base.beaten_by is None:
        above = [m for m in metrics if comparison.accuracy(m) > base.accuracy]
        return (f"{text}.", True) if above else (f"{text}: no metric is more accurate.", False)
    missing = [method for method in metrics if method not in base.beaten_by]
    if not base.beaten_by:
        return f"{text}: no metric is significantly better than that.", False
    if not missing:
        return f"{text}; every metric is significantly better.", True
    verb = "is" if len(missing) == 1 else "are"
    return f"{text}; {join_words(missing)} {verb} not significantly better.", True


def _about_classifiers(comparison: Comparison, alpha: float) -> str:
    if not comparison.classifiers:
        return ""
    above = classifier_tests(comparison).above_all(alpha)
    if not above:
        return ""
    shown = [f"{name} with {_percent(comparison, name)}" for name in above]
    one = len(above) == 1
    return (
        f"For reference: {join_words(shown)} {'is' if one else 'are'} significantly better than "
        f"every metric, but {'gives' if one else 'give'} no distance."
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
    possible = {m: sum(len(score) - 1 for score in scores if m in score) for m in totals}
    text = (
        f"{join_words(leaders)} {'has' if len(leaders) == 1 else 'share'} the best total score "
        f"over {len(comparisons)} data sets, {top:.1f} of {possible[leaders[0]]} points"
    )
    behind = sorted((m for m in totals if m not in leaders), key=lambda m: -totals[m])
    if behind:
        text += f", before {behind[0]} with {totals[behind[0]]:.1f}"
        if possible[behind[0]] != possible[leaders[0]]:
            text += f" of {possible[behind[0]]}"
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
