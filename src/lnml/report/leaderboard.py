"""The methods of one data set, from the most accurate down, with all that a reader asks first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lnml.core.text import format_megabytes, format_seconds
from lnml.evaluation.groups import by_accuracy, majority, tied_groups
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import PairwiseTests, accuracy_interval

# The scale of accuracies begins at a multiple of this, in %.
STEP = 10.0


@dataclass(frozen=True)
class Standing:
    """One line; accuracies and interval are in %, ``signs`` are words about related methods."""

    method: str
    group: int
    starts_group: bool
    accuracy: float
    low: float
    high: float
    signs: str
    k: str
    seconds: float
    time: str
    megabytes: float | None
    memory: str


@dataclass(frozen=True)
class Leaderboard:
    """Metrics in groups that tie, references apart, and the scale of their accuracies.

    Attributes
    ----------
    metrics, references : list of Standing
        Sorted by accuracy. References belong to group 0: they are in no test with each other.
    start : float
        Where the scale begins, in %; it ends at 100.
    majority : float
        Accuracy of always answering the largest class, in %.
    """

    metrics: list[Standing]
    references: list[Standing]
    start: float
    majority: float

    def place(self, percent: float) -> str:
        """Return where a number is on the scale, as a length of CSS."""
        return f"{4 + 92 * (percent - self.start) / (100 - self.start):.2f}%"

    @property
    def signs(self) -> bool:
        """Whether any method is compared with a related one."""
        return any(line.signs for line in self.metrics)

    @property
    def n_groups(self) -> int:
        """How many groups of metrics there are."""
        return max((line.group for line in self.metrics), default=0)


def leaderboard(
    comparison: Comparison,
    tests: PairwiseTests,
    compared: Mapping[str, tuple[str, ...]],
    alpha: float,
) -> Leaderboard:
    """Sort and group the methods of a comparison.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    tests : PairwiseTests
        McNemar's tests of all pairs of metrics.
    compared : dict of str to tuple of str
        Which methods a method is related to.
    alpha : float
        Level of the tests.
    """

    def line(method: str, group: int, first: bool, signs: str) -> Standing:
        low, high = accuracy_interval(comparison.correct(method))
        seconds, megabytes = comparison.seconds(method), comparison.peak_mb(method)
        return Standing(
            method=method,
            group=group,
            starts_group=first,
            accuracy=100 * comparison.accuracy(method),
            low=100 * low,
            high=100 * high,
            signs=signs,
            k=votes_used(comparison, method),
            seconds=seconds,
            time=format_seconds(seconds),
            megabytes=megabytes,
            memory=format_megabytes(megabytes),
        )

    metrics = [
        line(method, number, place == 0, _signs(tests, method, compared.get(method, ()), alpha))
        for number, group in enumerate(tied_groups(comparison, alpha, tests=tests), 1)
        for place, method in enumerate(group)
    ]
    references = [line(m, 0, False, "") for m in by_accuracy(comparison, comparison.classifiers)]
    lowest = min(each.low for each in (*metrics, *references))
    start = min(90.0, STEP * (lowest // STEP))
    return Leaderboard(metrics, references, start, 100 * majority(comparison, alpha).accuracy)


def votes_used(comparison: Comparison, method: str) -> str:
    """Say how many neighbours voted, and in how many folds if that differs."""
    used = Counter(part.k for part in comparison.of(method) if part.k is not None)
    if len(used) < 2:
        return "".join(map(str, used)) or "–"
    return ", ".join(f"{k} ({used[k]}×)" for k in sorted(used))


def _signs(tests: PairwiseTests, method: str, others: tuple[str, ...], alpha: float) -> str:
    """Say how a method did against related ones, without correction, as the paper's signs do."""
    words = ("ties with", "beats", "loses to")
    return ", ".join(
        f"{words[tests.verdict(method, other, alpha)]} {other}"
        for other in others
        if other in tests.methods
    )
