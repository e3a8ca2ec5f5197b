"""What the proof at the end of a fit costs: seconds of the proof and of the rest, in one run.

    LNML_DATA=... python benchmarks/certificate_cost.py [--output FILE]

Each fit is repeated, and the fastest one counts. MNIST needs a directory with mnist.npz.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from suite.rows import MissingData, bundled, mnist

import lnml.solvers.path as path
from lnml import LMNN, LNML, MCML
from lnml.datasets import load_dataset

HEADER = """# What a proof costs

`python benchmarks/certificate_cost.py` writes this page. Seconds of the fastest of some fits: all
of it, and what the proof of objective and bound took of it. The share is relative to the rest.

| data | fit s | proof s | share | proved gap |
| --- | --- | --- | --- | --- |
"""


class Clock:
    """Adds up the seconds that proofs take."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._prove = path._prove
        path._prove = self

    def __call__(self, *arguments):
        start = time.perf_counter()
        try:
            return self._prove(*arguments)
        finally:
            self.seconds += time.perf_counter() - start


def measure(clock, estimator, X, y, repeats):
    """Seconds of the fastest fit, of its proof, and the gap."""
    found = []
    for _ in range(repeats):
        clock.seconds, start = 0.0, time.perf_counter()
        model = estimator.fit(X, y)
        found.append((time.perf_counter() - start, clock.seconds, model.duality_gap_))
    return min(found)


def problems():
    """Name, estimator, data and repeats."""
    for n in (4_000, 18_000):
        X, y = bundled("letter", n)
        yield f"Letter {n:,}, LMNN", LMNN(), X.astype(np.float64), y, 5
    yield "Letter 4,000 float32, LMNN", LMNN(), *_float32(*bundled("letter", 4_000)), 5
    for name in ("sonar", "ionosphere", "wine"):
        data = load_dataset(name)
        for estimator in (LMNN(), LNML(), MCML()):
            title = f"{name}, {type(estimator).__name__}"
            yield title, estimator, data.data, data.target, 5
    try:
        X, y = mnist(60_000, 164)
    except MissingData as missing:
        print(missing)
        return
    yield "MNIST 60,000 x 164 float32, LMNN to 1 %", LMNN(tol=1e-2), X, y, 2


def _float32(X, y):
    return X.astype(np.float32), y


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parent / "results" / "certificate_cost.md"
    parser.add_argument("--output", type=Path, default=default)
    output = parser.parse_args().output
    clock, lines = Clock(), [HEADER.rstrip()]
    warnings.simplefilter("ignore")
    # Compile before anything is measured.
    iris = load_dataset("iris")
    for estimator in (LNML(), LNML(MCML())):
        estimator.fit(iris.data, iris.target)
    for title, estimator, X, y, repeats in problems():
        seconds, proof, gap = measure(clock, estimator, X, y, repeats)
        share = proof / (seconds - proof)
        lines.append(f"| {title} | {seconds:.3g} | {proof:.2g} | {share:.1%} | {gap:.1e} |")
        print(lines[-1], flush=True)
    output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
