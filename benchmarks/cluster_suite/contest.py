"""Two workers of one thread each against one process with two threads, on the same two cores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from distributed import Client
from suite.report import Group, Line, Table, number
from suite.rows import mnist

from cluster_suite.measure import chunked, recorded, workers
from lnml import LMNN, LNML
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet

COMPONENTS = 164
WARM_ROWS = 600


def contest(rows: int, softmax_rows: int) -> Group:
    """Measure fits of LMNN and LN-LMNN, and evaluations of NCA and MCML."""
    X, y = mnist(rows, COMPONENTS)
    group = Group("Two workers against two threads")
    header = [
        "what",
        "local s",
        "cluster s",
        "ratio",
        "objective local",
        "objective cluster",
        "gap",
    ]
    table = Table(header)
    with workers(2) as client:
        for name, model, limit in (
            ("LMNN to 1 %", LMNN(tol=1e-2), 1.3),
            ("LN-LMNN, five rounds", LNML(LMNN(), max_rounds=5, tol=1e-2), 1.5),
        ):
            local, here = _fit(model, X, y)
            remote, there = _fit(model, chunked(X), y, chunked(X[:WARM_ROWS]), y[:WARM_ROWS])
            ratio = remote / local
            group.lines.append(
                Line(f"MNIST {rows:,}: {name}, cluster / local", ratio, limit, False)
            )
            objectives = [f"{each.objective_:,.2f}" for each in (here, there)]
            table.rows.append(
                [name, number(local), number(remote), number(ratio), *objectives,
                 f"{there.duality_gap_:.1e}"]
            )  # fmt: skip
        for name, ratio, local, remote in _evaluations(client, softmax_rows):
            group.lines.append(
                Line(f"MNIST {softmax_rows:,}: {name}, cluster / local", ratio, 1.3, False)
            )
            table.rows.append([name, number(local), number(remote), number(ratio), "", "", ""])
    group.tables.append(table)
    return group


def _fit(model: Any, X: Any, y: np.ndarray, warm_X: Any = None, warm_y: Any = None) -> Any:
    """Fit a few rows, then all; return the seconds of the second fit, and the model."""
    small = (X[:WARM_ROWS], y[:WARM_ROWS]) if warm_X is None else (warm_X, warm_y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        type(model)(**model.get_params(deep=False)).fit(*small)
        begin = time.perf_counter()
        found = type(model)(**model.get_params(deep=False)).fit(X, y)
        return time.perf_counter() - begin, found


def _evaluations(client: Client, rows: int) -> list[tuple[str, float, float, float]]:
    """Seconds of one evaluation of MCML (all pairs, r x d) and of NCA, local and on workers."""
    X, y = mnist(rows, COMPONENTS)
    # Scaled so that the softmax is neither one row nor all rows.
    X = (X / np.sqrt(X.var(axis=0).sum()) * 4.0).astype(np.float32)
    found = []
    sides = [TrainingSet.from_labels(X, y, get_kernels("cpu"))]
    sides.append(TrainingSet.from_labels(chunked(X), y, get_kernels("cluster")))
    operations: list[tuple[str, Callable[[Any, Any], Any]]] = [
        ("evaluation of MCML", lambda k, e: k.softmax(e, None, full=False)),
        ("evaluation of NCA", lambda k, e: k.class_softmax(e, full=False)),
    ]
    for name, operation in operations:
        seconds = []
        for side in sides:
            times = []
            for repeat in range(4):
                components = np.eye(COMPONENTS) * (1.0 + 1e-3 * repeat)
                with side.kernels.session():
                    begin = time.perf_counter()
                    operation(side.kernels, side.kernels.embed(side.points, components))
                    times.append(time.perf_counter() - begin)
            seconds.append(median(times[1:]))
        found.append((name, seconds[1] / seconds[0], *seconds))
    return found


def phases_of(model: Any, X: Any, y: np.ndarray) -> tuple[float, Any, dict[str, Any]]:
    """Return seconds of a fit, the model, and its phases."""
    with recorded() as record, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        found = model.fit(X, y)
        return time.perf_counter() - begin, found, record.phases
