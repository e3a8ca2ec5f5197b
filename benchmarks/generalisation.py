"""Whether a metric chosen by default generalises better than others: nested cross-validation.

    python benchmarks/generalisation.py build/generalisation --jobs 16 --report build/report.md
    python benchmarks/generalisation.py build/generalisation --methods euclidean,lmnn --seeds 0

Five outer stratified folds and three seeds, at most 1,500 rows of a data set, columns standardised
from the training part, more than 100 of them replaced by principal components; the nearest training
row decides. The paper group has 13 data sets; five of them are files of the folder ``dev`` in the
directory that the environment variable LNML_DATA names. ``--other FOLDER`` adds the data sets of a
folder, made by ``generalisation_suite/fetch.py``.

The output folder keeps one small file for each data set, seed, fold and method. A run computes what
is missing and what has failed, then writes the report. ``--variant 'loose=LMNN(tol=1e-2)'`` adds a
metric without a change of the code. A changed method needs another key or another folder.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from generalisation_suite import pool, sets
from generalisation_suite.methods import METHODS, RECOMMENDED
from generalisation_suite.page import page
from generalisation_suite.tasks import Task


def main() -> None:
    """Compute what is missing, then report."""
    options = _parse()
    variants = dict(text.split("=", 1) for text in options.variant)
    methods = dict.fromkeys([*(options.methods or METHODS), *variants])
    if unknown := set(methods) - {*METHODS, *variants}:
        sys.exit(f"unknown methods: {', '.join(sorted(unknown))}")
    try:
        tasks = [
            Task(data, seed, fold, method, variants.get(method))
            for data in _data(options)
            for seed in options.seeds
            for fold in options.folds
            for method in methods
        ]
        todo = pool.missing(tasks, options.output)
        print(f"{len(tasks) - len(todo)} of {len(tasks)} results are there", flush=True)
        left = pool.run(todo, options.output, options.jobs, options.time_limit)
    except sets.MissingData as error:
        sys.exit(str(error))
    if left:
        print(f"the time is over: {left} of {len(tasks)} results are left; run it again")
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(page(tasks, options.output, options.recommended), "utf-8")


def _data(options: argparse.Namespace) -> list[sets.DataSet]:
    found = sets.paper_group() if "paper" in options.groups else []
    if options.other is not None and "other" in options.groups:
        found += sets.other_group(options.other)
    return sets.chosen(found, options.sets)


def _parse() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument("--other", type=Path, help="folder of other data sets (.npz with X and y)")
    parser.add_argument("--groups", type=names, default=["paper", "other"])
    parser.add_argument("--sets", type=names, help="names of data sets (default all)")
    parser.add_argument("--methods", type=names, help=f"some of {','.join(METHODS)} (default all)")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=EXPRESSION")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--folds", type=numbers, default=list(range(sets.N_FOLDS)))
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--time-limit", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("--recommended", default=RECOMMENDED, help="method that is judged")
    parser.add_argument("--report", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
