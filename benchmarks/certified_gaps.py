"""Solve LMNN and MCML on the bundled data sets and print what is proved about each fit.

``python benchmarks/certified_gaps.py`` prints a Markdown table. The objective in it is not the
estimator's own: it is computed again from ``components_`` with SciPy's distances and NumPy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from lnml import LMNN, MCML
from lnml.datasets import load_dataset

SMALL = ("iris", "wine", "balance_scale", "ionosphere", "sonar")
ROWS = 500


def lmnn_objective(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Pull plus push of the fitted metric, a block of rows at a time."""
    Z, mu, total = model.transform(X), model.push_weight, 0.0
    targets = model.target_neighbors_
    for low in range(0, len(X), ROWS):
        rows = np.arange(low, min(low + ROWS, len(X)))
        distances = cdist(Z[rows], Z, "sqeuclidean")
        others = np.where(y[rows, None] == y, np.inf, distances)
        for i, row in enumerate(rows):
            partners = targets.indices[targets.indptr[row] : targets.indptr[row + 1]]
            near = others[i][others[i] < 1 + distances[i, partners].max(initial=0)]
            hinge = np.maximum(1 + distances[i, partners, None] - near, 0).sum()
            total += (1 - mu) * distances[i, partners].sum() + mu * hinge
    return float(total)


def mcml_objective(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Divergence of the fitted metric's neighbour choice from the ideal one."""
    Z = model.transform(X)
    distances = cdist(Z, Z, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    sizes = same.sum(axis=1)
    pull = np.where(same, distances, 0).sum(axis=1) / sizes
    return float((pull + logsumexp(-distances, axis=1) - np.log(sizes)).sum())


def measure(model: Any, data: Any, objective: Callable[..., float]) -> list[str]:
    """Fit twice and time the second fit; return objective, gap and seconds."""
    model.fit(data.data, data.target)
    start = time.perf_counter()
    model.fit(data.data, data.target)
    seconds = time.perf_counter() - start
    again = objective(model, data.data, data.target)
    return [f"{again:.2f}", f"{model.duality_gap_:.1e}", f"{seconds:.2f}"]


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letter", action="store_true", help="LMNN on all of Letter, too")
    options = parser.parse_args()
    header = ["data", "rows × columns"]
    header += [f"{name} {what}" for name in ("LMNN", "MCML") for what in ("objective", "gap", "s")]
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for name in (*SMALL, "letter") if options.letter else SMALL:
        data = load_dataset(name)
        cells = [name, "{} × {}".format(*data.data.shape)]
        cells += measure(LMNN(), data, lmnn_objective)
        cells += measure(MCML(), data, mcml_objective) if name in SMALL else ["", "", ""]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
