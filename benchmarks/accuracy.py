"""Measure the ten-fold accuracies that the documentation quotes.

Two examples are ``python benchmarks/accuracy.py letter --methods lmnn ln-lmnn ln-lmnn-cv`` and
``python benchmarks/accuracy.py balance_scale --methods mcml ln-mcml-cv``. Features are raw, but
for methods that ask for scaled ones, and the classifier is the 1-nearest-neighbour rule.
"""

from __future__ import annotations

import argparse
import warnings

from sklearn.exceptions import ConvergenceWarning

from lnml.datasets import load_dataset
from lnml.evaluation import compare
from lnml.registry import PAPER_METHODS, built_in, find_method, methods_by_name
from lnml.report.layout import accuracy_table
from lnml.report.tables import text_table


def main() -> None:
    """Print a table with one row per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help="bundled data sets")
    parser.add_argument("--methods", nargs="+", choices=built_in(), default=PAPER_METHODS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    methods = methods_by_name(options.methods, options.seed)
    scaled = [m.name for m in map(find_method, options.methods) if m.scale == "standard"]
    found = []
    for name in options.names:
        data = load_dataset(name)
        found.append(
            compare(
                data.data,
                data.target,
                methods,
                name=name,
                seed=options.seed,
                n_jobs=options.jobs,
                scaled=scaled,
            )
        )
    print(accuracy_table(found).to_text())
    seconds = [[c.data.name, *(f"{c.seconds(m):.1f}" for m in methods)] for c in found]
    print(text_table(["seconds a fit", *methods], seconds))


if __name__ == "__main__":
    main()
