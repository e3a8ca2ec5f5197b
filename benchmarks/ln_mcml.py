"""LNML over MCML against one fit of MCML to the same data, data set by data set.

    python benchmarks/ln_mcml.py
    python benchmarks/ln_mcml.py --old ../old --sets libras words

A line is a fit of ``MCML()`` and one of ``LNML(MCML())`` (sizes 3, 3, 3) with default tolerances:
CPU seconds of all threads, their ratio, and of the second fit passes over all pairs, proofs,
rounds, the objective, the proved gap, and whether it warned. Columns are standardised. ``--old``
names another checkout; both fit each data set in turns, in a process each. Data that do not ship
with lnml are read from the directory that the environment variable LNML_DATA names, and are left
out without it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lagging_bound import RAW, Table, bundled, poisson, principal, standardised
from sklearn.feature_extraction.text import CountVectorizer

from lnml.datasets import load_large_dataset
from lnml.evaluation.problem import stratified_sample


def sampled(load: Callable[[], Table], n_rows: int) -> Table:
    """Return a stratified sample of rows (seed 0)."""
    X, y = load()
    kept = stratified_sample(np.unique(y, return_inverse=True)[1], n_rows, 0)
    return X[kept], y[kept]


def words(n_words: int) -> Table:
    """Return how often medical abstracts have each of the most frequent words."""
    data = load_large_dataset("medical_abstracts")
    counts = CountVectorizer(max_features=n_words, stop_words="english")
    return counts.fit_transform(data.data).toarray().astype(np.float64), data.target


SETS = {
    **{name: RAW[name] for name in ("iris", "wine", "balance", "sonar", "ionosphere", "libras")},
    "vehicle 500": partial(sampled, RAW["vehicle"], 500),
    "words 864 x 100": partial(sampled, partial(words, 100), 864),
    "counts 864 x 100": partial(principal, partial(poisson, 864, 857, 9), 864, 100),
}


def counted(owner: Any, name: str) -> list[int]:
    """Count the calls of a function from now on; the list holds their number."""
    function, calls = getattr(owner, name), [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return function(*args, **kwargs)

    setattr(owner, name, call)
    return calls


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Fit; return CPU seconds of all threads."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def fit(name: str) -> dict[str, Any]:
    """Fit both methods to a data set, after small fits that compile."""
    from lnml import LNML, MCML
    from lnml.kernels.cpu import CPUKernels
    from lnml.objectives import mcml

    X, y = standardised(SETS[name])
    LNML(MCML(), max_rounds=2).fit(*bundled("iris"))
    passes, proofs = counted(CPUKernels, "softmax"), counted(mcml, "prove_mcml")
    alone = timed(MCML(), X, y)
    passes[0] = proofs[0] = 0
    model = LNML(MCML())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds = timed(model, X, y)
    return {
        "size": "{:,} × {:,}".format(*X.shape),
        "alone": alone,
        "seconds": seconds,
        "passes": passes[0],
        "proofs": proofs[0],
        "rounds": model.n_iter_,
        "objective": model.objective_,
        "gap": model.duality_gap_,
        "warns": ", ".join(sorted({each.category.__name__ for each in caught})),
    }


def measured(name: str, checkout: Path) -> dict[str, Any]:
    """Fit in a process of its own, by the sources of a checkout."""
    sources = str(checkout.resolve() / "src")
    place = {**os.environ, "PYTHONPATH": sources, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, env=place, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


HEADER = (
    "data, size, commit, MCML s, LN-MCML s, ratio, passes, proofs, rounds, objective, gap, warns"
)


def main() -> None:
    """Print a Markdown table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="another checkout, to compare with")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets")
    parser.add_argument("--one", choices=SETS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options.one)))
        return
    here = Path(__file__).resolve().parents[1]
    checkouts = {"new": here} if options.old is None else {"old": options.old, "new": here}
    names = HEADER.split(", ")
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for name in options.sets:
        for side, checkout in checkouts.items():
            try:
                found = measured(name, checkout)
            except RuntimeError as error:
                if "MissingDataError" not in str(error):
                    raise
                print(f"| {name} | left out: not in LNML_DATA |")
                break
            print(
                f"| {name} | {found['size']} | {side} | {found['alone']:.2f} | "
                f"{found['seconds']:.2f} | {found['seconds'] / found['alone']:.1f} | "
                f"{found['passes']} | {found['proofs']} | {found['rounds']} | "
                f"{found['objective']:.6g} | {found['gap']:.1e} | {found['warns']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
