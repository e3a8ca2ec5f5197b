"""Measure fits on a Dask cluster of this machine; see docs/cluster.md.

``make bench-cluster`` runs this and writes ``benchmarks/results/cluster.md``. The workers are
processes of one thread each. ``--only`` renews some groups and keeps the others; ``--cores 0 1``
keeps all processes on some cores, and with four of them the two sides of a contest run at the same
time; ``--quick`` takes small sizes. MNIST is measured if the
environment variable LNML_DATA names a directory that holds mnist.npz.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path

from cluster_suite.contest import contest
from cluster_suite.growth import growth, sample
from cluster_suite.measure import pin
from cluster_suite.memory import memory
from cluster_suite.model import model
from cluster_suite.traffic import traffic
from suite.machine import describe
from suite.report import Group, Line, Table, body, machine_text

GROUPS: dict[str, Callable[[bool, list[int] | None], Group]] = {
    "contest": lambda quick, cores: contest(*(5_000, 3_000) if quick else (60_000, 20_000), cores),
    "growth": lambda quick, _: growth([5_000, 10_000] if quick else [50_000, 100_000, 200_000]),
    "sample": lambda quick, _: sample(60_000 if quick else 200_000),
    "memory": lambda quick, _: memory(*(60_000, 64) if quick else (180_000, 768)),
    "traffic": lambda quick, _: traffic(30_000 if quick else 120_000),
    "model": lambda quick, _: model(10_000 if quick else 100_000),
}
INTRODUCTION = """\
`make bench-cluster` writes this page; nothing on it was written by hand. Workers are processes of \
one thread each on the machine that is named; the local fit uses as many threads of one process, \
in the same run. Bytes moved are those of the loopback interface: what passes the \
scheduler counts twice. Memory is the peak of the resident set above the state after a first \
small fit.
"""


def main() -> None:
    """Measure the groups one after the other; write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--cores", nargs="+", type=int, help="keep to these cores")
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    parser.add_argument("--commit", help="commit of the code, if git is not available")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    # Workers that see a GPU would use it; benchmarks/cluster_gpu.py measures these.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if options.cores:
        pin(options.cores)
    options.output.mkdir(parents=True, exist_ok=True)
    stored = options.output / "cluster.json"
    groups = _read(stored) if stored.exists() else {}
    for name in options.only:
        machine = describe()
        found = GROUPS[name](options.quick, options.cores)
        found.circumstances = (
            f"Commit {options.commit or machine['commit']}, {date.today().isoformat()}. "
            f"{machine_text(machine)}"
        )
        groups = {key: {**groups, name: found}[key] for key in GROUPS if key in {*groups, name}}
        page = ["# Fits on a Dask cluster\n", INTRODUCTION, *body(groups)]
        (options.output / "cluster.md").write_text("\n".join(page))
        stored.write_text(json.dumps({key: asdict(group) for key, group in groups.items()}))
        for line in found.lines:
            print(*line.cells(), sep=" | ")


def _read(path: Path) -> dict[str, Group]:
    """Return the groups of an earlier run."""
    found = {}
    for name, stored in json.loads(path.read_text()).items():
        lines = [Line(**line) for line in stored.pop("lines")]
        tables = [Table(**table) for table in stored.pop("tables")]
        found[name] = Group(**{**stored, "lines": lines, "tables": tables})
    return found


if __name__ == "__main__":
    main()
