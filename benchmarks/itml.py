"""Measure ITML by the paper's protocol, and its time in high dimension.

``python benchmarks/itml.py`` prints the 10-fold cross-validated accuracy of the
1-nearest-neighbour rule, Euclidean and under ITML. Two-fold cross-validation chooses gamma inside
each training part. It also prints the time of a fit with 5,000 features and 100 constraints.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from lnml import ITML
from lnml.datasets import load_dataset

GAMMAS = [0.01, 0.1, 1, 10]
SEEDS = 5


def learner(seed, *before):
    """Return ITML followed by 1-NN; two-fold cross-validation chooses gamma."""
    steps = [*before, ("itml", ITML(random_state=seed)), ("nn", nearest())]
    inner = StratifiedKFold(2, shuffle=True, random_state=seed)
    return GridSearchCV(Pipeline(steps), {"itml__gamma": GAMMAS}, cv=inner, error_score="raise")


def nearest():
    """Return 1-NN; among equally near rows the first wins."""
    return KNeighborsClassifier(1, algorithm="brute")


def accuracies(name):
    """Print mean and spread over seeds, on raw and on standardised features."""
    data = load_dataset(name)
    found = {"Euclidean": [], "ITML": [], "standardised": [], "standardised, ITML": []}
    for seed in range(SEEDS):
        scale = ("scale", StandardScaler())
        models = {
            "Euclidean": nearest(),
            "ITML": learner(seed),
            "standardised": Pipeline([scale, ("nn", nearest())]),
            "standardised, ITML": learner(seed, scale),
        }
        folds = StratifiedKFold(10, shuffle=True, random_state=seed)
        for method, model in models.items():
            scores = cross_val_score(model, data.data, data.target, cv=folds, error_score="raise")
            found[method].append(100 * scores.mean())
    for method, values in found.items():
        print(f"{name:14s} {method:20s} {np.mean(values):6.2f} ± {np.std(values):.2f}", flush=True)


def high_dimension(n_features=5000, n_rows=500):
    """Print the time of a fit with 100 constraints."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = rng.standard_normal((n_rows, n_features))
    X[:, :20] += 2 * y[:, None]
    model = ITML(n_constraints=100, random_state=0)
    model.fit(X[:50, :10], y[:50])
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    print(
        f"{n_rows} x {n_features}, 100 constraints: {seconds:.2f} s ({cpu:.2f} s of one core), "
        f"{model.n_iter_} iterations, gap {model.duality_gap_:.1e}"
    )


if __name__ == "__main__":
    warnings.simplefilter("always", ConvergenceWarning)
    high_dimension()
    for name in ("wine", "balance_scale", "iris", "ionosphere", "sonar"):
        accuracies(name)
