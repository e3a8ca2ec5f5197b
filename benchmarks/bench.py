"""Measure lnml side by side with its peers and judge every requirement.

``make bench`` and ``make bench-quick`` run this with the peers' environment. Each group prints
its lines as soon as they are known; a Markdown page, a JSON file and pictures are written after
each. ``--only`` renews some groups and keeps the others. MNIST is measured if the environment
variable LNML_DATA names a directory that holds mnist.npz.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from suite.assignment import assignment
from suite.exchange import BENCHMARKS, call
from suite.figures import draw_growth, draw_objectives
from suite.growth import growth
from suite.letter import letter, letter_large
from suite.machine import describe
from suite.mnist import mnist_group
from suite.nca import nca
from suite.report import Group, read, write
from suite.scale import FULL, QUICK, Scale
from suite.softmax import softmax
from suite.wine import wine

GROUPS: dict[str, Callable[[Scale, Path, str], Group]] = {
    "letter": letter,
    "letter_large": letter_large,
    "wine": wine,
    "mnist": mnist_group,
    "assignment": assignment,
    "softmax": softmax,
    "nca": nca,
    "growth": growth,
}
WITHOUT_PEERS = {"mnist", "assignment", "softmax", "nca", "growth"}


def main() -> None:
    """Run the groups, print their lines, write the results."""
    options = parse()
    scale = QUICK if options.quick else FULL
    machine = describe()
    python = str(Path(options.peers).absolute())
    chosen = options.only or list(GROUPS)
    # Sections that are not measured again stay as they are; so do the versions of their peers.
    groups, before = read(options.output) if options.only else ({}, {})
    if set(chosen) - WITHOUT_PEERS:
        machine["peers"] = call("peers.runner", "versions", python=python).values
    elif "peers" in before:
        machine["peers"] = before["peers"]
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            load, began = round(os.getloadavg()[0], 2), time.perf_counter()
            found = GROUPS[name](scale, Path(folder), python)
            seconds = time.perf_counter() - began
            found.circumstances = (
                f"Commit {machine['commit']}, {date.today().isoformat()}. The load was {load} "
                f"before; the section took {seconds / 60:.1f} minutes."
            )
            show(found, seconds)
            # After each group, so that a long run that fails leaves what it found.
            groups = {key: {**groups, name: found}[key] for key in GROUPS if key in {*groups, name}}
            draw(groups, options.output)
            written = write(options.output, groups, machine, options.quick)
    print("written:", *written)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="the peers' Python")
    parser.add_argument("--only", nargs="+", choices=GROUPS)
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    return parser.parse_args()


def show(group: Group, seconds: float) -> None:
    """Print a group's lines."""
    print(f"{group.title} ({seconds:.0f} s)")
    for line in group.lines:
        text, measured, required, verdict = line.cells()
        print(f"  {verdict:12} {text}: {measured} (required {required})", flush=True)


def draw(groups: dict[str, Group], folder: Path) -> None:
    """Draw what was measured, and tell the groups which pictures they have."""
    traces: dict[str, Any] = {}
    contests = [name for name in ("letter", "wine") if name in groups]
    for name in contests:
        traces |= groups[name].traces
        groups[name].figures = ["objective"] if name == contests[-1] else []
    if traces:
        draw_objectives(traces, folder / "objective.png")
    if "growth" in groups:
        draw_growth(groups["growth"].traces["growth"], folder / "growth.png")
        groups["growth"].figures = ["growth"]


if __name__ == "__main__":
    main()
