"""A cost model of a fit: measured on one and two workers, checked on four, followed to many.

A step takes compute that is shared among workers, compute that every worker repeats for its rows
(mapping them), bytes that pass the client, and phases of tasks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from suite.report import Group, Table
from threadpoolctl import threadpool_limits

from cluster_suite.contest import phases_of
from cluster_suite.growth import mixture
from cluster_suite.measure import Phase, chunked, workers
from lnml import LMNN
from lnml.kernels.cluster.dealing import dealt_out
from lnml.kernels.cluster.layout import MOST_BLOCKS, Layout

ROWS = 100_000
# Stated, not measured: the scheduler's work for a task.
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
    client : float
        For a byte that passes the client: packed, through the scheduler, unpacked.
    phase : float
        For a phase without work.
    """

    search: float
    hinge: float
    map: float
    nearest: float
    client: float
    phase: float


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


def client_bytes(n: int, count: int) -> dict[str, float]:
    """Bytes that pass the client in each step."""
    _, copies = shares(n, count)
    numbers = 8.0 * n * TARGETS
    return {
        "search": 8.0 * n * copies,
        "evaluation": numbers * (2.0 + 2.0 * copies),
        "assignment": 2.0 * numbers * copies,
    }


def predict(costs: Costs, size: Size, count: int, threads: int) -> dict[str, float]:
    """Seconds of a search, an evaluation and an assignment on some workers."""
    n, d = size.rows, size.columns
    share, _ = shares(n, count)
    busy = min(count, len(layout_of(n).cells))
    mapping = costs.map * share * n * d * d / threads
    moved = {step: costs.client * each for step, each in client_bytes(n, count).items()}
    cores = busy * threads
    return {
        "search": costs.search * n * n / 2 * d / cores + mapping + moved["search"],
        "evaluation: compute": costs.hinge * n * size.candidates * d / cores + mapping,
        "evaluation: client": moved["evaluation"],
        "evaluation: tasks": 3 * (costs.phase + busy * TASK_SECONDS),
        "assignment": costs.nearest * n * n / size.classes * d / cores
        + mapping
        + moved["assignment"],
    }


def model(rows: int = ROWS, counts: tuple[int, ...] = (1, 2, 4)) -> Group:
    """Measure workers, check the model, and predict."""
    X, y = mixture(rows)
    found = {count: _measured(X, y, count) for count in counts}
    size = Size(rows, X.shape[1], int(y.max()) + 1, found[counts[0]][1])
    steps = {count: each for count, (each, _) in found.items()}
    return page(steps, size, _phase_seconds(), _map_seconds())


def page(measured: dict[int, dict[str, float]], size: Size, phase: float, mapping: float) -> Group:
    """Derive costs from what one and two workers took; predict the rest."""
    costs = _costs(measured, size, phase, mapping)
    group = Group("A cost model")
    table = Table(["workers", "step", "measured s", "predicted s", "measured / predicted"])
    for count, steps in measured.items():
        predicted = predict(costs, size, count, 1)
        for name, seconds in steps.items():
            known = _of(predicted, name)
            table.rows.append([count, name, seconds, known, seconds / known])
    group.tables += [table, _prediction(costs)]
    group.notes.append(
        f"Costs on one thread: search {1e9 * costs.search:.3f} ns a pair and column, hinge "
        f"{1e9 * costs.hinge:.2f} ns a candidate and component, mapping {1e9 * costs.map:.3f} ns a "
        f"row, column and component, nearest {1e9 * costs.nearest:.3f} ns a pair and column; "
        f"{1e-6 / costs.client:.0f} MB/s through the client; {1e3 * costs.phase:.1f} ms a phase "
        f"without work. {size.candidates:.0f} candidates a row. Hinge and client come from the "
        f"evaluations of one and two workers, search and nearest from one worker."
    )
    group.notes.append(
        f"The prediction is for {MOST_BLOCKS} blocks, {1e3 * TASK_SECONDS:.0f} ms a task, 100 "
        f"classes and 100 candidates a row: assumptions. GPU workers take the search and the "
        f"evaluation of results/gpu.md: 1.32 s and 0.114 s for a million rows of 128 columns "
        f"and 133 million candidates."
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


def _costs(
    measured: dict[int, dict[str, float]], size: Size, phase: float, mapping: float
) -> Costs:
    """Derive unit costs from the steps of one and of two workers."""
    n, d = size.rows, size.columns
    first, second = (measured[count] for count in (1, 2))
    whole = mapping * n * d * d
    # evaluation = hinge / workers + bytes * client + mapping + phases, for one and for two.
    bytes_one, bytes_two = (client_bytes(n, count)["evaluation"] for count in (1, 2))
    rest = [each["evaluation"] - whole - 3 * (phase + TASK_SECONDS) for each in (first, second)]
    client = max((rest[1] - 0.5 * rest[0]) / (bytes_two - 0.5 * bytes_one), 0.0)
    moved = client_bytes(n, 1)
    return Costs(
        search=(first["search"] - whole - client * moved["search"]) / (n * n / 2 * d),
        hinge=(rest[0] - client * bytes_one) / (n * size.candidates * d),
        map=mapping,
        nearest=(first["assignment"] - whole - client * moved["assignment"])
        / (n * n / size.classes * d),
        client=client,
        phase=phase,
    )


def _map_seconds(columns: int = 128) -> float:
    """Seconds of one thread to map a row, for a column and a component, in float32."""
    rows = np.random.default_rng(0).normal(size=(4096, columns)).astype(np.float32)
    matrix = rows[:columns]
    with threadpool_limits(1):
        rows @ matrix
        begin = time.perf_counter()
        for _ in range(20):
            rows @ matrix
        return (time.perf_counter() - begin) / 20 / rows.size / columns


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
    gpu = replace(
        costs, search=1.32 / (0.5e12 * 128), hinge=0.114 / (133e6 * 128), map=1e-14, nearest=2e-14
    )
    header = ["workers", "rows kept by a worker, %", "search s", "evaluation: compute s"]
    table = Table([*header, "evaluation: client s", "evaluation: tasks s", "assignment s"])
    kinds = [(f"{count} of 16 cores", count, costs, 16) for count in (16, 64, 256)]
    kinds += [(f"{count} of one H200", count, gpu, 1) for count in (4, 16, 64)]
    for name, count, each, threads in kinds:
        found = predict(each, size, count, threads)
        table.rows.append([name, 100.0 * shares(size.rows, count)[0], *found.values()])
    return table
