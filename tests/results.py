"""Results made up for tests of statistics, pictures and reports."""

import numpy as np

from lnml.evaluation.explanation import Apart, Explanation, HardRow, Near
from lnml.evaluation.portraits import Portrait, Suspect
from lnml.evaluation.results import Comparison, DataSummary, FoldResult, Provenance
from lnml.evaluation.weights import column_weights

PROVENANCE = Provenance(
    command="lnml compare toy.csv --label class",
    settings={"folds": 2, "seed": 7, "scale": False},
    versions={"lnml": "0.1", "Python": "3.11"},
    created="2026-01-01T00:00:00+00:00",
)


def random_comparison(name, rates, *, n=120, seed=0, unfinished=(), classifiers=()):
    """Methods that are right with the given rates, in two folds."""
    rng = np.random.default_rng(seed)
    rows, results = np.arange(n), []
    truth = (rows >= n // 2).astype(int)
    for method, rate in rates.items():
        correct = rng.uniform(size=n) < rate
        predicted = np.where(correct, truth, 1 - truth)
        for fold in range(2):
            results.append(
                FoldResult(
                    method,
                    fold,
                    rows[fold::2],
                    correct[fold::2],
                    converged=method not in unfinished,
                    seconds=0.5 + fold,
                    peak_mb=12.0,
                    gap=1e-3,
                    chosen={"k_min": 1 + fold} if "CV" in method else {},
                    k=None if method in classifiers else 1 + 2 * fold,
                    classifier=method in classifiers,
                    predicted=predicted[fold::2],
                )
            )
    sizes = {"x": n // 2, "y": n - n // 2}
    return Comparison(DataSummary(name, 4, sizes, "ab" * 32, truth.tolist()), tuple(results))


def made_up_explanation(method="LMNN", labels=("x", "y"), *, n_columns=4):
    """A metric of two dimensions, and two hard rows that the views show."""
    rng = np.random.default_rng(0)
    names = [f"column {i}" for i in range(n_columns)]
    weights = column_weights(
        rng.normal(size=(2, n_columns)), rng.normal(size=(9, n_columns)), names
    )
    first, last = str(labels[0]), str(labels[-1])
    near = (Near(8, last, 0.5), Near(10, first, 0.75))
    apart = (Apart("column 1", -1.25, 0.8), Apart("column 0", 0.5, 0.2))
    return Explanation(
        method,
        118,
        3,
        weights,
        tuple(HardRow(row, first, last, 2, near, near[1], apart) for row in (2, 4)),
    )


def random_portrait(labels=("x", "y"), *, n=60, seed=0):
    """Random points with two target neighbours each."""
    rng = np.random.default_rng(seed)
    of_row = np.array(labels, dtype=str)[np.arange(n) % len(labels)]
    edges = np.column_stack([np.repeat(np.arange(n), 2), rng.integers(0, n, 2 * n)])
    counts = {label: [0, 3, 7, 2] for label in labels}
    history = [
        {"seconds": 0.1 * i, "objective": 9.0 + 10 / i, "bound": 9.0 - 5 / i} for i in range(1, 8)
    ]
    return Portrait(
        method="LN-LMNN (1, 3, 5)",
        n_rows=2 * n,
        rows=np.arange(0, 2 * n, 2),
        labels=of_row,
        before=rng.normal(size=(n, 2)),
        after=rng.normal(size=(n, 2)),
        edges_before=edges,
        edges_after=edges[::2],
        neighbor_counts=counts,
        suspects=(
            Suspect(4, str(labels[0]), 1, 3.25, str(labels[-1])),
            Suspect(7, "y", 1, 2.0, "y"),
        ),
        histories={"LMNN": history, "NCA": [{"seconds": 0.2, "objective": 3.0}]},
    )
