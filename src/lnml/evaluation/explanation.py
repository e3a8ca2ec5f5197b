"""What the best metric learned: its columns, and the rows that most methods get wrong."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from lnml.evaluation.groups import best_metric
from lnml.evaluation.problem import FoldData, Problem, stratified_sample
from lnml.evaluation.results import Comparison
from lnml.evaluation.weights import ColumnWeights, column_weights
from lnml.kernels.tensors import host_array
from lnml.learning.knn import nearest_rows

MOST_ROWS = 5000
N_HARD = 10
N_NEIGHBORS = 3
# Columns that are named for a row.
N_APART = 3


@dataclass(frozen=True)
class Near:
    """A row near another one: its number, its label and its learned distance."""

    row: int
    label: str
    distance: float


@dataclass(frozen=True)
class Apart:
    """A column that sets two rows apart.

    Attributes
    ----------
    column : str
        Its name.
    difference : float
        By how many standard deviations of the column the first row lies above the second.
    share : float
        What the column adds to their squared learned distance, as a share of it.
    """

    column: str
    difference: float
    share: float


@dataclass(frozen=True)
class HardRow:
    """A row that most metrics take for another class.

    Attributes
    ----------
    row : int
        Row of the data, counted from 0.
    label : str
        Its label.
    predicted : str
        What the best metric took it for in the cross-validation; empty if that is not known.
    n_wrong : int
        How many metrics were wrong.
    nearest : tuple of Near
        Its nearest other rows under the metric of the explanation.
    kin : Near or None
        The nearest row of its own class.
    apart : tuple of Apart
        The columns that set it most apart from ``kin``.
    """

    row: int
    label: str
    predicted: str
    n_wrong: int
    nearest: tuple[Near, ...]
    kin: Near | None
    apart: tuple[Apart, ...]


@dataclass(frozen=True)
class Explanation:
    """What the best metric of a comparison learned from all rows but the hardest ones.

    Attributes
    ----------
    method : str
        The most accurate learned metric.
    n_rows : int
        Rows it was fitted to. None of ``hard`` is among them, so these are new to it.
    n_metrics : int
        Metrics that were compared, of which ``n_wrong`` of a hard row were wrong.
    weights : ColumnWeights
        How much its columns count.
    hard : tuple of HardRow
        The rows that most metrics got wrong, the worst first.
    """

    method: str
    n_rows: int
    n_metrics: int
    weights: ColumnWeights
    hard: tuple[HardRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        return {
            "method": self.method,
            "n_rows": self.n_rows,
            "n_metrics": self.n_metrics,
            "weights": self.weights.to_json(),
            "hard": [asdict(row) for row in self.hard],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Explanation:
        """Undo :meth:`to_json`."""
        hard = tuple(
            HardRow(
                **{
                    **row,
                    "nearest": tuple(Near(**near) for near in row["nearest"]),
                    "kin": None if row["kin"] is None else Near(**row["kin"]),
                    "apart": tuple(Apart(**apart) for apart in row["apart"]),
                }
            )
            for row in stored["hard"]
        )
        weights = ColumnWeights.from_json(stored["weights"])
        counts = int(stored["n_rows"]), int(stored["n_metrics"])
        return cls(str(stored["method"]), *counts, weights, hard)


def explain(
    problem: Problem,
    comparison: Comparison,
    methods: Mapping[str, Any],
    *,
    seed: int = 0,
    most_rows: int = MOST_ROWS,
) -> Explanation | None:
    """Fit the best metric once more, and say what it learned.

    It sees all rows but those that most metrics got wrong. Where there are more than
    ``most_rows``, it sees a sample of them. With a default split it sees training rows only.

    Parameters
    ----------
    problem : Problem
        The data, with the splits of the comparison.
    comparison : Comparison
        What was found on them.
    methods : mapping of str to estimator or None
        The methods that were compared.
    seed : int, default=0
        Seed of the sample.
    most_rows : int, default=5000
        Most rows to fit.

    Returns
    -------
    explanation : Explanation or None
        None if the best method gives no linear map.
    """
    best = best_metric(comparison)
    hard, n_wrong = hardest_rows(comparison, problem.labels)
    usable = _usable_rows(problem, hard)
    fitted = usable[stratified_sample(problem.labels[usable], most_rows, seed)]
    view = _View(problem, best, fitted, hard)
    components = _fit(methods[best], view, problem.learned_rows(best, fitted.size), seed)
    if components is None:
        return None
    rows = _hard_rows(view, components, n_wrong, _predictions(comparison, best))
    L, columns = _in_columns(view, components), view.columns
    weights = column_weights(L, columns.inside, columns.names, before=view.before)
    return Explanation(best, int(fitted.size), len(comparison.metrics), weights, rows)


def hardest_rows(comparison: Comparison, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that at least half of the metrics get wrong, and how many do: (h,) each.

    There are ten at most, the worst first. Every class keeps two rows and half of its rows, so
    that it can still be learned.
    """
    rows = comparison.tested(comparison.metrics[0])
    n_wrong = np.sum([~comparison.correct(method) for method in comparison.metrics], axis=0)
    order = np.argsort(-n_wrong, kind="stable")
    order = order[2 * n_wrong[order] >= max(len(comparison.metrics), 1)]
    classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    most = np.minimum(sizes // 2, np.maximum(sizes - 2, 0))
    taken = np.zeros(classes.size, dtype=int)
    kept: list[int] = []
    for place in order:
        code = codes[rows[place]]
        if len(kept) < N_HARD and taken[code] < most[code]:
            taken[code] += 1
            kept.append(int(place))
    chosen = np.array(kept, dtype=np.int64)
    return rows[chosen], n_wrong[chosen]


def _usable_rows(problem: Problem, hard: np.ndarray) -> np.ndarray:
    """Return the rows to fit: all, or the training rows of a single split, but not hard ones."""
    everything = np.arange(len(problem.labels))
    rows = problem.splits[0][0] if len(problem.splits) == 1 else everything
    return np.setdiff1d(rows, hard)


def _predictions(comparison: Comparison, method: str) -> dict[int, str]:
    """Return what test rows were taken for, by row; empty for results of older versions."""
    names = list(comparison.data.class_sizes)
    return {
        int(row): names[code]
        for part in comparison.of(method)
        if part.predicted is not None
        for row, code in zip(part.test, part.predicted, strict=True)
    }


class _View:
    """Fitted and hard rows as a method sees them, and in columns that have names."""

    def __init__(self, problem: Problem, method: str, fitted: np.ndarray, hard: np.ndarray) -> None:
        whole = replace(problem, splits=[(fitted, hard if hard.size else fitted[:1])])
        data = FoldData(whole, 0)
        self.fitted, self.hard = fitted, hard
        self.labels = problem.labels
        self.inside, self.outside = data.matrices(method)
        self.columns = data.columns(method)
        self.before = data.columns("").inside


def _fit(method: Any, view: _View, most_rows: int, seed: int) -> np.ndarray | None:
    """Return the linear map (r, d) of a method; None if it has none."""
    if method is None:
        return np.eye(view.inside.shape[1])
    labels = view.labels[view.fitted]
    rows = stratified_sample(labels, most_rows, seed)
    with warnings.catch_warnings():
        # The cross-validation has counted what did not converge.
        warnings.simplefilter("ignore")
        model = clone(method).fit(view.inside[rows], labels[rows])
    components = getattr(model, "components_", None)
    return None if components is None else np.asarray(host_array(components), dtype=float)


def _hard_rows(
    view: _View, components: np.ndarray, n_wrong: np.ndarray, predicted: Mapping[int, str]
) -> tuple[HardRow, ...]:
    if not view.hard.size:
        return ()
    inside, outside = view.inside @ components.T, view.outside @ components.T
    near = nearest_rows(inside, outside, min(N_NEIGHBORS, len(inside)))
    labels = view.labels[view.fitted]
    found = []
    for place, row in enumerate(view.hard.tolist()):
        distances = np.linalg.norm(inside - outside[place], axis=1)

        def as_near(other: int, distances: np.ndarray = distances) -> Near:
            return Near(int(view.fitted[other]), str(labels[other]), float(distances[other]))

        # A class keeps half of its rows, so there is one.
        own = np.flatnonzero(labels == view.labels[row])
        kin = int(own[distances[own].argmin()]) if own.size else None
        found.append(
            HardRow(
                row,
                str(view.labels[row]),
                predicted.get(row, ""),
                int(n_wrong[place]),
                tuple(as_near(int(other)) for other in near[place]),
                None if kin is None else as_near(kin),
                () if kin is None else _apart(view, components, place, kin),
            )
        )
    return tuple(found)


def _apart(view: _View, components: np.ndarray, place: int, kin: int) -> tuple[Apart, ...]:
    """Return the columns that add most to a squared distance: shares of delta * (M delta)."""
    L = _in_columns(view, components)
    difference = view.columns.outside[place] - view.columns.inside[kin]
    parts = difference * ((L @ difference) @ L)
    total = float(parts.sum())
    if total <= 0:
        return ()
    spreads = view.columns.inside.std(axis=0)
    order = np.argsort(-parts, kind="stable")[:N_APART]
    return tuple(
        Apart(
            str(view.columns.names[c]),
            float(difference[c] / (spreads[c] or 1.0)),
            float(parts[c] / total),
        )
        for c in order
        if parts[c] > 0
    )


def _in_columns(view: _View, components: np.ndarray) -> np.ndarray:
    """Return the linear map of the columns that have names."""
    projection = view.columns.projection
    return components if projection is None else components @ projection
