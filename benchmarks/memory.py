"""Measure the peak memory of a fit, above the state after a first small fit.

``python benchmarks/memory.py [ROWS ...]`` fits learners to rows of Letter, each in a process of
its own, and prints the growth of the peak resident set (on Linux) beside what
``lnml.estimate_memory`` says.
"""

import subprocess
import sys
from typing import Any

METHODS = (
    "LMNN()",
    "LNML(LMNN(), k_min=1, k_av=3, k_max=5)",
    "MCML(max_iter=1)",
    "NCA(max_iter=3)",
    "MMC(max_iter=1)",
    "SupportVectorMetric(max_iter=10)",
    "RelativeComparisons(max_iter=10)",
)
N_COLUMNS = 16


def make(method: str) -> Any:
    """Estimator that a line of ``METHODS`` stands for."""
    import lnml

    return eval(method, {name: getattr(lnml, name) for name in lnml.__all__})


def measure(method: str, n_rows: int) -> float:
    """Growth of memory in MiB while ``method`` is fitted to rows of Letter."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from lnml.datasets import load_dataset
    from lnml.evaluation.peak import peak_memory

    warnings.simplefilter("ignore", ConvergenceWarning)
    model = make(method)
    letter = load_dataset("letter")
    model.fit(letter.data[:200], letter.target[:200])
    with peak_memory() as peak:
        model.fit(letter.data[:n_rows], letter.target[:n_rows])
    if peak.megabytes is None:
        raise SystemExit("this system does not report the peak memory of a process")
    return peak.megabytes * 1e6 / 2**20


def main() -> None:
    """Measure every method at every size in its own process."""
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(measure(sys.argv[2], int(sys.argv[3])))
        return
    from lnml import estimate_memory

    for n_rows in map(int, sys.argv[1:] or ("4000", "18000")):
        for method in METHODS:
            command = [sys.executable, __file__, "--one", method, str(n_rows)]
            grown = float(subprocess.run(command, capture_output=True, check=True).stdout)
            estimate = estimate_memory(make(method), n_rows, N_COLUMNS) / 2**20
            print(
                f"Letter, {n_rows} rows, {method}: {grown:.0f} MiB, estimate {estimate:.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
