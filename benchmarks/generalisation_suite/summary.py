"""Numbers of the report, from stored results; accuracies are in per cent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import stats

from generalisation_suite.tasks import Result, Task, last_line, read
from lnml.evaluation.statistics import holm, mcnemar

# Mean accuracies that differ by no more are a tie.
TIE = 0.05
LARGEST_GAINS = 2


@dataclass
class Cell:
    """Results of one method on one data set.

    Attributes
    ----------
    results : dict of (seed, fold) to Result or None
        None where there is no result yet.
    """

    results: dict[tuple[int, int], Result | None] = field(default_factory=dict)

    @property
    def good(self) -> list[Result]:
        """The fits that did not fail."""
        return [each for each in self.results.values() if each is not None and not each.error]

    @property
    def complete(self) -> bool:
        """Whether all fits are there and none failed."""
        return len(self.good) == len(self.results)

    def accuracies(self) -> np.ndarray:
        """Mean accuracy over the folds, of each seed."""
        by_seed = defaultdict(list)
        for (seed, _), result in self.results.items():
            by_seed[seed].append(100 * np.mean(result.correct))
        return np.array([np.mean(folds) for folds in by_seed.values()])

    @property
    def mean(self) -> float:
        """Mean accuracy over seeds and folds."""
        return float(self.accuracies().mean())

    @property
    def seconds(self) -> float:
        """Mean time of a fit."""
        return float(np.mean([each.seconds for each in self.good]))

    def correct(self, seed: int) -> np.ndarray:
        """Which rows were classified correctly with one seed, in the order of the rows."""
        folds = [result for (each, _), result in self.results.items() if each == seed]
        rows = np.concatenate([fold.rows for fold in folds])
        return np.concatenate([fold.correct for fold in folds])[np.argsort(rows)]

    def choices(self) -> Counter[str]:
        """How often an inner search chose what."""
        return Counter(
            ", ".join(f"{name}={value}" for name, value in each.chosen.items())
            for each in self.good
            if each.chosen
        )


Table = dict[str, dict[str, Cell]]


def collect(tasks: Sequence[Task], folder: Path) -> Table:
    """Return the cells of one group by data set and method."""
    table: Table = defaultdict(lambda: defaultdict(Cell))
    for task in tasks:
        results = table[task.data.name][task.method].results
        results[task.seed, task.fold] = read(task.path(folder))
    return {name: dict(cells) for name, cells in table.items()}


def errors(tasks: Sequence[Task], folder: Path) -> list[tuple[str, str, int, str]]:
    """Return method, data set, number of failed fits and what the first of them said."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for task in tasks:
        result = read(task.path(folder))
        if result is not None and result.error:
            found[task.method, task.data.name].append(last_line(result.error))
    return [(*key, len(lines), lines[0]) for key, lines in sorted(found.items())]


@dataclass(frozen=True)
class Duel:
    """One method against another, over data sets where both are complete.

    Attributes
    ----------
    differences : dict of str to float
        Mean accuracy of the first less that of the second, by data set.
    """

    differences: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Mean difference."""
        return float(np.mean(list(self.differences.values())))

    @property
    def without_largest(self) -> float:
        """Mean difference without the data sets of the two largest gains; nan if none is left."""
        rest = sorted(self.differences.values())[:-LARGEST_GAINS]
        return float(np.mean(rest)) if rest else float("nan")

    @property
    def wins(self) -> int:
        """Data sets on which the first is better by more than a tie."""
        return sum(_beyond_tie(each) for each in self.differences.values())

    @property
    def losses(self) -> int:
        """Data sets on which the second is better by more than a tie."""
        return sum(_beyond_tie(-each) for each in self.differences.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The data set with the smallest difference, and the difference."""
        return min(self.differences.items(), key=lambda item: item[1])


def _beyond_tie(difference: float) -> bool:
    return difference > TIE + 1e-9


def duel(table: Table, first: str, second: str) -> Duel:
    """Compare two methods."""
    return Duel(
        {
            name: cells[first].mean - cells[second].mean
            for name, cells in table.items()
            if _complete(cells, (first, second))
        }
    )


def common(table: Table, methods: Sequence[str]) -> list[str]:
    """Return the data sets on which all of some methods are complete."""
    return [name for name, cells in table.items() if _complete(cells, methods)]


def _complete(cells: Mapping[str, Cell], methods: Sequence[str]) -> bool:
    return all(method in cells and cells[method].complete for method in methods)


def mean_ranks(accuracies: np.ndarray) -> tuple[np.ndarray, float]:
    """Return mean ranks, 1 is best, and the p-value of Friedman's test.

    Parameters
    ----------
    accuracies : ndarray of shape (n_sets, n_methods)
        Mean accuracies. The p-value is nan for fewer than three methods or two data sets.
    """
    ranks = stats.rankdata(-accuracies, axis=1).mean(axis=0)
    n_sets, n_methods = accuracies.shape
    if n_methods < 3 or n_sets < 2:
        return ranks, float("nan")
    # If all accuracies are equal, no rank varies, and the test would divide 0 by 0.
    if (accuracies == accuracies[:, :1]).all():
        return ranks, 1.0
    return ranks, float(stats.friedmanchisquare(*accuracies.T).pvalue)


@dataclass(frozen=True)
class Significance:
    """McNemar's test of two methods on one data set.

    Attributes
    ----------
    name : str
        The data set.
    only_first, only_second : int
        Rows on which only one method was right.
    pvalue, adjusted : float
        Plain, and by Holm's method over the data sets.
    """

    name: str
    only_first: int
    only_second: int
    pvalue: float
    adjusted: float

    def significantly_below(self, alpha: float = 0.05) -> bool:
        """Whether the first method is significantly worse."""
        return self.adjusted < alpha and self.only_first < self.only_second


def significance(table: Table, first: str, second: str, seed: int) -> list[Significance]:
    """Test two methods with one seed on each data set where both are complete."""
    names = common(table, (first, second))
    tests = [
        mcnemar(*(table[name][key].correct(seed) for key in (first, second))) for name in names
    ]
    adjusted = holm([test.pvalue for test in tests])
    return [
        Significance(name, test.n_only_a, test.n_only_b, test.pvalue, float(after))
        for name, test, after in zip(names, tests, adjusted, strict=True)
    ]
