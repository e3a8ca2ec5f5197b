"""How fits on two workers grow with the rows, and whether a sample would do."""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import numpy as np
from mixture import make_mixture
from suite.report import Group, Table

from cluster_suite.contest import phases_of
from cluster_suite.measure import CHUNK_ROWS, chunked, moved_bytes, peak_bytes, reset_peak, workers
from lnml import LMNN
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet

FEATURES = 32
CLASSES = 20
QUERIES = 5_000
SAMPLE = 50_000
MB = 1e6


def mixture(
    rows: int, part: int = 0, features: int = FEATURES, informative: int = 8, **problem: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of the mixture."""
    return make_mixture(
        rows,
        n_features=features,
        n_classes=CLASSES,
        n_informative=informative,
        n_nuisance=4,
        part=part,
        **problem,
    )


def made_on_workers(rows: int, **problem: Any) -> tuple[Any, np.ndarray]:
    """Rows of the mixture as a Dask array whose chunks are made where they are, and labels."""
    sizes, width = [CHUNK_ROWS] * (rows // CHUNK_ROWS), problem.get("features", FEATURES)
    labels = [mixture(size, part, **problem)[1] for part, size in enumerate(sizes)]

    def chunk(numbers: np.ndarray, block_info: Any = None) -> np.ndarray:
        part = block_info[0]["chunk-location"][0]
        return mixture(len(numbers), part, **problem)[0]

    numbers = da.arange(rows, chunks=CHUNK_ROWS)
    X = numbers.map_blocks(chunk, new_axis=1, chunks=(tuple(sizes), (width,)), dtype=np.float32)
    return X, np.concatenate(labels)


def growth(sizes: list[int]) -> Group:
    """Fit LMNN to 1 % on two workers, on more and more rows."""
    group = Group(f"Growth: a mixture in {FEATURES} columns, LMNN to 1 %, two workers")
    header = ["rows", "s", "evaluations", "searches", "gap", "data MB", "moved MB"]
    table = Table([*header, "worker peak MB above base", "client peak MB above base"])
    seconds = []
    with workers(2) as client:
        for rows in sizes:
            X, y = mixture(rows)
            phases_of(LMNN(tol=0.5), chunked(X[:2000]), y[:2000])
            base, own = client.run(reset_peak), reset_peak()
            before = moved_bytes()
            took, model, record = phases_of(LMNN(tol=1e-2), chunked(X), y)
            peaks = client.run(peak_bytes)
            worker = max(peaks[name] - base[name] for name in peaks)
            seconds.append(took)
            table.rows.append(
                [rows, took, record.phases["hinge_cell"].count, len(record.candidates),
                 model.duality_gap_, X.nbytes / MB, (moved_bytes() - before) / MB, worker / MB,
                 (peak_bytes() - own) / MB]
            )  # fmt: skip
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    group.tables.append(table)
    group.notes.append(f"Seconds grow like n to the power of {exponent:.2f}.")
    group.notes.append(
        "The client here also makes the data and holds them, so its peak counts what the fit adds."
    )
    return group


def sample(rows: int) -> Group:
    """Accuracy of a metric from all rows and of one from a sample, with the same references."""
    group = Group(f"All {rows:,} rows, or a sample of {SAMPLE:,}?")
    table = Table(["metric", "s", "1-NN accuracy, %"])
    X, y = mixture(rows)
    queries, labels = mixture(QUERIES, part=1)
    table.rows.append(["Euclidean", None, _accuracy(np.eye(FEATURES), X, y, queries, labels)])
    chosen = np.random.default_rng(0).permutation(rows)[:SAMPLE]
    with workers(2):
        for name, some in ((f"sample of {SAMPLE:,}", chosen), ("all rows", np.arange(rows))):
            begin = time.perf_counter()
            model = LMNN(tol=1e-2).fit(chunked(X[some]), y[some])
            took = time.perf_counter() - begin
            accuracy = _accuracy(model.components_, X, y, queries, labels)
            table.rows.append([name, took, accuracy])
    group.tables.append(table)
    group.notes.append(f"All {rows:,} rows are the references of all three; {QUERIES:,} queries.")
    return group


def _accuracy(
    components: np.ndarray, X: np.ndarray, y: np.ndarray, queries: np.ndarray, labels: np.ndarray
) -> float:
    """Accuracy of the nearest neighbour in %."""
    kernels: Any = get_kernels("cpu")
    training = TrainingSet.from_labels(X, np.zeros(len(X), dtype=np.int64), kernels)
    # Rows may have lost a common offset, which queries must lose as well.
    shift = X[:1] - training.points.data[:1]
    embedding = kernels.embed(training.points, np.asarray(components, dtype=np.float64))
    there = (queries - shift) @ np.asarray(components, dtype=np.float32).T
    _, nearest = kernels.nearest(embedding, there, 1)
    return float(100.0 * (y[nearest[:, 0]] == labels).mean())
