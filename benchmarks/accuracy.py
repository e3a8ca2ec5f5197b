"""Ten-fold accuracies behind the claims of the documentation.

``python benchmarks/accuracy.py letter`` compares LMNN with LN-LMNN, fixed and cross-validated;
``balance_scale`` LN-MCML with its number of neighbours cross-validated; ``wine`` (and any other
bundled name) adds ITML with its slack cross-validated. Folds are those of lnml.evaluation, the
classifier is the 1-nearest-neighbour rule, features are raw.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from lnml import ITML, LMNN, LNML, LNMLCV, MCML, NCA
from lnml.datasets import load_dataset
from lnml.evaluation import cross_validate
from lnml.report.tables import text_table

SLACKS = (0.01, 0.1, 1.0, 10.0)


class CrossValidatedITML(ITML):
    """ITML with the slack that classifies best in two-fold cross-validation."""

    def fit(self, X: Any, y: Any) -> CrossValidatedITML:
        """Choose gamma, then fit."""
        steps = [("metric", ITML(random_state=self.random_state)), ("knn", KNeighborsClassifier(1))]
        search = GridSearchCV(Pipeline(steps), {"metric__gamma": SLACKS}, cv=2, refit=False)
        self.gamma = search.fit(X, y).best_params_["metric__gamma"]
        return super().fit(X, y)


LARGE = {
    "Euclidean": None,
    "LMNN": LMNN(),
    "LN-LMNN (3,3,3)": LNML(LMNN()),
    "LN-LMNN (CV)": LNMLCV(LMNN()),
}
SMALL = {
    **LARGE,
    "MCML": MCML(),
    "LN-MCML (CV)": LNMLCV(MCML()),
    "NCA": NCA(),
    "ITML (CV)": CrossValidatedITML(random_state=0),
}


def main() -> None:
    """Print a table with one row per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help="bundled data sets")
    parser.add_argument("--methods", nargs="+", choices=SMALL)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    for name in options.names:
        data = load_dataset(name)
        methods = LARGE if name == "letter" else SMALL
        if options.methods:
            methods = {key: SMALL[key] for key in options.methods}
        correct: dict[str, list[np.ndarray]] = {key: [] for key in methods}
        seconds: dict[str, float] = dict.fromkeys(methods, 0.0)
        X = data.data.astype(np.float64)
        for result in cross_validate(
            X, data.target, methods, seed=options.seed, n_jobs=options.jobs
        ):
            correct[result.method].append(result.correct)
            seconds[result.method] += result.seconds
            print(f"{name} fold {result.fold} {result.method}: {result.correct.mean():.4f}")
        accuracy = [f"{100 * np.concatenate(correct[key]).mean():.2f}" for key in methods]
        rows = [["accuracy %", *accuracy], ["seconds", *(f"{seconds[key]:.0f}" for key in methods)]]
        print(text_table([name, *methods], rows), flush=True)


if __name__ == "__main__":
    main()
