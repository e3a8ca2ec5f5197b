"""Compare the compiled loops of two checkouts, in turns, in CPU seconds.

``OLD [NEW]`` are folders with a ``src``. Measured are LMNN on 18,000
rows of Letter and the nearest of 9,000 rows for each of 2,000, in float64 and float32. Each turn is
a fresh process that does everything twice; the second counts. Figures are the least of all turns.
"""

import os
import subprocess
import sys
from pathlib import Path

TURNS = 3
CODE = """
import time
import numpy as np
from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.learning.knn import nearest_rows
letter = load_dataset("letter")
X, y = letter.data[:18000].astype(float), letter.target[:18000]
def spent(work):
    work()
    start = time.process_time()
    work()
    return time.process_time() - start
models = []
lines = [spent(lambda: models.append(LMNN().fit(X, y)))]
wide = np.hstack([X, X])[:11000] + np.random.default_rng(0).normal(size=(11000, 32))
for dtype in (np.float64, np.float32):
    rows = wide.astype(dtype)
    for k in (1, 3):
        lines.append(spent(lambda: nearest_rows(rows[2000:], rows[:2000], k)))
print(*lines, models[-1].objective_)
"""
NAMES = ("LMNN, Letter 18,000", "nearest, float64", "3 nearest, float64", "nearest, float32")
NAMES = (*NAMES, "3 nearest, float32")


def measure(folder: str) -> list[float]:
    """Run one turn of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve() / "src")}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def main(old: str, new: str = ".") -> None:
    """Print the least CPU seconds of both."""
    found: dict[str, list[list[float]]] = {old: [], new: []}
    for _ in range(TURNS):
        for folder, runs in found.items():
            runs.append(measure(folder))
    for number, name in enumerate(NAMES):
        least = [min(run[number] for run in runs) for runs in found.values()]
        print(f"{name}: {least[0]:.3f} s old, {least[1]:.3f} s new")
    print("objectives:", *(runs[0][-1] for runs in found.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
