"""Do LNML's loosely solved early rounds cost accuracy?

LNML solves early rounds only as far as it pays (docs/lnml.md). ``python
benchmarks/round_tolerance.py`` compares this with every round solved to ``tol``. It prints the
ten-fold accuracy of the 1-nearest-neighbour rule on raw features under LN-LMNN (3, 3, 3), over
several shuffles of the folds, and the paired difference with its standard error.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from lnml import LMNN, LNML
from lnml.datasets import load_dataset
from lnml.evaluation import compare
from lnml.learning import alternation
from lnml.report.tables import text_table

NAMES = ("sonar", "ionosphere", "wine")
HEADER = ["data", "loose, %", "tight, %", "difference", "time, tight / loose"]
TOL = 1e-3
Loose = alternation._Pace


class Tight(Loose):
    """The pace of rounds that are all solved to the goal."""

    def __init__(self, goal: float) -> None:
        super().__init__(goal)
        self.tighten()


def measure(name: str, pace: type[Loose], n_seeds: int) -> tuple[np.ndarray, float]:
    """Accuracy in percent of every shuffle, and the mean seconds of a fit."""
    alternation._Pace = pace  # type: ignore[misc]
    data = load_dataset(name)
    found = [
        compare(data.data, data.target, {"LNML": LNML(LMNN(), tol=TOL)}, seed=seed)
        for seed in range(n_seeds)
    ]
    seconds = np.mean([one.seconds("LNML") for one in found])
    return 100 * np.array([one.accuracy("LNML") for one in found]), float(seconds)


def main() -> None:
    """Print one row per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help="bundled data sets")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows = []
    for name in options.names:
        loose, loose_seconds = measure(name, Loose, options.seeds)
        tight, tight_seconds = measure(name, Tight, options.seeds)
        difference = loose - tight
        error = difference.std(ddof=1) / np.sqrt(options.seeds)
        rows.append(
            [
                name,
                f"{loose.mean():.2f}",
                f"{tight.mean():.2f}",
                f"{difference.mean():+.2f} ± {error:.2f}",
                f"{tight_seconds / loose_seconds:.1f}",
            ]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    print(text_table(HEADER, rows))


if __name__ == "__main__":
    main()
