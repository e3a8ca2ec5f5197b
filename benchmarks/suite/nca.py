"""Whole fits of NCA: how soon lnml reaches the final value of scikit-learn."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
from objectives import nca_objective

from suite.exchange import Reply, call
from suite.report import Group, Line, Table
from suite.rows import bundled, save
from suite.scale import Scale


def nca(scale: Scale, folder: Path, python: str) -> Group:
    """Seconds and memory of a fit on 4,000 rows of Letter, both tools with their defaults."""
    n = scale.softmax
    X, y = bundled("letter", n)
    data = save(folder, "nca", X=X, y=y)
    theirs = call("suite.child", "fit_nca_sklearn", data)
    mine = call("suite.child", "fit_nca_lnml", data)
    goal = nca_objective(X, y, theirs.arrays["L"])
    seconds = _seconds_to(goal, mine, X, y)
    group = Group(f"NCA: Letter, {n:,} rows, whole fits from the identity")
    group.lines = [
        Line(
            f"NCA on {n:,} rows, speed-up over scikit-learn in reaching its final value",
            theirs.values["seconds"] / seconds,
            15.0,
            unit=" ×",
        ),
        Line(
            "NCA's memory for that fit, as a share of scikit-learn's",
            mine.values["peak_mb"] / theirs.values["peak_mb"],
            0.1,
            at_least=False,
        ),
    ]
    header = ["tool", "s to scikit-learn's value", "s", "steps", "peak MB", "final value"]
    table = Table(header)
    final = nca_objective(X, y, mine.arrays["L"])
    for tool, reply, reached, value in (
        ("lnml NCA", mine, seconds, final),
        ("scikit-learn NCA", theirs, theirs.values["seconds"], goal),
    ):
        values = reply.values
        figures = [values["seconds"], values["n_iter"], values["peak_mb"], value]
        table.rows.append([tool, reached, *figures])
    group.tables.append(table)
    group.notes = [
        "Features are raw, in float64, and `init='identity'`. All other parameters are the tools' "
        "defaults, with at most 50 steps in scikit-learn and 200 in lnml. The value is the "
        "expected number of rows that choose a neighbour of their class. Plain NumPy computes it "
        "again, for lnml after every step until scikit-learn's final value is reached.",
    ]
    return group


def _seconds_to(goal: float, reply: Reply, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds after which a traced fit was at least as good as the goal; inf if never."""
    for seconds, L in zip(reply.arrays["seconds"], reply.arrays["trace"], strict=True):
        if nca_objective(X, y, L) >= goal:
            return float(seconds)
    return inf
