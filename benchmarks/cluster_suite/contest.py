"""Two workers of one thread each against one process with two threads, on the same two cores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
from suite.report import Group, Line, Table
from suite.rows import mnist

from cluster_suite.measure import Record, chunked, pin, recorded, workers
from lnml import LMNN, LNML
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet

COMPONENTS = 164
WARM_ROWS = 600


def contest(rows: int, softmax_rows: int, cores: list[int] | None) -> Group:
    """Measure fits of LMNN and LN-LMNN, and evaluations of NCA and MCML.

    With four cores, the local fit and the cluster run at the same time, each on two of them.
    """
    X, y = mnist(rows, COMPONENTS)
    apart = cores[:2] if cores and len(cores) >= 4 else None
    if apart:
        pin(cores[2:4])
    group = Group("Two workers against two threads")
    table = Table(
        ["what", "local s", "cluster s", "ratio", "objective local", "objective cluster", "gap"]
    )
    with workers(2):
        for name, model, limit in (
            ("LMNN to 1 %", LMNN(tol=1e-2), 1.3),
            ("LN-LMNN, five rounds", LNML(LMNN(), max_rounds=5, tol=1e-2), 1.5),
        ):
            (local, *here), (remote, *there) = _sides(model, X, y, apart)
            ratio = remote / local
            text = f"MNIST {rows:,}: {name}, cluster / local"
            group.lines.append(Line(text, ratio, limit, False))
            objectives = [f"{each[0]:,.2f}" for each in (here, there)]
            table.rows.append([name, local, remote, ratio, *objectives, there[1]])
        for name, ratio, local, remote in _evaluations(softmax_rows):
            text = f"MNIST {softmax_rows:,}: {name}, cluster / local"
            group.lines.append(Line(text, ratio, 1.3, False))
            table.rows.append([name, local, remote, ratio, "", "", None])
    group.tables.append(table)
    if apart:
        group.notes.append("The two fits of a line ran at the same time, on two cores each.")
    return group


Outcome = tuple[float, float, float]


def _sides(
    model: Any, X: np.ndarray, y: np.ndarray, apart: list[int] | None
) -> tuple[Outcome, Outcome]:
    """Seconds, objective and gap of the local fit and of the cluster's."""
    if apart is None:
        local = _fit(model, X, y, X)
        return local, _fit(model, chunked(X), y, chunked(X[:WARM_ROWS]))
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=pin, initargs=(apart,)) as pool:
        waiting = pool.submit(_fit, model, X, y, X)
        remote = _fit(model, chunked(X), y, chunked(X[:WARM_ROWS]))
        return waiting.result(), remote


def _fit(model: Any, X: Any, y: np.ndarray, small: Any) -> Outcome:
    """Fit a few rows, then all; return the seconds, objective and gap of the second fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        type(model)(**model.get_params(deep=False)).fit(small[:WARM_ROWS], y[:WARM_ROWS])
        begin = time.perf_counter()
        found = type(model)(**model.get_params(deep=False)).fit(X, y)
        return time.perf_counter() - begin, found.objective_, found.duality_gap_


def _evaluations(rows: int) -> list[tuple[str, float, float, float]]:
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


def phases_of(model: Any, X: Any, y: np.ndarray) -> tuple[float, Any, Record]:
    """Return seconds of a fit, the model, and what its phases took."""
    with recorded() as record, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        found = model.fit(X, y)
        return time.perf_counter() - begin, found, record
