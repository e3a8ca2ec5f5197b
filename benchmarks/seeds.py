"""Run the study's small data with several seeds: how much depends on the choice of folds?

``python benchmarks/seeds.py build/seeds`` runs ``lnml study`` with ten seeds. It keeps finished
folds in the folder and does not repeat them. It prints the mean and standard deviation over seeds
of accuracies and total scores, with the paper's accuracies below ours. In a second table LN-LMNN
is stopped early; each line takes the place of the same method that goes on to its end.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lnml import LMNN, LNML, LNMLCV
from lnml.datasets import load_dataset
from lnml.evaluation import compare, paper_scores, total_scores
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import correct_by_method
from lnml.report.tables import text_table
from lnml.study.paper import ACCURACY, SMALL_COLUMNS
from lnml.study.problems import SMALL
from lnml.study.run import run_study


def stopped_early(seed: int) -> dict[str, tuple[str, Any]]:
    """Return estimators by name, and the method whose place each takes."""
    return {
        "LN-LMNN, 5 rounds": ("LN-LMNN", LNML(LMNN(), max_rounds=5)),
        "LN-LMNN (CV), 5 rounds": (
            "LN-LMNN (CV)",
            LNMLCV(LMNN(), max_rounds=5, random_state=seed),
        ),
        "LN-LMNN (CV), rounds chosen": (
            "LN-LMNN (CV)",
            LNMLCV(LMNN(), choose_rounds=True, random_state=seed),
        ),
    }


def study_of(seed: int, folder: Path, n_jobs: int) -> list[Comparison]:
    """Return the comparisons of one seed, by data set."""
    found = run_study(SMALL, folder / f"seed{seed}", seed=seed, n_jobs=n_jobs).found
    return [comparison for comparison, _ in found.values()]


def mean_and_spread(values: list[list[float]]) -> list[str]:
    """Cells of one line of the table, one for each column of ``values``; its rows are seeds."""
    columns = np.array(values).T
    return [f"{column.mean():.1f} ± {column.std(ddof=1):.1f}" for column in columns]


def table(studies: Sequence[Sequence[Comparison]]) -> str:
    """Mean and standard deviation of accuracies and of total scores over the studies."""
    rows = []
    for of_data in zip(*studies, strict=True):
        title = of_data[0].data.name
        accuracies = [[100 * c.accuracy(m) for m in SMALL_COLUMNS] for c in of_data]
        rows.append([title, *mean_and_spread(accuracies)])
        rows.append(["paper", *(f"{ACCURACY[title][m]:.1f}" for m in SMALL_COLUMNS)])
    totals = [total_scores(paper_scores(c) for c in study) for study in studies]
    scores = [[total[m] for m in SMALL_COLUMNS] for total in totals]
    rows.append(["total score", *mean_and_spread(scores)])
    return text_table(["data set", *SMALL_COLUMNS], rows)


def early_table(studies: Sequence[Sequence[Comparison]], n_jobs: int) -> str:
    """Accuracies of methods stopped early, their total scores, and NCA's beside them."""
    rows = []
    for name, (original, _) in stopped_early(0).items():
        accuracies, totals = [], []
        for seed, study in enumerate(studies):
            model = stopped_early(seed)[name][1]
            found = [_on_same_folds(data.name, model, seed, n_jobs) for data in SMALL]
            accuracies.append([100 * one.mean() for one in found])
            scores = [
                paper_scores({**correct_by_method(c), original: one})
                for c, one in zip(study, found, strict=True)
            ]
            total = total_scores(scores)
            totals.append([total[original], total["NCA"]])
        rows.append([name, *mean_and_spread(accuracies), *mean_and_spread(totals)])
    titles = [data.title for data in SMALL]
    return text_table(["method", *titles, "total score", "NCA score"], rows)


def _on_same_folds(name: str, model: Any, seed: int, n_jobs: int) -> np.ndarray:
    """Which rows a method gets right on the folds of the study, in the order of the rows."""
    data = load_dataset(name)
    return compare(data.data, data.target, {"": model}, seed=seed, n_jobs=n_jobs).correct("")


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    seeds = range(options.seeds)
    studies = [study_of(seed, options.folder, options.jobs) for seed in seeds]
    print(table(studies), early_table(studies, options.jobs), sep="\n\n")


if __name__ == "__main__":
    main()
