"""Compare LNMLCV with scikit-learn's grid search over LNML, on the same grid and folds.

``python benchmarks/lnml_cv.py`` prints a Markdown table. Both searches include their last fit on
all rows and run in one process. Seconds are processor time, the least of some interleaved repeats.
``--held-out`` compares the ways to search by their accuracy on a third of the rows, which no fit
sees.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from suite.rows import bundled

from lnml import LNML, LNMLCV
from lnml.datasets import load_dataset
from lnml.estimators.lnml_cv import FLEXIBLE_GRID
from lnml.evaluation import predict_nearest
from lnml.report.tables import text_table

ROWS = {"wine": 178, "balance_scale": 625, "letter": 4000}
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)
HEADER = [
    "data",
    "rows",
    "GridSearchCV, s",
    "LNMLCV, s",
    "× faster",
    "cv_tol=tol, s",
    "× faster",
    "largest difference of a mean score",
    "choice, GridSearchCV",
    "choice, LNMLCV",
]


def searches() -> dict[str, Any]:
    """Return the three searches, not fitted."""
    names = ("metric__k_min", "metric__k_av", "metric__k_max")
    candidates = [
        {name: [size] for name, size in zip(names, sizes, strict=True)} for sizes in FLEXIBLE_GRID
    ]
    pipeline = Pipeline([("metric", LNML()), ("nearest", KNeighborsClassifier(1))])
    return {
        "grid search": GridSearchCV(pipeline, candidates, cv=FOLDS),
        "LNMLCV": LNMLCV(cv=FOLDS),
        "exact": LNMLCV(cv=FOLDS, cv_tol=1e-3),
    }


def measure(name: str, repeats: int) -> list[str]:
    """Return one line of the table."""
    X, y = bundled(name, ROWS[name])
    seconds: dict[str, float] = {}
    fitted = {}
    for _ in range(repeats):
        for method, search in searches().items():
            start = time.process_time()
            fitted[method] = search.fit(X, y)
            taken = time.process_time() - start
            scores = np.round(100 * search.cv_results_["mean_test_score"], 2)
            print(f"{name}: {method}, {taken:.2f} s, scores {scores}", file=sys.stderr, flush=True)
            seconds[method] = min(taken, seconds.get(method, np.inf))
    scores = {method: search.cv_results_["mean_test_score"] for method, search in fitted.items()}
    difference = np.abs(scores["LNMLCV"] - scores["grid search"]).max()
    return [
        name,
        f"{len(X):,}",
        f"{seconds['grid search']:.2f}",
        f"{seconds['LNMLCV']:.2f}",
        f"{seconds['grid search'] / seconds['LNMLCV']:.2f}",
        f"{seconds['exact']:.2f}",
        f"{seconds['grid search'] / seconds['exact']:.2f}",
        f"{100 * difference:.2f} %",
        *(
            f"{tuple(FLEXIBLE_GRID[fitted[method].best_index_])}: "
            f"{100 * fitted[method].best_score_:.2f} %"
            for method in ("grid search", "LNMLCV")
        ),
    ]


def held_out(name: str, shuffles: int) -> list[str]:
    """Return one line: mean seconds and mean accuracy on rows left out, over some shuffles."""
    data = load_dataset(name)
    ways = {
        "exact": {"cv_tol": 1e-3},
        "default": {},
        "warm": {"warm_grid": True},
    }
    seconds, accuracy = np.zeros((len(ways), shuffles)), np.zeros((len(ways), shuffles))
    for seed in range(shuffles):
        train, test, known, wanted = train_test_split(
            data.data, data.target, test_size=1 / 3, stratify=data.target, random_state=seed
        )
        for way, parameters in enumerate(ways.values()):
            start = time.process_time()
            model = LNMLCV(random_state=seed, **parameters).fit(train, known)
            seconds[way, seed] = time.process_time() - start
            predicted = predict_nearest(model.transform(train), known, model.transform(test))
            accuracy[way, seed] = 100 * np.mean(predicted == wanted)
        print(name, seed, seconds[:, seed], accuracy[:, seed], file=sys.stderr, flush=True)
    cells = [
        f"{s:.1f} s, {a:.1f} %" for s, a in zip(seconds.mean(1), accuracy.mean(1), strict=True)
    ]
    return [name, *cells]


def main() -> None:
    """Measure all data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--repeats", type=int, default=3, help="of each search (default 3)")
    parser.add_argument("--held-out", nargs="+", metavar="NAME", help="data sets")
    parser.add_argument("--shuffles", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.held_out:
        lines = [held_out(name, options.shuffles) for name in options.held_out]
        header = ["data", "cv_tol = tol", "LNMLCV", "warm_grid=True"]
        print(text_table(header, lines))
        return
    X, y = bundled("wine", 100)
    for search in searches().values():
        search.fit(X, y)  # loads the compiled code
    print(text_table(HEADER, [measure(name, options.repeats) for name in options.data]))


if __name__ == "__main__":
    main()
