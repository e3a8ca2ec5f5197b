"""What to run next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
    judging: Mapping[str, str] | None = None,
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
    judging : dict of str to str, optional
        How methods were judged: options of ``compare`` with their values, such as ``--folds``.
    stem : str, default="best"
        How names of files begin that the command is to write.
    alpha : float, default=0.05
        Level of the tests.
    """
    scaling = [] if scale == "none" else ["--scale", scale]
    judging = judging or {}
    judged = [word for pair in judging.items() for word in pair]
    if majority(comparison, alpha).beaten_by == ():
        weak = "No metric is significantly better than always answering the largest class."
        again = [*table, *scaling, *_named(methods), *judged]
        if not comparison.classifiers:
            return _compare(
                f"{weak} See whether any classifier is:",
                [*again, "--references", "-o", f"{stem}-references.html"],
            )
        if "--k" not in judging:
            return _compare(
                f"{weak} See whether more neighbours that vote help:",
                [*again, "--k", "auto", "-o", f"{stem}-votes.html"],
            )
    unbeaten = _unbeaten(comparison, alpha)
    if unbeaten == SCALED and scale == "none" and comparison.accuracy(SCALED) < 1:
        # On standardised columns both baselines are the same.
        named = _named(methods, without=_key(SCALED))
        return _compare(
            "Standardising the columns does as well as learning. See whether learning adds "
            "anything on standardised columns:",
            [*table, "--scale", "standard", *named, *judged, "-o", f"{stem}-standard.html"],
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


def _named(methods: str | None, without: str = "") -> list[str]:
    """Return the option that names methods again, but for one; plain distance takes its place."""
    if methods is None:
        return []
    keys = [key.strip() for key in methods.split(",")]
    kept = dict.fromkeys(_key(PLAIN) if key == without else key for key in keys)
    return ["--methods", ",".join(kept)]


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
