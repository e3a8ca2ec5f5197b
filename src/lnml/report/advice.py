"""What to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from lnml.evaluation.groups import BASELINES, best_metric, learned_metrics, majority
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import pairwise_mcnemar
from lnml.registry import find_method, method_names

PLAIN, SCALED = BASELINES


@dataclass(frozen=True)
class Advice:
    """A command to run next, and why."""

    why: str
    command: str


def advise(
    comparison: Comparison,
    table: Sequence[str],
    *,
    scale: str = "none",
    methods: str | None = None,
    stem: str = "best",
    alpha: float = 0.05,
) -> Advice:
    """Recommend one command to run after a comparison.

    Parameters
    ----------
    comparison : Comparison
        What was found; methods have the names of the registry.
    table : sequence of str
        Name of the table, and the options about its columns, but for ``--scale``.
    scale : str, default="none"
        How columns were scaled for all methods.
    methods : str, optional
        What ``--methods`` named, if anything.
    stem : str, default="best"
        How names of files begin that the command is to write.
    alpha : float, default=0.05
        Level of the tests.
    """
    scaling = [] if scale == "none" else ["--scale", scale]
    named = [] if methods is None else ["--methods", methods]
    base = majority(comparison, alpha)
    if base.beaten_by == () and not comparison.classifiers:
        return _compare(
            "No metric beats the largest class. See whether any classifier can:",
            [*table, *scaling, *named, "--references", "-o", f"{stem}-references.html"],
        )
    unbeaten = _unbeaten(comparison, alpha)
    if unbeaten == SCALED and scale == "none":
        return _compare(
            "Standardising the columns does as well as learning. See whether learning adds "
            "anything on standardised columns:",
            [*table, "--scale", "standard", *named, "-o", f"{stem}-standard.html"],
        )
    if unbeaten is not None:
        why = f"No learned metric is significantly better, so keep {BASELINES[unbeaten]}:"
        chosen = unbeaten
    else:
        chosen = best_metric(comparison)
        why = f"Fit {chosen}, the most accurate metric, to all rows, and keep it:"
    key = _key(chosen)
    # A method that brings its own scale needs no other.
    scaling = scaling if find_method(key).scale is None else []
    return Advice(
        why, shlex.join(["lnml", "fit", *table, *scaling, "--method", key, "-o", f"{stem}.model"])
    )


def _compare(why: str, arguments: Sequence[str]) -> Advice:
    return Advice(why, shlex.join(["lnml", "compare", *arguments]))


def _unbeaten(comparison: Comparison, alpha: float) -> str | None:
    """Return the most accurate metric without learning that no learned one beats, if any."""
    learned, tests = learned_metrics(comparison), pairwise_mcnemar(comparison)
    found = [
        base
        for base in (SCALED, PLAIN)
        if base in comparison.metrics
        and not any(tests.verdict(method, base, alpha, holm=True) > 0 for method in learned)
    ]
    return max(found, key=comparison.accuracy) if learned and found else None


def _key(name: str) -> str:
    """Return what a method is called on the command line."""
    return next(key for key in method_names() if find_method(key).name == name)
