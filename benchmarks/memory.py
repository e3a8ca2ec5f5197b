"""Measure the peak memory of a fit, and compare it with ``lnml.estimate_memory``.

``python benchmarks/memory.py [DATA ...]`` fits learners to data sets (``DATA``, by default all),
each in a process of its own, and writes benchmarks/results/memory.md (on Linux). If data are
named, the lines of others stay as they are. MNIST needs
``LNML_DATA`` (benchmarks/README.md).
"""

import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parent / "results" / "memory.md"
HINGES = (
    "LMNN(max_iter=10)",
    "LNML(LMNN(max_iter=10), k_min=1, k_av=3, k_max=5, max_rounds=3)",
    "SupportVectorMetric(max_iter=10)",
    "RelativeComparisons(max_iter=10)",
)
OTHERS = ("MCML(max_iter=1)", "NCA(max_iter=3)", "MMC(max_iter=1)")
WARM_ROWS = 8
HEAD = """# Memory of fits, and what is said of it beforehand

MiB. *Measured* is the growth of the resident set above the state after a first fit to eight rows of
each class. *Estimate* is `lnml.estimate_memory` from the shape alone, *with data* the same with
`data=(X, y)`. The numbers in brackets are measured over estimate. Gaussians have five classes of
unit variance, whose centres are normal with the deviation that is named. Written by
`python benchmarks/memory.py`, with two threads.

| data | fit | measured | estimate | with data |
|---|---|---:|---:|---:|
"""


def bundled(name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """First rows of a data set of the library."""
    from lnml.datasets import load_dataset

    found = load_dataset(name)
    return found.data[:n_rows], found.target[:n_rows]


def gaussians(n_rows: int, n_columns: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of five Gaussian classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n_rows)
    centres = apart * rng.standard_normal((5, n_columns))
    return rng.standard_normal((n_rows, n_columns)) + centres[y], y


def mnist(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading principal coordinates of rows of MNIST."""
    from sklearn.decomposition import PCA

    with np.load(Path(os.environ["LNML_DATA"]) / "mnist.npz") as stored:
        X, y = stored["X"][:n_rows] / 255.0, stored["y"][:n_rows]
    return PCA(n_columns, random_state=0).fit_transform(X), y


DATA = {
    "Wine, 178 x 13": (partial(bundled, "wine", 178), HINGES + OTHERS),
    "Letter, 4,000 x 16": (partial(bundled, "letter", 4000), HINGES + OTHERS),
    "Letter, 18,000 x 16": (partial(bundled, "letter", 18000), HINGES),
    "Gaussians apart 0, 3,000 x 10": (partial(gaussians, 3000, 10, 0.0), HINGES + OTHERS),
    "Gaussians apart 0.3, 5,000 x 20": (partial(gaussians, 5000, 20, 0.3), HINGES),
    "Gaussians apart 0.3, 5,000 x 100": (partial(gaussians, 5000, 100, 0.3), HINGES),
    "Gaussians apart 1, 5,000 x 20": (partial(gaussians, 5000, 20, 1.0), HINGES + OTHERS[:2]),
    "Gaussians apart 3, 5,000 x 20": (partial(gaussians, 5000, 20, 3.0), HINGES),
    "MNIST, 10,000 x 164": (partial(mnist, 10_000, 164), HINGES[:1] + HINGES[2:]),
}


def make(fit: str) -> Any:
    """Estimator that a line stands for."""
    import lnml

    return eval(fit, {name: getattr(lnml, name) for name in lnml.__all__})


def measure(data: str, fit: str) -> dict[str, float]:
    """Growth of memory while an estimator is fitted, and the estimates, in MiB."""
    from lnml import estimate_memory
    from lnml.evaluation.peak import peak_memory

    warnings.simplefilter("ignore")
    model, (X, y) = make(fit), DATA[data][0]()
    few = np.concatenate([np.flatnonzero(y == each)[:WARM_ROWS] for each in np.unique(y)])
    model.fit(X[few], y[few])
    with peak_memory() as peak:
        model.fit(X, y)
    if peak.megabytes is None:
        raise SystemExit("this system does not report the peak memory of a process")
    return {
        "measured": peak.megabytes * 1e6 / 2**20,
        "estimate": estimate_memory(model, *X.shape) / 2**20,
        "with data": estimate_memory(model, *X.shape, data=(X, y)) / 2**20,
    }


def line(data: str, fit: str, found: dict[str, float]) -> str:
    """Return the line of the table."""
    grown = found["measured"]
    said = [f"{found[name]:.1f} ({grown / found[name]:.2f})" for name in ("estimate", "with data")]
    return f"| {data} | {fit} | {grown:.1f} | {said[0]} | {said[1]} |\n"


def stored() -> dict[tuple[str, str], str]:
    """Return the lines of the table as it is, by data and fit."""
    rows = [row for row in RESULT.read_text().splitlines(keepends=True) if row.startswith("| ")]
    return {tuple(row[2:].split(" | ")[:2]): row for row in rows[1:]}


def main() -> None:
    """Measure every method on all data, each in its own process."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    rows = dict.fromkeys((data, fit) for data, (_, fits) in DATA.items() for fit in fits)
    if sys.argv[1:]:
        rows |= stored()
    for data in sys.argv[1:] or DATA:
        if "MNIST" in data and "LNML_DATA" not in os.environ:
            continue
        for fit in DATA[data][1]:
            command = [sys.executable, __file__, "--one", data, fit]
            found = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            rows[data, fit] = line(data, fit, json.loads(found))
            print(rows[data, fit], end="", flush=True)
    RESULT.write_text(HEAD + "".join(row for row in rows.values() if row))


if __name__ == "__main__":
    main()
