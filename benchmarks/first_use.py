"""Measure what the first use of the library costs, each figure in fresh processes.

``python benchmarks/first_use.py`` prints the seconds that ``import lnml`` adds to importing
scikit-learn's neighbours, and the seconds of the first fit of Iris with an empty and
with a filled compile cache. The figures are medians of five processes (of three with an
empty cache).
"""

import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = """
import time
import sklearn.neighbors
start = time.perf_counter()
import lnml
print(time.perf_counter() - start)
"""

FIRST_FIT = """
import time
from lnml import LMNN
from lnml.datasets import load_dataset
import lnml.kernels.cpu
iris = load_dataset("iris")
start = time.perf_counter()
LMNN().fit(iris.data, iris.target)
print(time.perf_counter() - start)
"""


def seconds(code: str, cache: str) -> float:
    """Run code in a fresh process with a compile cache directory."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the three figures."""
    with tempfile.TemporaryDirectory() as filled:
        seconds(FIRST_FIT, filled)
        added = statistics.median(seconds(IMPORT, filled) for _ in range(5))
        warm = statistics.median(seconds(FIRST_FIT, filled) for _ in range(5))
    cold = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as empty:
            cold.append(seconds(FIRST_FIT, empty))
    print(f"import lnml after sklearn.neighbors: {added:.2f} s")
    print(f"first fit of Iris, cold compile cache: {statistics.median(cold):.2f} s")
    print(f"first fit of Iris, warm compile cache: {warm:.2f} s")


if __name__ == "__main__":
    main()
