"""A cost model of a fit: measured on one worker, checked on more, and followed to large clusters.

A phase takes compute that is shared among workers, compute that every worker repeats for its
rows (mapping them), bytes through the client, and tasks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from suite.report import Group, Table

from cluster_suite.contest import phases_of
from cluster_suite.growth import mixture
from cluster_suite.measure import Phase, chunked, workers
from lnml import LMNN
from lnml.kernels.cluster.crew import dealt_out
from lnml.kernels.cluster.layout import BLOCK_ROWS, LEAST_BLOCKS, MOST_BLOCKS, Layout
from lnml.kernels.cpu.products import shifted_product

ROWS = 100_000
# Stated, not measured: a network of 10 Gb/s, and the scheduler's work for a task.
BANDWIDTH = 1.25e9
TASK_SECONDS = 1e-3
TARGETS = 3


@dataclass(frozen=True)
class Costs:
    """Seconds on one thread.

    Attributes
    ----------
    search : float
        For a pair of rows and a column.
    hinge : float
        For a candidate pair and a component, targets and moments included.
    map : float
        For a row, a column and a component.
    nearest : float
        For a pair of rows of one class and a column.
    phase : float
        For a phase without work.
    """

    search: float
    hinge: float
    map: float
    nearest: float
    phase: float


# An H200 by results/gpu.md: a million rows of 128 columns take 1.32 s a search and 0.114 s an
# evaluation over 133 million candidates. The rest is of the order of the search.
GPU = Costs(
    search=1.32 / (0.5e12 * 128), hinge=0.114 / (133e6 * 128), map=1e-14, nearest=2e-14, phase=5e-3
)


@dataclass(frozen=True)
class Size:
    """A problem: rows, columns, classes, and candidate pairs of a row."""

    rows: int
    columns: int
    classes: int
    candidates: float


def layout_of(rows: int) -> Layout:
    """Blocks of so many rows."""
    return Layout.of(np.array([0, rows]))


def shares(rows: int, count: int) -> tuple[float, float]:
    """Return the largest share of rows that a worker keeps, and mean copies of a row."""
    layout = layout_of(rows)
    found = dealt_out(layout, {str(number): 1 for number in range(count)})
    blocks: dict[str, set[int]] = {}
    for cell, name in found.items():
        blocks.setdefault(name, set()).update(cell)
    sizes = [len(each) / layout.n_blocks for each in blocks.values()]
    return max(sizes), sum(sizes)


def predict(costs: Costs, size: Size, count: int, threads: int, remote: bool) -> dict[str, float]:
    """Seconds of a search, an evaluation and an assignment on some workers.

    ``remote`` counts bytes through the client's network; workers of one machine share memory.
    """
    n, d = size.rows, size.columns
    share, copies = shares(n, count)
    cores = min(count, len(layout_of(n).cells)) * threads
    rate = BANDWIDTH if remote else np.inf
    tasks = 3 * min(count, len(layout_of(n).cells)) * TASK_SECONDS if remote else 0.0
    numbers = 8.0 * n * TARGETS
    compute = costs.hinge * n * size.candidates * d / cores
    mapping = costs.map * share * n * d * d / threads
    return {
        "search": costs.search * n * n / 2 * d / cores + mapping + 8.0 * n * copies / rate,
        "evaluation: compute": compute + mapping,
        "evaluation: client": numbers * (2 + 2 * copies) / rate,
        "evaluation: tasks": 3 * costs.phase + tasks,
        "assignment": costs.nearest * n * n / size.classes * d / cores
        + mapping
        + 16.0 * n * TARGETS * copies / rate,
    }


def model(rows: int = ROWS, counts: tuple[int, ...] = (1, 2, 4)) -> Group:
    """Measure one worker, check the model on more, and predict."""
    X, y = mixture(rows)
    d, classes = X.shape[1], int(y.max()) + 1
    measured = {count: _measured(X, y, count) for count in counts}
    one, candidates = measured[counts[0]]
    size = Size(rows, d, classes, candidates)
    costs = _costs(one, size)
    group = Group("A cost model")
    table = Table(["workers", "step", "measured s", "predicted s", "measured / predicted"])
    for count, (found, _) in measured.items():
        predicted = predict(costs, size, count, 1, remote=False)
        for name, seconds in found.items():
            known = _of(predicted, name)
            table.rows.append([count, name, seconds, known, seconds / known])
    group.tables += [table, _prediction(costs)]
    group.notes.append(
        f"Costs on one thread, in ns: search {1e9 * costs.search:.3f} a pair and column, hinge "
        f"{1e9 * costs.hinge:.2f} a candidate and component, mapping {1e9 * costs.map:.3f} a row, "
        f"column and component, nearest {1e9 * costs.nearest:.3f} a pair and column; a phase "
        f"without work {1e3 * costs.phase:.1f} ms. {candidates:.0f} candidates a row."
    )
    group.notes.append(
        f"The prediction is for {BLOCK_ROWS:,} rows a block or more, {LEAST_BLOCKS} to "
        f"{MOST_BLOCKS} blocks, a client's network of {BANDWIDTH / 1e9:.2f} GB/s, "
        f"{1e3 * TASK_SECONDS:.0f} ms a task, 100 classes and 100 candidates a row: assumptions."
    )
    return group


def _measured(X: np.ndarray, y: np.ndarray, count: int) -> tuple[dict[str, float], float]:
    """Seconds of the steps on some workers, and candidates of a row."""
    with workers(count):
        phases_of(LMNN(tol=0.5), chunked(X[:2000]), y[:2000])
        _, _, record = phases_of(LMNN(tol=1e-2), chunked(X), y)
    phases, candidates = record.phases, record.candidates
    evaluation = sum(_mean(phases[name]) for name in ("pair_lengths", "hinge_cell", "pair_moment"))
    found = {
        "search": _mean(phases["candidate_facts"]),
        "evaluation": evaluation,
        "assignment": _mean(phases["nearest"]),
    }
    return found, float(np.mean(candidates)) / len(X)


def _mean(phase: Phase) -> float:
    return phase.seconds / phase.count


def _costs(found: dict[str, float], size: Size) -> Costs:
    """Derive unit costs from the steps of one worker."""
    n, d = size.rows, size.columns
    rows = np.random.default_rng(0).normal(size=(40_000, d)).astype(np.float32)
    begin = time.perf_counter()
    for _ in range(5):
        shifted_product(rows, rows[0], np.eye(d), rows.dtype, rows.dtype)
    mapping = (time.perf_counter() - begin) / 5 / (len(rows) * d * d)
    phase = _phase_seconds()
    whole = mapping * n * d * d
    return Costs(
        search=(found["search"] - whole) / (n * n / 2 * d),
        hinge=(found["evaluation"] - whole - 3 * phase) / (n * size.candidates * d),
        map=mapping,
        nearest=(found["assignment"] - whole) / (n * n / size.classes * d),
        phase=phase,
    )


def _phase_seconds() -> float:
    """Seconds of a phase without work on one worker."""
    with workers(1) as client:
        client.submit(_nothing, 0).result()
        begin = time.perf_counter()
        for number in range(20):
            client.gather([client.submit(_nothing, number, pure=False)])
        return (time.perf_counter() - begin) / 20


def _nothing(value: Any) -> Any:
    return value


def _of(predicted: dict[str, float], step: str) -> float:
    return sum(seconds for name, seconds in predicted.items() if name.split(":")[0] == step)


def _prediction(costs: Costs) -> Table:
    """Predict 10 million rows of 128 columns on workers of 16 cores, and of one GPU."""
    size = Size(10_000_000, 128, 100, 100.0)
    header = ["workers", "rows kept by a worker, %", "search s", "evaluation: compute s"]
    table = Table([*header, "evaluation: client s", "evaluation: tasks s", "assignment s"])
    kinds = [(f"{count} of 16 cores", count, costs, 16) for count in (16, 64, 256)]
    kinds += [(f"{count} of one H200", count, GPU, 1) for count in (4, 16, 64)]
    for name, count, each, threads in kinds:
        found = predict(each, size, count, threads, remote=True)
        table.rows.append([name, 100.0 * shares(size.rows, count)[0], *found.values()])
    return table
