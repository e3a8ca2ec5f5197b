"""Speed and memory of one commit of lnml against another, side by side in one run.

    git worktree add ../old COMMIT
    python benchmarks/restructuring.py --old ../old --new . --output build/restructuring.md

A line is one fit. The commits take turns (old, new, old, new, ...), each time in a fresh process
that finds lnml in ``src`` of its checkout, so the spread of one commit stands beside the difference
of the two. A process first fits a few rows of the same data by the same estimator, then measures.
``--lines`` picks lines, ``--repeats`` says how often each commit has its turn; ``--device cuda``
measures all of MNIST on a GPU instead. MNIST is measured if the environment variable LNML_DATA
names a directory that holds mnist.npz. The page is written after each line.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from suite.exchange import call
from suite.machine import commit, describe
from suite.one_fit import SHORT, WARM_ROWS
from suite.report import markdown_table, number
from suite.rows import MissingData, mnist

from lnml.datasets import load_dataset

COMPONENTS = 164
SIDES = ("old", "new")
HEADER = ["line", "old s (min–max)", "new s (min–max)", "new / old", "old MB", "new MB"]
HEADER += ["searches old/new", "evaluations old/new", "objective equal"]
INTRODUCTION = """\
`python benchmarks/restructuring.py` writes this page. Both commits took turns, each time in a \
fresh process; figures are medians (processes of each commit: {repeats}). Seconds are those of a \
whole fit, in a process the best of {inner} where it takes less than {short:g} s. {memory} \
Searches are full searches for impostors; evaluations are those that the history of a fit counts, \
where it does. «Objective equal»: «yes», to the last digit and in all processes, or the largest \
relative difference.
"""
MEMORY = f"""\
Memory is the growth of the resident set's peak, in MB (10⁶ bytes), above the state after a first \
fit of at most {WARM_ROWS} rows."""
GPU_MEMORY = """\
Memory is the peak of what torch allocated on the GPU, in MB (10⁶ bytes), data included."""
DATA = f"""\
Data: the first rows of Letter and Wine as they ship; MNIST's training rows, all or random ones \
(seed 0), on {COMPONENTS} principal components in float32. Classes are numbered by first appearance.
"""


@dataclass(frozen=True)
class Line:
    """One fit: a data set, how many rows of it, and the estimator as one writes it."""

    data: str
    rows: int
    model: str
    on_gpu: bool = False


LINES = {
    "letter-lmnn": Line("Letter", 4_000, "LMNN()"),
    "letter-18000-lmnn": Line("Letter", 18_000, "LMNN()"),
    "wine-lmnn": Line("Wine", 178, "LMNN()"),
    "wine-ln-lmnn": Line("Wine", 178, "LNML(LMNN())"),
    "mnist-ln-lmnn": Line("MNIST", 10_000, "LNML(LMNN(), max_rounds=5, tol=1e-2)"),
    "letter-mcml": Line("Letter", 4_000, "MCML()"),
    "letter-nca": Line("Letter", 4_000, "NCA(max_iter=20)"),
    "mnist-60000-lmnn": Line("MNIST", 60_000, "LMNN(tol=1e-2)", on_gpu=True),
    "mnist-60000-ln-lmnn": Line("MNIST", 60_000, "LNML(LMNN(), tol=1e-2)", on_gpu=True),
}


def main() -> None:
    """Measure the chosen lines and write the page."""
    options = parse()
    machine = describe_both(options)
    chosen = options.lines or [
        name for name, line in LINES.items() if line.on_gpu == options.device.startswith("cuda")
    ]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            try:
                data = save_rows(LINES[name], Path(folder))
            except MissingData as error:
                print(f"{name} is left out: {error}")
                continue
            rows.append(compare(LINES[name], data, options))
            print(*rows[-1], sep=" | ", flush=True)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(page(rows, options, machine))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for side in SIDES:
        parser.add_argument(f"--{side}", type=Path, required=True, help="checkout of a commit")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each (default 3)")
    parser.add_argument("--inner", type=int, default=2, help="short fits of one (default 2)")
    parser.add_argument("--lines", nargs="+", choices=LINES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, required=True, help="Markdown file")
    options = parser.parse_args()
    for side in SIDES:
        path = getattr(options, side).resolve()
        if not (path / "src" / "lnml").is_dir():
            parser.error(f"--{side}: {path} has no src/lnml")
        setattr(options, side, path)
    return options


def describe_both(options: argparse.Namespace) -> dict[str, Any]:
    """Machine, versions, load, and both commits (without git the names of the folders)."""
    if options.device.startswith("cuda"):
        from gpu import describe_gpu

        found = describe_gpu(options.device, None)
    else:
        found = {**describe(), "gpu": None}
    # The version of what is installed, which is neither commit.
    del found["versions"]["lnml"]
    for side in SIDES:
        path = getattr(options, side)
        name = commit(path)
        found[side] = path.name if name == "unknown" else name
    return {**found, "load": round(os.getloadavg()[0], 2)}


def save_rows(line: Line, folder: Path) -> Path:
    """Write the rows of a line, once, where the processes of both commits find them."""
    path = folder / f"{line.data}-{line.rows}.npz"
    if not path.exists():
        if line.data == "MNIST":
            X, y = mnist(line.rows, COMPONENTS)
        else:
            stored = load_dataset(line.data.lower())
            X, y = stored.data[: line.rows], stored.target[: line.rows]
        # Commits may order classes by name or by first row: so numbered, both are the same.
        _, first, codes = np.unique(y, return_index=True, return_inverse=True)
        np.savez(path, X=X, y=np.argsort(np.argsort(first))[codes])
    return path


def compare(line: Line, data: Path, options: argparse.Namespace) -> list[str]:
    """Measure both commits in turns; return the cells of a line."""
    title = f"{line.data} {line.rows:,}: `{line.model}`"
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for turn in range(1, options.repeats + 1):
        for side in SIDES:
            src = str(getattr(options, side) / "src")
            given = {"model": line.model, "src": src}
            given |= {"device": options.device, "inner": options.inner}
            place = {"PYTHONPATH": src}
            values = call("suite.one_fit", "one_fit", data, environment=place, **given).values
            found[side].append(values)
            print(f"{title}: {side}, {turn}: {values}", file=sys.stderr, flush=True)

    def both(key: str) -> list[list[Any]]:
        return [[values[key] for values in found[side]] for side in SIDES]

    old, new = both("seconds")
    return [
        title,
        *(f"{number(median(s))} ({number(min(s))}–{number(max(s))})" for s in (old, new)),
        f"{median(new) / median(old):.2f}",
        *(f"{median(peaks):,.1f}" for peaks in both("peak_mb")),
        " / ".join(map(counts, both("searches"))),
        " / ".join(map(counts, both("evaluations"))),
        agreement(*both("objective")),
    ]


def counts(found: list[float | None]) -> str:
    """The count of all processes of a commit; all that occurred, where they differ."""
    known = sorted({one for one in found if one is not None})
    return ", ".join(f"{count:,g}" for count in known) or "–"


def agreement(old: list[float], new: list[float]) -> str:
    """Whether all objectives are the same number; if not, the largest relative difference."""
    apart = max(abs(b - a) / max(abs(a), 1e-300) for a in old for b in new)
    return "yes" if apart == 0.0 else f"{apart:.1e}"


def page(rows: list[list[str]], options: argparse.Namespace, machine: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    memory = GPU_MEMORY if options.device.startswith("cuda") else MEMORY
    how = {"repeats": options.repeats, "inner": options.inner, "short": SHORT, "memory": memory}
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    gpu = f"{machine['gpu']}; " if machine["gpu"] else ""
    parts = [
        "# One commit against another\n",
        INTRODUCTION.format(**how),
        DATA,
        f"Old: commit {machine['old']}. New: commit {machine['new']}. Device {options.device}, "
        f"{date.today().isoformat()}, load {machine['load']} before.\n",
        f"{gpu}{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB. Python "
        f"{machine['python']}, {versions}.\n",
        markdown_table(HEADER, rows),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
