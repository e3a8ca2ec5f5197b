"""Measure the peak memory of LMNN on classes that overlap completely.

``python benchmarks/impostor_memory.py [ROWSxCOLUMNS:MIB[:TOL] ...]`` fits rows of five classes
without any signal, each case in a process of its own, with scikit-learn's ``working_memory`` of so
many MiB, to a gap of TOL (default: 1e-3). It writes benchmarks/results/impostor_memory.md (on
Linux). Memory does not depend on TOL; an evaluation of 100,000 rows takes minutes.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "impostor_memory.md"
CASES = (
    "10000x10:96",
    "20000x10:16",
    "20000x1:1024",
    "40000x1:1024",
    "100000x1:64:0.03",
    "100000x2:64:0.03",
    "100000x5:64:0.03",
    "100000x10:64:0.03",
    "100000x2:1024:0.03",
    "100000x5:1024:0.03",
    "100000x10:1024:0.03",
)
N_CLASSES = 5
# Peak over working_memory that is promised, beside what the data take.
PROMISED = 1.5
HEAD = """# Memory of LMNN where all classes overlap

Rows of five classes, normal columns without any signal, float64. *Limit* is 1.5 times
scikit-learn's `working_memory` plus what a fit keeps for the data (`lnml.estimate_memory` without
impostors). *Peak* is the growth of the resident set above the state after a first small fit.
Written by `python benchmarks/impostor_memory.py`, on two cores that were busy with other work, too.

| rows | columns | working_memory | peak | limit | tol | gap | converged | evaluations | minutes |
|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|
"""


def measure(case: str) -> dict[str, float]:
    """Fit one case in this process."""
    import numpy as np
    import sklearn
    from sklearn.exceptions import ConvergenceWarning

    from lnml import LMNN
    from lnml.evaluation.peak import peak_memory

    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, columns, mib, tol = parse(case)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((rows, columns)), rng.integers(N_CLASSES, size=rows)
    with sklearn.config_context(working_memory=0.1):
        LMNN(max_iter=2).fit(X[:500], y[:500])
    model, begin = LMNN(tol=tol), time.perf_counter()
    with sklearn.config_context(working_memory=mib), peak_memory() as peak:
        model.fit(X, y)
    if peak.megabytes is None:
        raise SystemExit("this system does not report the peak memory of a process")
    return {
        "peak": peak.megabytes * 1e6 / 2**20,
        "gap": model.duality_gap_,
        "converged": model.converged_,
        "evaluations": sum(record["n_evaluations"] for record in model.history_),
        "minutes": (time.perf_counter() - begin) / 60,
    }


def parse(case: str) -> tuple[int, int, int, float]:
    """Return rows, columns, MiB and tolerance of a case."""
    size, mib, *tol = case.split(":")
    rows, columns = size.split("x")
    return int(rows), int(columns), int(mib), float(tol[0] if tol else 1e-3)


def line(case: str, found: dict[str, float]) -> str:
    """Return the line of the table."""
    from lnml.memory import data_bytes

    rows, columns, mib, tol = parse(case)
    limit = PROMISED * mib + data_bytes(rows, columns, 8) / 2**20
    return (
        f"| {rows:,} | {columns} | {mib} MiB | {found['peak']:.0f} MiB | {limit:.0f} MiB "
        f"| {tol:g} | {found['gap']:.1e} | {'yes' if found['converged'] else 'no'} "
        f"| {found['evaluations']} | {found['minutes']:.1f} |\n"
    )


def main() -> None:
    """Measure every case in its own process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.cases[0])))
        return
    text = HEAD
    for case in given.cases:
        command = [sys.executable, __file__, "--one", case]
        found = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        text += (row := line(case, json.loads(found)))
        print(row, end="", flush=True)
    RESULT.write_text(text)


if __name__ == "__main__":
    main()
