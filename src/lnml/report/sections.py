"""What the page says about one data set, and about data sets that share a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lnml.evaluation.explanation import Explanation
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import (
    ClassifierTests,
    PairwiseTests,
    classifier_tests,
    pairwise_mcnemar,
)
from lnml.report import pictures
from lnml.report.errors import Errors, errors_of_best
from lnml.report.leaderboard import Leaderboard, leaderboard
from lnml.report.pictures import Picture
from lnml.report.retrieval import ScoreTable, score_table
from lnml.report.solved import Solved, solved_fits, unfinished_fits
from lnml.report.verdict import Verdict, ranks_over, verdict_on_data, verdict_on_several


@dataclass(frozen=True)
class Section:
    """Everything about one data set."""

    anchor: str
    comparison: Comparison
    portrait: Portrait | None
    explanation: Explanation | None
    verdict: Verdict
    board: Leaderboard
    retrieval: ScoreTable | None
    tests: PairwiseTests
    classifiers: ClassifierTests
    errors: Errors | None
    solved: list[Solved]
    unfinished: list[str]
    weights: list[Picture]
    convergence: list[Picture]
    views: list[Picture]
    counts: Picture | None

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Anchors and titles of the parts that are there."""
        parts = {
            "board": ("Leaderboard", True),
            "found": (self.retrieval.title if self.retrieval else "", self.retrieval),
            "tests": ("Is the difference real?", len(self.tests.methods) > 1),
            "learned": ("What the metric learned", self.explanation or self.views),
            "errors": ("Where it errs", self.errors or self.hard_or_suspicious),
            "solved": ("How well it was solved", self.solved or self.convergence),
        }
        return [(f"{self.anchor}-{key}", title) for key, (title, there) in parts.items() if there]

    @property
    def hard_or_suspicious(self) -> bool:
        """Whether there are rows to look at."""
        hard = self.explanation.hard if self.explanation else ()
        suspects = self.portrait.suspects if self.portrait else ()
        return bool(hard or suspects)


@dataclass(frozen=True)
class Group:
    """Data sets whose methods are compared in one table."""

    title: str
    verdict: Verdict
    table: Markup
    accuracies: list[Picture]
    ranks: Picture | str
    sections: list[Section]


def make_group(
    title: str,
    name: str,
    comparisons: Sequence[Comparison],
    table: Markup,
    portraits: Mapping[str, Portrait],
    compared: Mapping[str, tuple[str, ...]],
    alpha: float,
) -> Group:
    """Collect what the page says about data sets that share a table."""
    ranks = ranks_over(comparisons, alpha)
    several = len(comparisons) > 1
    sections = [
        _section(found, portraits.get(found.data.name), f"data-{name}-{number}", compared, alpha)
        for number, found in enumerate(comparisons)
    ]
    return Group(
        title=title,
        verdict=Verdict(verdict_on_several(comparisons, ranks, alpha))
        if several
        else sections[0].verdict,
        table=table,
        accuracies=[
            pictures.leaderboard_picture(found, f"accuracy-{name}-{number}", alpha)
            for number, found in enumerate(comparisons)
            if several
        ],
        ranks=pictures.ranks_picture(ranks, f"ranks-{name}")
        if isinstance(ranks, CriticalDifference)
        else ranks,
        sections=sections,
    )


def _section(
    comparison: Comparison,
    portrait: Portrait | None,
    anchor: str,
    compared: Mapping[str, tuple[str, ...]],
    alpha: float,
) -> Section:
    tests = pairwise_mcnemar(comparison)
    explanation = portrait.explanation if portrait else None
    return Section(
        anchor=anchor,
        comparison=comparison,
        portrait=portrait,
        explanation=explanation,
        verdict=verdict_on_data(comparison, alpha),
        board=leaderboard(comparison, tests, compared, alpha),
        retrieval=score_table(comparison),
        tests=tests,
        classifiers=classifier_tests(comparison),
        errors=errors_of_best(comparison),
        solved=solved_fits(comparison),
        unfinished=unfinished_fits(comparison),
        weights=_weights(explanation, anchor) if explanation else [],
        convergence=pictures.convergence_pictures(portrait, f"time-{anchor}") if portrait else [],
        views=pictures.embedding_pictures(portrait, f"view-{anchor}") if portrait else [],
        counts=pictures.counts_picture(portrait, f"counts-{anchor}") if portrait else None,
    )


def _weights(explanation: Explanation, anchor: str) -> list[Picture]:
    """Return the pictures of columns and of pairs of them."""
    weights = explanation.weights
    found = [
        pictures.weights_picture(weights, explanation.method, f"weights-{anchor}"),
        pictures.pairs_picture(weights, f"pairs-{anchor}"),
    ]
    return [picture for picture in found if picture is not None]
