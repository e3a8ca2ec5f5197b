"""One HTML file that says which method is best, with the evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lnml.core.text import format_megabytes, format_seconds, visible
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison, Provenance
from lnml.evaluation.statistics import (
    ClassifierTests,
    PairwiseTests,
    classifier_tests,
    pairwise_mcnemar,
)
from lnml.files import atomic_output
from lnml.report import pictures
from lnml.report.layout import COMPARED, Cell, accuracy_table
from lnml.report.pictures import Picture
from lnml.report.retrieval import ScoreTable, score_table
from lnml.report.verdict import (
    format_pvalue,
    ranks_over,
    verdict_on_data,
    verdict_on_several,
)

Reference = Mapping[str, Mapping[str, float | Cell]]


@dataclass(frozen=True)
class Cost:
    """What the fits of a method took, as text."""

    method: str
    classifier: bool
    k: str
    seconds: str
    memory: str
    gap: str
    unfinished: str
    chosen: str
    reasons: list[str]


@dataclass(frozen=True)
class Section:
    """Everything about one data set."""

    anchor: str
    comparison: Comparison
    portrait: Portrait | None
    verdict: str
    retrieval: ScoreTable | None
    tests: PairwiseTests
    classifiers: ClassifierTests
    costs: list[Cost]
    unfinished: list[str]
    convergence: list[Picture]
    views: list[Picture]
    counts: Picture | None


@dataclass(frozen=True)
class Group:
    """Data sets whose methods are compared in one table."""

    title: str
    verdict: str
    table: Markup
    accuracies: list[Picture]
    ranks: Picture | str
    sections: list[Section]


def write_report(
    path: str | Path,
    comparisons: Sequence[Comparison] | Mapping[str, Sequence[Comparison]],
    *,
    portraits: Mapping[str, Portrait],
    provenance: Provenance,
    reference: Reference | None = None,
    reference_name: str = "paper",
    absent: Mapping[str, Mapping[str, str]] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    compared: Mapping[str, tuple[str, ...]] = COMPARED,
    alpha: float = 0.05,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    replace: bool = True,
) -> None:
    """Write results as one HTML file that needs nothing else.

    The file appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        Where to write.
    comparisons : sequence of Comparison, or dict of str to sequence of Comparison
        One for each data set; a dict makes a table for each of its groups.
    portraits : dict of str to Portrait
        One fit for the pictures, by name of the data set; some may be missing.
    provenance : Provenance
        How the results were made.
    reference : dict of str to dict of str to float or Cell, optional
        Results of others in percent, by data set and method.
    reference_name : str, default="paper"
        What to call them.
    absent : dict of str to dict of str to str, optional
        Data sets without results of our own, and why, by title of a group
        (the title is empty if there is only one).
    columns : dict of str to sequence of str, optional
        The methods of a group in order, by its title. Other methods are left out
        of scores, tests and pictures. By default all, in order of appearance.
    compared : dict of str to tuple of str
        Which methods the signs beside an accuracy are about.
    alpha : float, default=0.05
        Level of all tests.
    notes : sequence of str
        Sentences for the end of the page.
    warnings : sequence of str
        Sentences for its beginning, beside the verdict.
    replace : bool, default=True
        Whether an older file is replaced, or this one refused.
    """
    groups = comparisons if isinstance(comparisons, Mapping) else {"": comparisons}
    groups = {title: list(found) for title, found in groups.items() if found}
    if not groups:
        raise ValueError("a report needs at least one comparison")
    shown = []
    for number, (title, found) in enumerate(groups.items()):
        methods = (columns or {}).get(title)
        if methods is not None:
            found = [_only(comparison, methods) for comparison in found]
        table = accuracy_table(
            found,
            methods=methods,
            compared=compared,
            reference=reference,
            reference_name=reference_name,
            absent=(absent or {}).get(title),
            alpha=alpha,
        )
        markup = Markup(table.to_html())
        shown.append(_group(title, str(number), found, markup, portraits, alpha))
    page = (
        _environment()
        .get_template("page.html")
        .render(
            groups=shown,
            sections=[section for group in shown for section in group.sections],
            provenance=provenance,
            alpha=alpha,
            notes=list(notes),
            warnings=list(warnings),
        )
    )
    with atomic_output(path, replace=replace) as temporary:
        temporary.write_text(visible(page, lines=True), encoding="utf-8")


def _only(comparison: Comparison, methods: Sequence[str]) -> Comparison:
    """Return the results of some methods, in their order."""
    return Comparison(
        comparison.data,
        tuple(
            part for name in methods if name in comparison.methods for part in comparison.of(name)
        ),
    )


def _group(
    title: str,
    name: str,
    comparisons: Sequence[Comparison],
    table: Markup,
    portraits: Mapping[str, Portrait],
    alpha: float,
) -> Group:
    ranks = ranks_over(comparisons, alpha)
    several = len(comparisons) > 1
    return Group(
        title=title,
        verdict=verdict_on_several(comparisons, ranks, alpha)
        if several
        else verdict_on_data(comparisons[0], alpha),
        table=table,
        accuracies=[
            pictures.accuracy_picture(found, f"accuracy-{name}-{number}", alpha)
            for number, found in enumerate(comparisons)
        ],
        ranks=pictures.ranks_picture(ranks, f"ranks-{name}")
        if isinstance(ranks, CriticalDifference)
        else ranks,
        sections=[
            _section(found, portraits.get(found.data.name), f"{name}-{number}", alpha)
            for number, found in enumerate(comparisons)
        ],
    )


def _section(
    comparison: Comparison, portrait: Portrait | None, anchor: str, alpha: float
) -> Section:
    return Section(
        anchor=f"data-{anchor}",
        comparison=comparison,
        portrait=portrait,
        verdict=verdict_on_data(comparison, alpha),
        retrieval=score_table(comparison),
        tests=pairwise_mcnemar(comparison),
        classifiers=classifier_tests(comparison),
        costs=[
            _cost(comparison, method) for method in (*comparison.metrics, *comparison.classifiers)
        ],
        unfinished=unfinished_fits(comparison),
        convergence=pictures.convergence_pictures(portrait, f"time-{anchor}") if portrait else [],
        views=pictures.embedding_pictures(portrait, f"view-{anchor}") if portrait else [],
        counts=pictures.counts_picture(portrait, f"counts-{anchor}") if portrait else None,
    )


def unfinished_fits(comparison: Comparison) -> list[str]:
    """Sentences about the fits that did not meet their stopping rule."""
    return [
        f"{comparison.n_unfinished(method)} of {len(comparison.of(method))} fits of {method} did "
        f"not meet their stopping rule; their accuracy counts as it is."
        for method in comparison.methods
        if comparison.n_unfinished(method)
    ]


def votes_used(comparison: Comparison, method: str) -> str:
    """Say how many neighbours voted, and in how many folds if that differs."""
    used = Counter(part.k for part in comparison.of(method) if part.k is not None)
    if len(used) < 2:
        return "".join(map(str, used)) or "–"
    return ", ".join(f"{k} ({used[k]}×)" for k in sorted(used))


def _cost(comparison: Comparison, method: str) -> Cost:
    parts = comparison.of(method)
    memory = comparison.peak_mb(method)
    gaps = [part.gap for part in parts if part.gap is not None]
    chosen = Counter(_words(part.chosen) for part in parts)
    # One fold speaks for all that made the same choice.
    reasons = {_words(part.chosen): part for part in reversed(parts) if part.reason}
    unfinished = comparison.n_unfinished(method)
    return Cost(
        method=method,
        classifier=method in comparison.classifiers,
        k=votes_used(comparison, method),
        seconds=format_seconds(comparison.seconds(method)),
        memory=format_megabytes(memory),
        gap=f"{100 * max(gaps):.3g} %" if gaps else "–",
        unfinished=f"{unfinished} of {len(parts)}" if unfinished else "–",
        chosen="; ".join(f"{what} ({times}×)" for what, times in chosen.most_common() if what),
        reasons=[f"{method}, fold {p.fold}: {p.reason}." for p in reversed(reasons.values())],
    )


def _words(chosen: Mapping[str, Any]) -> str:
    """Return what a method chose as text."""
    return ", ".join(f"{k} {v:g}" if isinstance(v, Real) else str(v) for k, v in chosen.items())


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lnml.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        setting=_setting, short_pvalue=_short_pvalue, svg=_as_markup, unbroken=_unbroken
    )
    return environment


def _short_pvalue(pvalue: float) -> str:
    """Return a p-value for a table, without a sign of equality."""
    return format_pvalue(pvalue).removeprefix("= ")


def _setting(value: object) -> object:
    """Say a setting in words."""
    names: dict[object, str] = {True: "yes", False: "no", None: "none"}
    return names[value] if value is None or isinstance(value, bool) else value


def _unbroken(sentence: str) -> str:
    """Keep numbers and what belongs to them on one line."""
    return re.sub(r" (%|[<=] [\d.]+)", lambda found: found[0].replace(" ", "\u00a0"), sentence)


def _as_markup(picture: Picture) -> Markup:
    """Return the picture's own markup: its texts were escaped when it was drawn."""
    return Markup(picture.svg)
