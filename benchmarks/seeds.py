"""The study's small data over several seeds: how much of a difference is the choice of folds.

``python benchmarks/seeds.py build/seeds`` runs ``lnml study`` with ten seeds, keeps finished folds
in the folder and goes on with those already there. It prints the mean accuracy and its standard
deviation over seeds, the paper's accuracy below, and the mean of the paper's total score.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lnml.evaluation import paper_scores, total_scores
from lnml.evaluation.results import Comparison
from lnml.report.tables import text_table
from lnml.study.paper import ACCURACY, SMALL_COLUMNS
from lnml.study.problems import SMALL
from lnml.study.run import run_study


def study_of(seed: int, folder: Path, n_jobs: int) -> list[Comparison]:
    """Return the comparisons of one seed, by data set."""
    found = run_study(SMALL, folder / f"seed{seed}", seed=seed, n_jobs=n_jobs).found
    return [comparison for comparison, _ in found.values()]


def mean_and_spread(values: list[list[float]]) -> list[str]:
    """Cells of one line of the table: a column of ``values`` each, seeds along its rows."""
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


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    seeds = range(options.seeds)
    print(table([study_of(seed, options.folder, options.jobs) for seed in seeds]))


if __name__ == "__main__":
    main()
