"""Where the best metric errs: accuracy by class, and which classes it mixes up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnml.evaluation.groups import best_metric
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import accuracy_interval

# A table of more classes would have too many cells to read, or to load.
MOST_CLASSES = 60


@dataclass(frozen=True)
class ClassLine:
    """One class: its rows, accuracy with interval in %, and what it is most often taken for."""

    label: str
    n_rows: int
    accuracy: float
    low: float
    high: float
    taken_for: str
    times: int


@dataclass(frozen=True)
class Errors:
    """Where one method errs.

    Attributes
    ----------
    method : str
        The method.
    classes : list of ClassLine
        Classes that were tested, the least accurate first.
    labels : list of str
        All classes, in the order of ``confusion``; empty if there are too many to show.
    confusion : ndarray of int, shape (c, c)
        Rows of a class by the class they were taken for.
    """

    method: str
    classes: list[ClassLine]
    labels: list[str]
    confusion: np.ndarray

    def strength(self, row: int, column: int) -> str:
        """Return how strongly to colour a cell, in %: by its share of the rows of a class."""
        share = self.confusion[row, column] / max(1, self.confusion[row].sum())
        return f"{8 + 34 * np.sqrt(share):.0f}%"


def errors_of_best(comparison: Comparison) -> Errors | None:
    """Return where the best metric errs; None for results of older versions."""
    method = best_metric(comparison)
    confusion = comparison.confusion(method)
    if confusion is None:
        return None
    labels = list(comparison.data.class_sizes)
    lines = [
        _line(labels, number, counts) for number, counts in enumerate(confusion) if counts.sum()
    ]
    lines.sort(key=lambda line: line.accuracy)
    return Errors(method, lines, labels if len(labels) <= MOST_CLASSES else [], confusion)


def _line(labels: list[str], number: int, counts: np.ndarray) -> ClassLine:
    total, right = int(counts.sum()), int(counts[number])
    low, high = accuracy_interval(np.arange(total) < right)
    wrong = counts.copy()
    wrong[number] = 0
    other = int(wrong.argmax())
    return ClassLine(
        labels[number],
        total,
        100 * right / total,
        100 * low,
        100 * high,
        labels[other] if wrong[other] else "",
        int(wrong[other]),
    )
