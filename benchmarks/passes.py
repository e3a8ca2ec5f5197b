"""CPU seconds of a search, LMNN and LN-LMNN on MNIST, in units of one full pairwise pass.

    python benchmarks/passes.py --old ../old --rows 20000
    python benchmarks/passes.py --lines search lmnn

`bench.py` measures seconds, which needs a quiet machine. Here all threads' CPU seconds are counted,
and divided by those of a pass (an n x n x r product in float32) that the same process measures
before and after. ``--old`` names another checkout; both take turns, in a process each. ``search``
is one exact search for impostors at the identity, ``lmnn`` a fit to 1 %, ``lnml`` all rounds of
LN-LMNN (3, 3, 3) to 1 %. MNIST is read from the directory that LNML_DATA names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from suite.rows import mnist
from threadpoolctl import threadpool_limits

TOL = 1e-2
COMPONENTS = 164
BLOCK = 2048
Found = dict[str, Any]


def pass_seconds(X: np.ndarray) -> float:
    """CPU seconds of a full pass, from the product of one block with all rows."""
    out = np.empty((min(BLOCK, len(X)), len(X)), dtype=np.float32)
    seconds = []
    with threadpool_limits(1, user_api="blas"):
        for _ in range(3):
            start = time.process_time()
            np.matmul(X[:BLOCK], X.T, out=out)
            seconds.append(time.process_time() - start)
    return min(seconds) * len(X) / len(out)


def counted(work: Callable[[], Found]) -> Found:
    """Run some work; add its CPU seconds, searches and evaluations."""
    from lnml.kernels.cpu import CPUKernels

    counts = {"within": 0, "hinge": 0}
    kernels = {name: getattr(CPUKernels, name) for name in counts}

    def counting(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = kernels[name](self, *args, **kwargs)
            # A search that was known already is no new one.
            counts[name] += found is not kwargs.get("known", self)
            return found

        return call

    for name in counts:
        setattr(CPUKernels, name, counting(name))
    start = time.process_time()
    found = work()
    seconds = time.process_time() - start
    return {
        "seconds": seconds,
        "searches": counts["within"],
        "evaluations": counts["hinge"],
        **found,
    }


def search(X: np.ndarray, y: np.ndarray) -> Found:
    """One exact search at the identity, from the embedding to the list of pairs."""
    from lnml.kernels import get_kernels
    from lnml.kernels.training import TrainingSet
    from lnml.learning.targets import nearest_neighborhoods

    kernels, identity = get_kernels(), np.eye(X.shape[1])

    def look(n: int) -> Callable[[], Found]:
        training = TrainingSet.from_labels(X[:n], y[:n], kernels)
        targets = nearest_neighborhoods(training, identity, 3)

        def once() -> Found:
            embedding = kernels.embed(training.points, identity)
            reach = kernels.distances(embedding, targets, longest=True)
            found = kernels.within(embedding, 1.0 + reach, limited=False).found
            return {"end": f"{found.size:,} pairs"}

        return once

    with kernels.session():
        look(3000)()
        return counted(look(len(X)))


def fit(X: np.ndarray, y: np.ndarray, rounds: bool) -> Found:
    """Fit LMNN, or LN-LMNN with all its rounds."""
    from lnml import LMNN, LNML

    model = LNML(LMNN(), tol=TOL) if rounds else LMNN(tol=TOL)
    model.fit(X[:3000], y[:3000])

    def once() -> Found:
        model.fit(X, y)
        end = f"{model.objective_:,.1f}, gap {model.duality_gap_:.4f}"
        return {"end": end + (f", {model.n_iter_} rounds" if rounds else "")}

    return counted(once)


def one(line: str, n: int) -> Found:
    """Measure a line in this process."""
    X, y = mnist(n, COMPONENTS)
    before = pass_seconds(X)
    found = search(X, y) if line == "search" else fit(X, y, line == "lnml")
    unit = 0.5 * (before + pass_seconds(X))
    return {**found, "passes": found["seconds"] / unit}


def measured(line: str, n: int, checkout: Path) -> Found:
    """Measure a line in a process of its own, by the sources of a checkout."""
    folder = Path(__file__).resolve().parent
    path = os.pathsep.join([str(checkout.resolve() / "src"), str(folder)])
    done = subprocess.run(
        [sys.executable, __file__, "--one", line, "--rows", str(n)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{line} failed:\n{done.stderr[-4000:]}")
    found: Found = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a Markdown table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ("search", "lmnn", "lnml")
    parser.add_argument("--old", type=Path, help="another checkout, to compare with")
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--lines", nargs="+", choices=names, default=names)
    parser.add_argument("--one", choices=names, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.rows)))
        return
    here = Path(__file__).resolve().parents[1]
    checkouts = {"new": here} if options.old is None else {"old": options.old, "new": here}
    header = ["line", "rows", "commit", "passes", "CPU s", "searches", "evaluations", "end"]
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for line in options.lines:
        for side, checkout in checkouts.items():
            found = measured(line, options.rows, checkout)
            print(
                f"| {line} | {options.rows:,} | {side} | {found['passes']:.3f} | "
                f"{found['seconds']:.2f} | {found['searches']} | {found['evaluations']} | "
                f"{found['end']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
