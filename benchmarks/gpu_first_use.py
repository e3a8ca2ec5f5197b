"""Measure the first fit of a process on a GPU beside the next ones, each figure in fresh processes.

``python benchmarks/gpu_first_use.py`` prints the seconds of the first LNML fit of a process, of the
next ones, their ratio, and the seconds of LMNN fits after these: all of MNIST on 164 principal
components, ``tol=1e-2``. The data are on the GPU and lnml is imported before the clock starts.
Programs of the GPU and Python's bytecode were compiled by an earlier process, as an installation
and a first day leave them. ``--old DIR`` measures another checkout in turns with this one.

The environment variable LNML_DATA names a directory that holds mnist.npz.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from suite.rows import mnist

HERE = Path(__file__).resolve().parents[1]
COMPONENTS = 164
NEXT_FITS, LMNN_FITS = 2, 12

FITS = """
import time
import numpy as np
import torch
rows = np.load({rows!r})
X, y = torch.as_tensor(rows["X"], device="cuda"), rows["y"]
torch.cuda.synchronize()
from lnml import LMNN, LNML
def seconds(model):
    start = time.perf_counter()
    model.fit(X, y)
    torch.cuda.synchronize()
    return time.perf_counter() - start
print(*(seconds(LNML(LMNN(), tol=1e-2)) for _ in range({lnml})))
print(*(seconds(LMNN(tol=1e-2)) for _ in range({lmnn})))
"""


def process(checkout: Path, rows: Path, bytecode: Path) -> tuple[list[float], list[float]]:
    """Seconds of the fits of LNML and of LMNN in a fresh process."""
    code = FITS.format(rows=str(rows), lnml=1 + NEXT_FITS, lmnn=LMNN_FITS)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lnml, lmnn = ([float(word) for word in line.split()] for line in done.stdout.splitlines())
    return lnml, lmnn


def main() -> None:
    """Print the figures of all processes, then their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="another checkout")
    parser.add_argument("--repeats", type=int, default=4, help="processes of each checkout")
    options = parser.parse_args()
    checkouts = {"new": HERE} if options.old is None else {"old": options.old, "new": HERE}
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        X, y = mnist(60_000, COMPONENTS)
        np.savez(rows, X=X, y=y)
        for turn in range(1 + options.repeats):
            for name, checkout in checkouts.items():
                lnml, lmnn = process(checkout.resolve(), rows, Path(folder) / name)
                if turn == 0:
                    continue  # compiles what is missing
                usual = statistics.median(lnml[1:])
                figures = lnml[0], usual, lnml[0] / usual, statistics.median(lmnn), *lmnn
                found[name].append(figures)
                print(name, *(f"{each:.3f}" for each in figures), flush=True)
    for name, runs in found.items():
        first, usual, ratio, lmnn = (statistics.median(run[k] for run in runs) for k in range(4))
        lowest, highest = min(run[3] for run in runs), max(run[3] for run in runs)
        print(
            f"{name}: first LNML fit {first:.2f} s, next {usual:.2f} s, ratio {ratio:.2f}; "
            f"LMNN {lmnn:.3f} s ({lowest:.3f} to {highest:.3f})"
        )


if __name__ == "__main__":
    main()
