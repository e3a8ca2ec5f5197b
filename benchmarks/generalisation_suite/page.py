"""The report in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from generalisation_suite.bars import bars
from generalisation_suite.methods import EUCLIDEAN, METHODS, label
from generalisation_suite.sets import MOST_COLUMNS
from generalisation_suite.summary import (
    Cell,
    Table,
    collect,
    common,
    duel,
    errors,
    mean_ranks,
    significance,
)
from generalisation_suite.tasks import Task, read
from lnml.report.tables import text_table

INTRODUCTION = """\
`python benchmarks/generalisation.py` writes this page; nothing on it was written by hand. \
Accuracies are in per cent: means over the outer folds ({folds}) and seeds {seeds}, ± the standard \
deviation over seeds. Data sets of more than {columns} columns are taken on {columns} principal \
components of the training part. Seconds are those of a whole fit on one thread, with all inner \
searches. RBF SVM, random forest and boosting are references; ranks and verdicts are about metrics.
"""
BARS = ["required", "measured", "verdict"]


def page(tasks: Sequence[Task], folder: Path, recommended: str) -> str:
    """Return the report on all groups."""
    seeds = sorted({task.seed for task in tasks})
    folds = len({task.fold for task in tasks})
    parts = [
        "# Generalisation\n",
        INTRODUCTION.format(folds=folds, seeds=", ".join(map(str, seeds)), columns=MOST_COLUMNS),
        *_failures(tasks, folder),
    ]
    for group in dict.fromkeys(task.data.group for task in tasks):
        inside = [task for task in tasks if task.data.group == group]
        table = collect(inside, folder)
        parts += [f"## The {group} group\n", *_group(inside, table, recommended, seeds[0])]
    return "\n".join([*parts, *_estimators(tasks, folder, seeds[0])])


def _group(tasks: Sequence[Task], table: Table, recommended: str, seed: int) -> list[str]:
    asked = list(dict.fromkeys(task.method for task in tasks))
    methods = [key for key in asked if any(cells[key].good for cells in table.values())]
    metrics = [key for key in methods if key not in METHODS or not METHODS[key].is_classifier]
    sizes = {task.data.name: task.data.size for task in tasks}
    parts = [_accuracies(table, methods, sizes), *_summary(table, methods, metrics)]
    if recommended in methods:
        parts += _duels(table, recommended, [key for key in methods if key != recommended])
        if EUCLIDEAN in methods and recommended != EUCLIDEAN:
            parts += _tests(table, recommended, seed)
        n_rows = {name: size[0] for name, size in sizes.items()}
        found = bars(table, n_rows, recommended, metrics, seed)
        lines = text_table(BARS, [bar.cells(len(table)) for bar in found])
        parts += ["### Bars\n", lines + "\n"]
    else:
        parts.append(f"There is no result of {label(recommended)}, so there are no verdicts.\n")
    return [*parts, *_choices(table, metrics)]


def _accuracies(table: Table, methods: Sequence[str], sizes: dict[str, tuple[int, int]]) -> str:
    header = ["data", "rows", "columns", *map(label, methods)]
    rows = [
        [name, f"{sizes[name][0]:,}", str(sizes[name][1]), *(_accuracy(cells[m]) for m in methods)]
        for name, cells in table.items()
    ]
    return text_table(header, rows) + "\n"


def _accuracy(cell: Cell) -> str:
    if not cell.complete:
        return f"{len(cell.good)} of {len(cell.results)} fits"
    accuracies = cell.accuracies()
    spread = f" ± {accuracies.std(ddof=1):.1f}" if accuracies.size > 1 else ""
    return f"{accuracies.mean():.2f}{spread}"


def _summary(table: Table, methods: Sequence[str], metrics: Sequence[str]) -> list[str]:
    names = common(table, methods)
    if not names:
        return ["No data set has the results of all methods yet: there are no means.\n"]
    values = np.array([[table[name][key].mean for key in methods] for name in names])
    columns = [methods.index(key) for key in metrics]
    ranks, pvalue = mean_ranks(values[:, columns])
    by_metric = dict(zip(metrics, ranks, strict=True))
    rows = []
    for key, column in zip(methods, values.T, strict=True):
        seconds = np.mean([table[name][key].seconds for name in names])
        rank = f"{by_metric[key]:.2f}" if key in by_metric else ""
        numbers = [f"{column.mean():.2f}", f"{np.median(column):.2f}", rank]
        rows.append(
            [label(key), *numbers, _worst(table, key), f"{seconds:.2f}", _unproved(table, key)]
        )
    header = ["method", "mean", "median", "mean rank", "worst loss to Euclidean"]
    header += ["seconds", "not converged"]
    said = f"Over the {len(names)} data sets where all methods are complete (of {len(table)})."
    if not np.isnan(pvalue):
        said += f" Friedman's test that the metrics are equally good: p = {pvalue:.2g}."
    return [
        said + "\n",
        text_table(header, rows) + "\n",
    ]


def _worst(table: Table, key: str) -> str:
    against = duel(table, key, EUCLIDEAN) if key != EUCLIDEAN else None
    if against is None or not against.differences:
        return ""
    name, difference = against.worst
    return f"{_signed(difference)} ({name})"


def _unproved(table: Table, key: str) -> str:
    said = [each.converged for cells in table.values() for each in cells[key].good]
    said = [converged for converged in said if converged is not None]
    return f"{said.count(False)} of {len(said)}" if said else ""


def _duels(table: Table, recommended: str, others: Sequence[str]) -> list[str]:
    rows = []
    for key in others:
        found = duel(table, recommended, key)
        if found.differences:
            n, (name, least) = len(found.differences), found.worst
            score = [str(found.wins), str(found.losses), str(n - found.wins - found.losses)]
            means = [_signed(found.mean), _signed(found.without_largest)]
            rows.append([label(key), str(n), *score, *means, f"{_signed(least)} ({name})"])
    header = ["against", "sets", "wins", "losses", "ties", "mean difference"]
    header += ["without the two largest gains", "worst"]
    return [f"### {label(recommended)} against each\n", text_table(header, rows) + "\n"]


def _tests(table: Table, recommended: str, seed: int) -> list[str]:
    rows = [
        [t.name, str(t.only_first), str(t.only_second), f"{t.pvalue:.2g}", f"{t.adjusted:.2g}"]
        for t in significance(table, recommended, EUCLIDEAN, seed)
    ]
    header = ["data", "only it right", "only Euclidean right", "p", "p, Holm"]
    return [
        f"### {label(recommended)} against scaled Euclidean, seed {seed}\n",
        "McNemar's exact test; Holm's correction is over all data sets of the table.\n",
        text_table(header, rows) + "\n",
    ]


def _choices(table: Table, metrics: Sequence[str]) -> list[str]:
    parts = []
    for key in metrics:
        rows = []
        for name, cells in table.items():
            counted = cells[key].choices()
            shares = [f"{n / counted.total():.0%} {what}" for what, n in counted.most_common()]
            rows += [[name, "; ".join(shares)]] if shares else []
        if rows:
            parts += [f"### Chosen by {label(key)}\n", text_table(["data", "share"], rows) + "\n"]
    return parts


def _failures(tasks: Sequence[Task], folder: Path) -> list[str]:
    rows = [[key, name, str(n), _cell(said)] for key, name, n, said in errors(tasks, folder)]
    if not rows:
        return []
    return ["## Errors\n", text_table(["method", "data", "fits", "first error"], rows) + "\n"]


def _estimators(tasks: Sequence[Task], folder: Path, seed: int) -> list[str]:
    """List what was fitted; more than one line of a method tells of results of old code."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for task in tasks:
        result = read(task.path(folder)) if task.seed == seed else None
        if result is not None and not result.error:
            found[task.method][result.estimator] = None
    rows = [[label(key), f"`{_cell(text)}`"] for key, texts in found.items() for text in texts]
    return [
        f"## Estimators\n\nThose of seed {seed}.\n",
        text_table(["method", "estimator"], rows) + "\n",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _signed(number: float) -> str:
    return "" if np.isnan(number) else f"{number:+.2f}"
