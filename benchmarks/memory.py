"""Measure the peak memory of a fit, above the state after a first small fit.

``python benchmarks/memory.py [ROWS ...]`` fits LMNN, LNML, MCML and NCA to rows of
Letter, each in a process of its own, and prints the growth of the peak resident
set (Linux and macOS).
"""

import resource
import subprocess
import sys

METHODS = (
    "LMNN()",
    "LNML(LMNN(), k_min=1, k_av=3, k_max=5)",
    "MCML(max_iter=1)",
    "NCA(max_iter=3)",
)
TO_MEBIBYTES = 2.0**-20 if sys.platform == "darwin" else 2.0**-10


def peak() -> float:
    """Peak resident set of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * TO_MEBIBYTES


def measure(method: str, n_rows: int) -> float:
    """Growth of the peak in MiB while ``method`` is fitted to rows of Letter."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    import lnml
    from lnml.datasets import load_dataset

    warnings.simplefilter("ignore", ConvergenceWarning)
    model = eval(method, {name: getattr(lnml, name) for name in lnml.__all__})
    letter = load_dataset("letter")
    model.fit(letter.data[:200], letter.target[:200])
    before = peak()
    model.fit(letter.data[:n_rows], letter.target[:n_rows])
    return peak() - before


def main() -> None:
    """Measure every method at every size in its own process."""
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(measure(sys.argv[2], int(sys.argv[3])))
        return
    for n_rows in map(int, sys.argv[1:] or ("4000", "18000")):
        for method in METHODS:
            command = [sys.executable, __file__, "--one", method, str(n_rows)]
            grown = float(subprocess.run(command, capture_output=True, check=True).stdout)
            print(f"Letter, {n_rows} rows, {method}: {grown:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
