"""Check lnml on a GPU against the CPU, then time it, with a floor beside each time.

    python benchmarks/gpu.py                      everything (ten minutes on one H200)
    python benchmarks/gpu.py --only agreement     some groups; the others stay on the page

MNIST and Isolet are used if the environment variable LNML_DATA names a directory with mnist.npz
and isolet.npz. Results go to ``benchmarks/results/gpu.md``, ``gpu.json`` and ``gpu_growth.png``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import torch
from gpu_suite import agreement, fits, growth
from gpu_suite.ceilings import Ceilings, ceilings_group, measure
from suite.exchange import BENCHMARKS
from suite.machine import describe
from suite.report import Group, Line, Table, body, plain

INTRODUCTION = """\
`python benchmarks/gpu.py` writes this page; nothing on it was written by hand. The data were on \
the GPU, and everything was compiled before the clock started. Seconds are those of whole fits, as \
a user sees them.
"""
GROUPS: dict[str, Callable[[Ceilings, str], Group]] = {
    "agreement": lambda _, device: agreement.agreement(device),
    "mnist": fits.mnist_fits,
    "million": fits.million,
    "four_million": fits.four_million,
    "growth": growth.growth,
}


def main() -> None:
    """Measure the chosen groups and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--commit", help="commit of the code, if git is not available")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    machine = describe_gpu(options.device, options.commit)
    ceilings = measure(options.device)
    groups = {**read(options.output), "ceilings": ceilings_group(ceilings)}
    for name in options.only or GROUPS:
        groups[name] = GROUPS[name](ceilings, options.device)
        groups[name].circumstances = f"Commit {machine['commit']}, {date.today().isoformat()}."
        for line in groups[name].lines:
            print(*line.cells(), sep=" | ", flush=True)
        write(options.output, groups, machine)


def describe_gpu(device: str, commit: str | None) -> dict[str, Any]:
    """Machine, GPU, versions and commit."""
    found = describe()
    properties = torch.cuda.get_device_properties(device)
    found["gpu"] = f"{properties.name}, {properties.total_memory / 1e9:.0f} GB"
    found["versions"] |= {"torch": torch.__version__, "CUDA": torch.version.cuda}
    try:
        import triton

        found["versions"]["triton"] = triton.__version__
    except ModuleNotFoundError:
        found["versions"]["triton"] = "not installed"
    found["commit"] = commit or found["commit"]
    return found


def read(folder: Path) -> dict[str, Group]:
    """Groups of an earlier run."""
    path = folder / "gpu.json"
    if not path.exists():
        return {}
    groups = {}
    for name, stored in json.loads(path.read_text())["groups"].items():
        stored["lines"] = [Line(**line) for line in stored["lines"]]
        stored["tables"] = [Table(**table) for table in stored["tables"]]
        groups[name] = Group(**stored)
    return groups


def write(folder: Path, groups: dict[str, Group], machine: dict[str, Any]) -> None:
    """Write the page, the figures as JSON, and the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    groups = {name: groups[name] for name in ("ceilings", *GROUPS) if name in groups}
    whole = {"machine": machine, "groups": {name: asdict(group) for name, group in groups.items()}}
    (folder / "gpu.json").write_text(json.dumps(plain(whole), indent=1, ensure_ascii=False) + "\n")
    if "growth" in groups:
        try:
            growth.draw(groups["growth"], folder / "gpu_growth.png")
            groups["growth"].figures = ["gpu_growth"]
        except ModuleNotFoundError:
            print("matplotlib is missing: no picture")
    (folder / "gpu.md").write_text(page(groups, machine))


def page(groups: dict[str, Group], machine: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    parts = [
        "# Benchmarks on a GPU\n",
        INTRODUCTION,
        f"{machine['gpu']}; {machine['cores']} cores of {machine['cpu']}. Python "
        f"{machine['python']}, {versions}.\n",
        *body(groups),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
