"""Does LN-LMNN gain accuracy, or lose it, by going on to its end?

``python benchmarks/rounds.py`` stops LN-LMNN after a given number of rounds, with the last metric
solved to ``tol``, or solves all metrics to a looser tolerance. It prints the ten-fold accuracy of
the 1-nearest-neighbour rule on raw features, as mean and standard deviation over several shuffles
of the folds. In parentheses is the mean objective on the training rows, relative to that of fits
which end by themselves.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lnml import LMNN, LNML
from lnml.datasets import load_dataset
from lnml.evaluation import predict_nearest
from lnml.evaluation.problem import stratified_folds
from lnml.report.tables import text_table

NAMES = ("sonar", "ionosphere", "wine", "iris", "balance_scale")
SIZES = {"(3, 3, 3)": {}, "(1, 3, 5)": {"k_min": 1, "k_max": 5}}
LIMITS: dict[str, dict[str, Any]] = {
    "1 round": {"max_rounds": 1},
    "2 rounds": {"max_rounds": 2},
    "5 rounds": {"max_rounds": 5},
    "10 rounds": {"max_rounds": 10},
    "tol 10 %": {"tol": 0.1},
    "tol 1 %": {"tol": 0.01},
    "to the end": {},
}


def one_shuffle(name: str, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Accuracy in percent and mean objective, by sizes and limit."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = load_dataset(name)
    X, y = data.data, data.target
    models = {"LMNN": {"": LMNN()}}
    for sizes, given in SIZES.items():
        models[sizes] = {limit: LNML(LMNN(), **given, **more) for limit, more in LIMITS.items()}
    splits = stratified_folds(y, 10, seed)
    found = {}
    for sizes, of_sizes in models.items():
        for limit, model in of_sizes.items():
            right, objectives = 0, []
            for train, test in splits:
                fitted = clone(model).fit(X[train], y[train])
                near, asked = fitted.transform(X[train]), fitted.transform(X[test])
                right += int(np.sum(predict_nearest(near, y[train], asked) == y[test]))
                objectives.append(fitted.objective_)
            found[sizes, limit] = (100.0 * right / len(y), float(np.mean(objectives)))
    return found


def main() -> None:
    """Print one line per data set and sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help="bundled data sets")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    rows = []
    for name in options.names:
        shuffles = Parallel(n_jobs=options.jobs)(
            delayed(one_shuffle)(name, seed) for seed in range(options.seeds)
        )
        baseline = np.mean([found["LMNN", ""][0] for found in shuffles])
        for sizes in SIZES:
            row = [name, sizes, f"{baseline:.1f}"]
            last = np.array([found[sizes, "to the end"][1] for found in shuffles])
            for limit in LIMITS:
                accuracy = np.array([found[sizes, limit][0] for found in shuffles])
                excess = np.mean([found[sizes, limit][1] for found in shuffles] / last)
                row.append(f"{accuracy.mean():.1f} ± {accuracy.std(ddof=1):.1f} ({excess:.2f})")
            rows.append(row)
    print(text_table(["data", "sizes", "LMNN", *LIMITS], rows))


if __name__ == "__main__":
    main()
