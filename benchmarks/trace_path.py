"""Measure a path of trace penalties against separate fits: evaluations, seconds and gaps.

``python benchmarks/trace_path.py`` writes benchmarks/results/trace_path.md. Letter is measured if
LNML_DATA names a directory that holds letter.npz.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from lnml import LMNN, MCML, MMC, trace_path
from lnml.datasets import load_dataset
from lnml.report.tables import text_table

SMALL = ("iris", "wine", "sonar", "ionosphere", "balance_scale")
LETTER_ROWS = 4000
HEADER = ("data", "method", "evaluations apart", "path", "ratio", "seconds apart", "path", "gap")
RESULTS = Path(__file__).parent / "results" / "trace_path.md"


def measured(name: str, X: np.ndarray, y: np.ndarray, estimator: object) -> list[str]:
    """Return a line of the table."""
    start = time.perf_counter()
    path = trace_path(estimator, X, y)
    on_path = time.perf_counter() - start
    evaluations, start = 0, time.perf_counter()
    for penalty in path.trace_penalties:
        model = clone(estimator).set_params(trace_penalty=float(penalty)).fit(X, y)
        evaluations += sum(line["n_evaluations"] for line in model.history_)
    apart, count = time.perf_counter() - start, int(path.n_evaluations.sum())
    return [
        name,
        type(estimator).__name__,
        str(evaluations),
        str(count),
        f"{count / evaluations:.2f}",
        f"{apart:.1f}",
        f"{on_path:.1f}",
        f"{path.gaps.max():.1e}",
    ]


def main() -> None:
    """Measure all data sets and write the table."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = []
    for name in SMALL:
        data = load_dataset(name)
        X = scale(data.data)
        LMNN().fit(X, data.target)  # compiled before it is measured
        for estimator in (LMNN(), MCML(), MMC()):
            lines.append(measured(name, X, data.target, estimator))
            print(*lines[-1], flush=True)
    letter = load_dataset("letter")
    rows = np.random.default_rng(0).permutation(len(letter.target))[:LETTER_ROWS]
    X, y = scale(letter.data[rows].astype(float)), letter.target[rows]
    for estimator in (LMNN(), MCML(), MMC()):
        lines.append(measured(f"letter, {LETTER_ROWS} rows", X, y, estimator))
        print(*lines[-1], flush=True)
    table = text_table(HEADER, lines)
    RESULTS.write_text(
        "# Paths of trace penalties\n\nTwenty penalties each, on standardised columns, to a gap "
        "of 0.001: separate fits against\n`trace_path`. `python benchmarks/trace_path.py` writes "
        f"this page.\n\n```\n{table}\n```\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
