"""The assignment step from given costs, compared with the linear programme solved by HiGHS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from objectives import lmnn_pair_costs

from suite.exchange import call
from suite.growth import exponent
from suite.report import Group, Line, Table
from suite.rows import bundled, save
from suite.scale import Scale

SIZES = (1, 3, 5)
ALL_ROWS = 20000


def assignment(scale: Scale, folder: Path, python: str) -> Group:
    """Measure HiGHS at sizes that it can hold, and extrapolate to all of Letter."""
    header = ["rows", "pairs", "HiGHS s", "HiGHS peak MB", "lnml s", "speed-up"]
    header += ["lnml, few pairs s", "HiGHS, few pairs s", "relative difference of the totals"]
    table = Table(header)
    for n in scale.highs:
        table.rows.append(_measure(n, folder))
    rows = [row[0] for row in table.rows]
    theirs = exponent(rows, [row[2] for row in table.rows])
    mine = exponent(rows, [row[4] for row in table.rows])
    growth = ALL_ROWS / rows[-1]
    last = table.rows[-1]
    group = Group("The assignment step from given costs: Letter, K = (1, 3, 5)")
    group.lines = [
        Line(
            f"Letter {rows[-1]:,}: assignment from given costs, speed-up over HiGHS",
            last[5],
            1000.0,
            unit=" ×",
        )
    ]
    group.tables.append(table)
    group.notes = [
        "HiGHS solves the linear programme of the paper, over all same-class pairs, by dual "
        "simplex (which is faster here than its interior-point method). The time for building the "
        "matrices is not counted.",
        "lnml is `assign_neighborhoods` with the same costs as a sparse matrix. «Few pairs» means "
        "that only the K_max cheapest pairs of each row are given, as in a fit. No other pair can "
        "be chosen.",
        f"Time grows as n^{theirs:.2f} (HiGHS) and n^{mine:.2f} (lnml). On all {ALL_ROWS:,} rows "
        f"HiGHS would take {last[2] * growth**theirs:.0f} s and {last[3] * growth**2 / 1e3:.0f} GB "
        f"(extrapolated; memory in proportion to the number of pairs), and lnml "
        f"{1e3 * last[4] * growth**mine:.0f} ms.",
    ]
    return group


def _measure(n: int, folder: Path) -> list[float]:
    """One row of the table."""
    X, y = bundled("letter", n)
    rows, columns, costs = lmnn_pair_costs(X, y)
    data = save(folder, "costs", rows=rows, columns=columns, costs=costs, y=y)
    theirs = call("suite.child", "highs", data, sizes=SIZES).values
    mine = call("suite.child", "choose_given", data, sizes=SIZES).values
    kept = _cheapest(rows, costs, SIZES[2])
    few = save(folder, "few_costs", rows=rows[kept], columns=columns[kept], costs=costs[kept], y=y)
    reduced = call("suite.child", "highs", few, sizes=SIZES).values
    totals = [theirs["total"], mine["total"], mine["total_cheapest"], reduced["total"]]
    return [
        n,
        costs.size,
        theirs["seconds"],
        theirs["peak_mb"],
        mine["seconds"],
        theirs["seconds"] / mine["seconds"],
        mine["seconds_cheapest"],
        reduced["seconds"],
        float(np.ptp(totals) / abs(totals[0])),
    ]


def _cheapest(rows: np.ndarray, costs: np.ndarray, count: int) -> np.ndarray:
    """Positions of the ``count`` cheapest pairs of each row."""
    order = np.lexsort((costs, rows))
    start = np.concatenate([[0], np.cumsum(np.bincount(rows))])
    rank = np.arange(rows.size) - start[rows[order]]
    return order[rank < count]
