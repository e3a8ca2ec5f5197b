"""Bytes that the steps of a fit move, beside what their formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np
from suite.report import Group, Table

from cluster_suite.growth import CLASSES, FEATURES, made_on_workers
from cluster_suite.measure import moved_bytes, workers
from cluster_suite.model import shares
from lnml.kernels import get_kernels
from lnml.kernels.cluster.layout import Layout
from lnml.kernels.training import TrainingSet

TARGETS = 3
WORKERS = 4
MB = 1e6


def traffic(rows: int) -> Group:
    """Count the bytes of placing rows, of an assignment, a search and an evaluation."""
    X, y = made_on_workers(rows)
    group = Group(f"What moves: {rows:,} rows of {FEATURES} columns, {WORKERS} workers")
    group.tables.append(Table(["step", "formula MB", "measured MB", "measured / formula"]))
    with workers(WORKERS):
        kernels = get_kernels("cluster")
        with kernels.session():
            training = _count(
                group,
                "placed once",
                _placed(rows),
                lambda: _all_placed(TrainingSet.from_labels(X, y, kernels)),
            )
            _steps(group, kernels, training, rows)
    return group


def _all_placed(training: TrainingSet) -> TrainingSet:
    """Let every worker have its blocks: the first step that needs them brings them."""
    embedding = training.kernels.embed(training.points, np.eye(FEATURES))
    training.kernels.within(embedding, np.zeros(training.points.n_rows))
    return training


def _steps(group: Group, kernels: Any, training: TrainingSet, rows: int) -> None:
    """Count the steps of a fit."""
    _, copies = shares(rows, WORKERS)
    layout = Layout.of(training.points.class_start)
    embedding = kernels.embed(training.points, 0.3 * np.eye(FEATURES))
    pairs, matrix = 8.0 * rows * TARGETS, 8.0 * FEATURES * FEATURES
    # An assignment brings lists of numbers and distances of every cell that shares a class.
    lists = 16.0 * rows * TARGETS * (1.0 + 2.0 / (CLASSES / layout.n_blocks + 1.0))
    found = _count(group, "an assignment", lists, lambda: kernels.partners(embedding, TARGETS))
    targets = found.pairs
    reach = 1.0 + kernels.distances(embedding, targets, longest=True)
    # The radius of a row is sent to each worker that keeps it.
    radius = 8.0 * rows * copies
    search = _count(group, "a search", radius, lambda: kernels.within(embedding, reach))
    working = kernels.working_set(targets, search.found)
    kernels.hinge(embedding, working, 0.1, moment="coordinates")
    again = kernels.embed(training.points, 0.31 * np.eye(FEATURES))
    numbers = pairs * (2.0 + 2.0 * copies) + matrix * (2.0 + 7.0 * WORKERS)
    _count(
        group,
        "an evaluation",
        numbers,
        lambda: kernels.hinge(again, working, 0.1, moment="coordinates"),
    )


def _placed(rows: int) -> float:
    """Bytes of rows that are brought to their block, and to the workers that need a copy."""
    _, copies = shares(rows, WORKERS)
    return 4.0 * rows * FEATURES * ((1.0 - 1.0 / WORKERS) + (copies - 1.0))


def _count(group: Group, name: str, formula: float, step: Any) -> Any:
    """Run a step; note the bytes it moved."""
    before = moved_bytes()
    found = step()
    moved = moved_bytes() - before
    ratio = moved / formula if formula else None
    group.tables[0].rows.append([name, formula / MB, moved / MB, ratio])
    return found
