"""Time and memory against the number of rows and of columns, with fitted exponents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from suite.exchange import call
from suite.report import Group, Table
from suite.rows import MissingData, bundled, mnist, save
from suite.scale import Scale

TOL = 1e-2
HEADER = ["data", "rows", "columns", "LMNN s", "LMNN peak MB", "iterations", "search s"]
HEADER += ["MCML value and gradient s", "MCML peak MB", "full pass s"]
COLUMNS = {"LMNN s": 3, "LMNN peak MB": 4, "search s": 6, "MCML s": 7, "full pass s": 9}
SMALLEST_MB = 5.0

EXPLANATION = [
    "The exponents are least-squares fits of log s (log MB) against log rows or log columns, over "
    f"all sizes. Memory below {SMALLEST_MB:g} MB is left out.",
    "Letter is in float64, MNIST in float32. The iterations of a fit depend on the data, so the "
    "time of a fit grows less regularly than that of one search.",
    "A full pass and a softmax evaluation look at all pairs, so their time grows with the square "
    "of the number of rows once blocks are full. The time of a search does, too. But its fixed "
    "costs (principal axes, the choice of coordinates) count at the small sizes, which lowers the "
    "fitted exponent.",
    "The time of an LMNN fit grows about in proportion to the rows. Most of its evaluations run "
    "over the working set, whose size per row changes little, and only a handful of searches look "
    "at all pairs. With many rows the searches take most of the time. Its memory is the working "
    "set and some copies of the data, both in proportion to the rows.",
    "With the number of columns, the time of a search grows slowly, because it multiplies the "
    "leading principal coordinates only. A softmax evaluation needs all of them, twice.",
]


def growth(scale: Scale, folder: Path, python: str) -> Group:
    """Measure every size in processes of its own; fit exponents in log-log."""
    group = Group(f"Growth: LMNN to a gap of {TOL:g}, one search, one softmax evaluation")
    table = Table(HEADER)
    X, y = bundled("letter", max(scale.growth_letter))
    rows = [_measure("Letter", X[:n], y[:n], folder, scale) for n in scale.growth_letter]
    series = {"Letter, rows": rows}
    try:
        X, y = mnist(max(scale.growth_mnist), scale.components)
        order = np.random.default_rng(1).permutation(len(X))
        X, y = X[order], y[order]
    except MissingData as reason:
        group.notes.append(f"{reason}.")
    else:
        series["MNIST, rows"] = [
            _measure("MNIST", X[:n], y[:n], folder, scale) for n in scale.growth_mnist
        ]
        n = scale.growth_rows
        series["MNIST, columns"] = [
            _measure("MNIST", X[:n, :d], y[:n], folder, scale) for d in scale.growth_columns
        ]
    table.rows = [row for rows in series.values() for row in rows]
    group.tables = [table, _exponents(series)]
    group.notes += EXPLANATION
    group.traces["growth"] = {
        name: {"rows": [row[1] for row in rows], "columns": [row[2] for row in rows]}
        | {title: [row[place] for row in rows] for title, place in COLUMNS.items()}
        for name, rows in series.items()
    }
    return group


def _measure(name: str, X: np.ndarray, y: np.ndarray, folder: Path, scale: Scale) -> list[Any]:
    """One row of the table."""
    data = save(folder, "growth", X=np.ascontiguousarray(X), y=y)
    few = 1 if len(X) > 10000 else scale.growth_repeats
    fit = call("suite.child", "fit_lmnn", data, tol=TOL, repeats=few).values
    search = call("suite.child", "search", data, repeats=few).values
    softmax = {"seconds": None, "peak_mb": None}
    if len(X) <= scale.growth_softmax:
        size = float(1.0 / np.sqrt(X.var(axis=0).sum()))
        softmax = call("suite.child", "softmax_lnml", data, scale=size, repeats=few).values
    unit = call("suite.child", "full_pass", data, repeats=3 * few).values
    figures = [fit["seconds"], fit["peak_mb"], fit["n_iter"], search["seconds"]]
    figures += [softmax["seconds"], softmax["peak_mb"], unit["seconds"]]
    return [name, *X.shape, *figures]


def exponent(sizes: list[int], values: list[float | None], floor: float = 0.0) -> float:
    """Slope of log value against log size by least squares; nan with fewer than two."""
    pairs = [(s, v) for s, v in zip(sizes, values, strict=True) if v is not None and v > floor]
    if len(pairs) < 2:
        return float("nan")
    size, value = np.log(np.array(pairs)).T
    return float(np.polyfit(size, value, 1)[0])


def _exponents(series: dict[str, list[list[Any]]]) -> Table:
    """One row per series: the exponent of each column."""
    table = Table(["exponent", *COLUMNS])
    for name, rows in series.items():
        sizes = [row[2 if name.endswith("columns") else 1] for row in rows]
        cells = []
        for title, place in COLUMNS.items():
            floor = SMALLEST_MB if "MB" in title else 0.0
            cells.append(exponent(sizes, [row[place] for row in rows], floor))
        table.rows.append([name, *cells])
    return table
