"""Judge what fits claim about themselves on thousands of nasty small data sets.

``python benchmarks/certificates.py`` fits every learner to problems of ``tests/adversary.py`` and
lets ``tests/referee.py`` check its objective, its bound and its warnings. Neither shares code with
the library. The result is ``benchmarks/results/certificates.md``: a table for every learner, and
the first violations in words. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

# One core for each process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
# The data and the referee are those of tests/estimators/test_certificates.py.
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
from adversary import PATTERNS, problem  # noqa: E402
from referee import LEARNERS, judge, learners_of  # noqa: E402
from suite.machine import available_cores, describe  # noqa: E402
from suite.report import markdown_table, number  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "certificates.md"
HEADER = [
    "pattern",
    "fits",
    "refused",
    "gap ≤ tol",
    "larger, with a warning",
    "largest error of the objective",
    "fits with violations",
]
INTRODUCTION = """\
`python benchmarks/certificates.py` writes this page; nothing on it was written by hand. The \
problems are small data sets of patterns that real tables have (`tests/adversary.py`). Every fit \
is judged by code that shares nothing with the library:

- `objective_` is computed again from `components_`, in extended precision and from differences of \
rows. The error is relative to the objective, or to the floor of the gap if that is larger; errors \
that the rounding of products explains count as zero. More than 1e-9 (float32: 1e-5) and this \
rounding is a violation.
- The bound that `objective_` and `duality_gap_` stand for is compared with the objective of other \
metrics: searches in other columns, multiples and perturbations find them. A bound above one of \
them is a violation.
- So is a gap outside [0, 1], and a gap above `tol` without a warning.

A refusal is a `ValueError` of `fit`. NCA has no gap.
"""
SHOWN = 200


@dataclass
class Count:
    """What was found about the fits of one learner to one pattern."""

    fits: int = 0
    refused: int = 0
    proved: int = 0
    told: int = 0
    error: float = 0.0
    wrong: int = 0
    messages: list[str] = field(default_factory=list)
    refusals: set[str] = field(default_factory=set)

    def add(self, verdict: Any) -> None:
        """Count one verdict."""
        self.fits += 1
        if verdict.refusal:
            self.refused += 1
            self.refusals.add(verdict.refusal)
            return
        gap = verdict.gap
        self.proved += gap is not None and gap <= verdict.tol
        self.told += gap is not None and gap > verdict.tol and verdict.warned
        self.error = max(self.error, verdict.error)
        self.wrong += bool(verdict.violations)
        if verdict.violations:
            self.messages.append(str(verdict))

    def cells(self, learner: str) -> list[str]:
        """Cells of the table, without the pattern."""
        gaps = ["", ""] if learner == "NCA" else [number(self.proved), number(self.told)]
        error = f"{self.error:.1e}" if self.error else "0"
        return [number(self.fits), number(self.refused), *gaps, error, number(self.wrong)]


def judged(index: int, seed: int, n_learners: int, n_maps: int) -> list[Any]:
    """Verdicts about one problem."""
    data = problem(index, seed)
    with np.errstate(all="ignore"):
        return [
            judge(data, learner, n_maps=n_maps, refit=index % 5 == 0)
            for learner in learners_of(index, n_learners)
        ]


def counted(verdicts: Iterable[list[Any]], total: int) -> dict[tuple[str, str], Count]:
    """Counts by learner and pattern; a line on stderr says how far it is."""
    counts = {(learner, pattern): Count() for learner in LEARNERS for pattern in PATTERNS}
    start = time.monotonic()
    for done, group in enumerate(verdicts, 1):
        for verdict in group:
            counts[verdict.learner, verdict.pattern].add(verdict)
        if done % 50 == 0 or done == total:
            wrong = sum(count.wrong for count in counts.values())
            spent = time.monotonic() - start
            print(
                f"{done} of {total} problems, {wrong} fits with violations, {spent:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return counts


def page(counts: dict[tuple[str, str], Count], options: argparse.Namespace) -> str:
    """Return the whole page."""
    machine = describe()
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    every = list(counts.values())
    parts = [
        "# What fits claim on nasty data\n",
        INTRODUCTION,
        f"{options.problems:,} problems, seed {options.seed}, {options.learners} learners each: "
        f"{sum(c.fits for c in every):,} fits, {sum(c.refused for c in every):,} refused, "
        f"{sum(c.wrong for c in every):,} with violations. Python {machine['python']}, {versions}, "
        f"commit {machine['commit']}.\n",
    ]
    for learner in LEARNERS:
        found = {pattern: counts[learner, pattern] for pattern in PATTERNS}
        rows = [[pattern, *count.cells(learner)] for pattern, count in found.items() if count.fits]
        parts += [f"## {learner}\n", markdown_table(HEADER, rows)]
    refusals = sorted({text.splitlines()[0] for count in every for text in count.refusals})
    if refusals:
        parts += ["## Refusals\n", "\n".join(f"- {text}" for text in refusals) + "\n"]
    messages = [message for count in every for message in count.messages]
    if messages:
        title = (
            "## Violations\n" if len(messages) <= SHOWN else f"## The first {SHOWN} violations\n"
        )
        parts += [title, "\n".join(f"- {text}" for text in messages[:SHOWN]) + "\n"]
    return "\n".join(parts)


def main() -> int:
    """Judge, write the page and say whether anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=5000, help="number of data sets")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data sets; tests use 0")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    parser.add_argument("--learners", type=int, default=3, help="learners for each data set")
    parser.add_argument("--maps", type=int, default=2, help="changes of columns to search in")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="page to write")
    options = parser.parse_args()
    work = partial(judged, seed=options.seed, n_learners=options.learners, n_maps=options.maps)
    with ProcessPoolExecutor(options.jobs) as pool:
        counts = counted(pool.map(work, range(options.problems), chunksize=5), options.problems)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(counts, options), encoding="utf-8")
    print(options.output)
    return int(any(count.wrong for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
