"""What the recommended estimator must reach, with the verdict of each bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generalisation_suite.methods import EUCLIDEAN, label
from generalisation_suite.summary import Table, duel, significance

LEAST_GAIN = 1.0
CLEARLY_BETTER_THAN = ("nca", "lmnn", "ln-lmnn-cv")
NOT_BELOW = "lmnn-rho"
FEW_ROWS = 500


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes
    ----------
    text : str
        What is required.
    measured : str
        What was found.
    passed : bool or None
        None if there is nothing to judge by.
    n_sets : int
        Data sets that the verdict is from.
    """

    text: str
    measured: str
    passed: bool | None
    n_sets: int

    def cells(self, expected: int) -> list[str]:
        """Cells of a line of the table; a verdict from some of the data sets says so."""
        if self.passed is None:
            return [self.text, self.measured, "not measured"]
        verdict = "pass" if self.passed else "FAIL"
        if self.n_sets < expected:
            verdict += f" so far ({self.n_sets} of {expected} sets)"
        return [self.text, self.measured, verdict]


def bars(
    table: Table,
    n_rows: Mapping[str, int],
    recommended: str,
    metrics: Sequence[str],
    seed: int,
) -> list[Bar]:
    """Judge the recommended estimator against the other metrics of a group.

    Parameters
    ----------
    table : dict
        Cells by data set and method.
    n_rows : mapping of str to int
        Rows of each data set that were used.
    recommended : str
        Key of the method that is judged.
    metrics : sequence of str
        Keys of all metrics, without the reference classifiers.
    seed : int
        Seed whose predictions are tested.
    """
    others = [key for key in metrics if key != recommended]
    return [
        *(
            _clearly_better(table, recommended, key)
            for key in CLEARLY_BETTER_THAN
            if key != recommended
        ),
        _not_below(table, recommended, NOT_BELOW),
        *(_more_wins(table, recommended, key) for key in others),
        _never_below_euclidean(table, n_rows, recommended, seed),
    ]


def _clearly_better(table: Table, recommended: str, other: str) -> Bar:
    text = f"mean at least {LEAST_GAIN:.1f} above {label(other)}"
    found = duel(table, recommended, other)
    if not found.differences:
        return Bar(text, "", None, 0)
    return Bar(text, f"{found.mean:+.2f}", found.mean >= LEAST_GAIN, len(found.differences))


def _not_below(table: Table, recommended: str, other: str) -> Bar:
    text = f"mean without the two largest gains not below {label(other)}"
    found = duel(table, recommended, other)
    if len(found.differences) < 3:
        return Bar(text, "", None, 0)
    rest = found.without_largest
    return Bar(text, f"{rest:+.2f}", rest >= 0, len(found.differences))


def _more_wins(table: Table, recommended: str, other: str) -> Bar:
    text = f"more wins than losses against {label(other)}"
    found = duel(table, recommended, other)
    if not found.differences:
        return Bar(text, "", None, 0)
    measured = f"{found.wins} to {found.losses}"
    return Bar(text, measured, found.wins > found.losses, len(found.differences))


def _never_below_euclidean(
    table: Table, n_rows: Mapping[str, int], recommended: str, seed: int
) -> Bar:
    text = f"on no set of {FEW_ROWS} rows or more significantly below scaled Euclidean"
    tests = significance(table, recommended, EUCLIDEAN, seed)
    if not tests:
        return Bar(text, "", None, 0)
    below = [t.name for t in tests if n_rows[t.name] >= FEW_ROWS and t.significantly_below()]
    return Bar(text, ", ".join(below) or "none", not below, len(tests))
