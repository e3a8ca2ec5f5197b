"""Is the mean of four metrics worth its time when there are many rows?

``python benchmarks/averages.py`` fits the candidates of AutoMetric once to all training rows, and
to four subsamples of 75 % of them, whose metrics are averaged. It prints the accuracy of the
nearest neighbour on 5,000 other rows and the seconds of both, for growing numbers of rows. Columns
are standardised; more than 30 of them are replaced by 30 principal components. MNIST needs the
environment variable LNML_DATA (docs/cli.md).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from lnml import LMNN, LNML, AveragedMetric
from lnml.datasets import list_datasets, load_dataset, load_large_dataset
from lnml.evaluation import predict_nearest

ROWS = (1_000, 3_000, 12_000)
TESTED = 5_000
MOST_COLUMNS = 30
CANDIDATES: dict[str, Any] = {
    "LN-LMNN (1, 3, 5), 0.01": LNML(
        LMNN(trace_penalty=0.01), k_min=1, k_max=5, max_rounds=10, tol=1e-2
    ),
    "LMNN, 0.1": LMNN(trace_penalty=0.1, tol=1e-2),
}


def measured(name: str, n_rows: int, seed: int) -> None:
    """Print the accuracies and seconds of one draw of the rows."""
    load = load_dataset if name in list_datasets() else load_large_dataset
    data = load(name)
    order = np.random.default_rng(seed).permutation(len(data.target))
    train, test = order[TESTED : TESTED + n_rows], order[:TESTED]
    X, X_test = data.data[train].astype(float), data.data[test].astype(float)
    y, y_test = data.target[train], data.target[test]
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    if X.shape[1] > MOST_COLUMNS:
        axes = PCA(MOST_COLUMNS, random_state=0).fit(X)
        X, X_test = axes.transform(X), axes.transform(X_test)
    euclidean = np.mean(predict_nearest(X, y, X_test) == y_test)
    print(f"{name:8} {n_rows:6} seed {seed}  Euclidean {100 * euclidean:.2f}", flush=True)
    for label, candidate in CANDIDATES.items():
        line = f"{name:8} {n_rows:6} seed {seed}  {label:24}"
        for kind, model in (("one", candidate), ("mean", AveragedMetric(candidate))):
            start = time.perf_counter()
            fitted = model.fit(X, y)
            seconds = time.perf_counter() - start
            found = predict_nearest(fitted.transform(X), y, fitted.transform(X_test))
            line += f"  {kind} {100 * np.mean(found == y_test):.2f} in {seconds:.1f} s"
        print(line, flush=True)


def main() -> None:
    """Measure all numbers of rows, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=("letter", "mnist"))
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n_rows in options.rows:
        for name in options.names:
            for seed in range(options.seeds):
                measured(name, n_rows, seed)


if __name__ == "__main__":
    main()
