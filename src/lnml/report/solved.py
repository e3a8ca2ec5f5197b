"""How well the fits were solved, in words, and what they chose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from numbers import Real
from typing import Any

from lnml.evaluation.groups import BASELINES
from lnml.evaluation.results import Comparison

NOTHING = "Nothing is proved: no bound of its objective is known"
WHOLE = (
    "Nothing is proved beyond that the objective cannot be negative: that is what a gap of 100 % "
    "says"
)


@dataclass(frozen=True)
class Solved:
    """What the fits of one method prove, chose and left unfinished, as text."""

    method: str
    proof: str
    gap: str
    gap_value: float | None
    unfinished: str
    n_unfinished: int
    chosen: str
    reasons: list[str]


def solved_fits(comparison: Comparison) -> list[Solved]:
    """Return what the fits of every learned method prove and chose."""
    methods = (*comparison.metrics, *comparison.classifiers)
    return [_solved(comparison, method) for method in methods if method not in BASELINES]


def unfinished_fits(comparison: Comparison) -> list[str]:
    """Sentences about the fits that did not meet their stopping rule."""
    return [
        f"{comparison.n_unfinished(method)} of {len(comparison.of(method))} fits of {method} did "
        f"not meet their stopping rule; their accuracy counts as it is."
        for method in comparison.methods
        if comparison.n_unfinished(method)
    ]


def proof_in_words(gap: float | None) -> str:
    """Say what a relative duality gap proves; the share is rounded up, never down.

    Examples
    --------
    >>> proof_in_words(0.000981)
    'No metric of this kind is better by more than 0.099 % on the rows it was learned from'
    >>> proof_in_words(None) == NOTHING
    True
    """
    if gap is None:
        return NOTHING
    if gap >= 1:
        return WHOLE
    return (
        f"No metric of this kind is better by more than {_percent_up(gap)} % on the rows it "
        f"was learned from"
    )


def _percent_up(share: float) -> str:
    """Return a share in % with two significant digits, or three above 10 %, not below it."""
    percent = 100 * Decimal(repr(float(share)))
    rounded = Context(prec=3 if percent > 10 else 2, rounding=ROUND_CEILING).plus(percent)
    return f"{max(rounded, Decimal('0.000001')).normalize():f}"


def _solved(comparison: Comparison, method: str) -> Solved:
    parts = comparison.of(method)
    gaps = [part.gap for part in parts if part.gap is not None]
    gap = max(gaps, default=None)
    chosen = Counter(_words(part.chosen) for part in parts)
    # One fold speaks for all that made the same choice.
    reasons = {_words(part.chosen): part for part in reversed(parts) if part.reason}
    unfinished = comparison.n_unfinished(method)
    reference = method in comparison.classifiers
    return Solved(
        method=method,
        proof="" if reference else proof_in_words(gap),
        gap="–" if gap is None else f"{_percent_up(gap)} %",
        gap_value=gap,
        unfinished=f"{unfinished} of {len(parts)}" if unfinished else "–",
        n_unfinished=unfinished,
        chosen="; ".join(f"{what} ({times}×)" for what, times in chosen.most_common() if what),
        reasons=[f"{method}, fold {p.fold}: {p.reason}." for p in reversed(reasons.values())],
    )


def _words(chosen: Mapping[str, Any]) -> str:
    """Return what a method chose as text."""
    return ", ".join(f"{k} {v:g}" if isinstance(v, Real) else str(v) for k, v in chosen.items())
