"""Measure what the first use of the library costs, each figure in fresh processes.

``python benchmarks/first_use.py`` prints the seconds that ``import lnml`` adds to importing
scikit-learn's neighbours, and the seconds of the first fit of Iris and of 4,000 rows of Letter,
after the import, with an empty and with a filled compile cache; in brackets the CPU seconds, which
other work on the machine changes less. The figures are medians of five processes (of three with an
empty cache). ``--old DIR`` measures another checkout in turns with this one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

IMPORT = """
import time
import sklearn.neighbors
start = time.perf_counter(), time.process_time()
import lnml
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""

FIRST_FIT = """
import time
from lnml import LMNN
from lnml.datasets import load_dataset
import lnml.kernels.cpu
data = load_dataset("{name}")
X, y = data.data[:4000], data.target[:4000]
start = time.perf_counter(), time.process_time()
LMNN().fit(X, y)
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""
FITS = {name: FIRST_FIT.format(name=name) for name in ("iris", "letter")}

Seconds = tuple[float, float]


def seconds(code: str, cache: str, checkout: Path) -> Seconds:
    """Run code in a fresh process with a compile cache directory; wall and CPU seconds."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


def measure(checkouts: list[Path]) -> dict[tuple[str, Path], list[Seconds]]:
    """Return the figures of all processes, by name and checkout."""
    found: dict[tuple[str, Path], list[Seconds]] = {}

    def run(name: str, code: str, cache: str, checkout: Path) -> None:
        found.setdefault((name, checkout), []).append(seconds(code, cache, checkout))

    for _ in range(3):
        for checkout in checkouts:
            for name, code in FITS.items():
                with tempfile.TemporaryDirectory() as empty:
                    run(f"first fit of {name}, cold compile cache", code, empty, checkout)
    with tempfile.TemporaryDirectory() as filled:
        for checkout in checkouts:
            for code in FITS.values():
                seconds(code, filled, checkout)
        for _ in range(5):
            for checkout in checkouts:
                run("import lnml after sklearn.neighbors", IMPORT, filled, checkout)
                for name, code in FITS.items():
                    run(f"first fit of {name}, warm compile cache", code, filled, checkout)
    return found


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="another checkout")
    old = parser.parse_args().old
    checkouts = [HERE] if old is None else [old.resolve(), HERE]
    for (name, checkout), runs in sorted(measure(checkouts).items()):
        wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
        which = "" if old is None else f" ({'new' if checkout == HERE else 'old'})"
        print(f"{name}{which}: {wall:.2f} s ({cpu:.2f} s of CPU)")


if __name__ == "__main__":
    main()
