"""Requirement lines, tables, and the files they are written to."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

INTRODUCTION = """\
`make bench` writes this page; nothing on it was written by hand. The tools of a section ran on \
the same rows in one run, one at a time. `benchmarks/objectives.py`, which shares no code with \
lnml, computed every objective again; that time is not counted. The gap of any tool is (objective \
− bound) / objective, with the lower bound that lnml proved. Memory is measured in a process that \
does nothing else: it is the peak of the resident set in MB (10⁶ bytes), minus what the process \
held with data and libraries loaded. lnml's compile cache was warm.
"""
QUICK_NOTE = """\
**This is `make bench-quick`. The sizes are smaller than those of the requirements, so the \
verdicts hold for these sizes only.**
"""


@dataclass
class Line:
    """One requirement: what was measured, what is required, and the verdict."""

    text: str
    measured: float | None
    required: float
    at_least: bool = True
    unit: str = ""
    reason: str = ""

    @property
    def verdict(self) -> str:
        """``pass`` or ``falls short``, from the numbers."""
        if self.measured is None:
            return "not measured"
        if self.at_least:
            return "pass" if self.measured >= self.required else "falls short"
        return "pass" if self.measured <= self.required else "falls short"

    def cells(self) -> list[str]:
        """Cells of the requirements table."""
        sign = "≥" if self.at_least else "≤"
        measured = self.reason if self.measured is None else number(self.measured) + self.unit
        return [self.text, measured, f"{sign} {number(self.required)}{self.unit}", self.verdict]


@dataclass
class Group:
    """What one module of the suite found."""

    title: str
    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    traces: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)
    circumstances: str = ""


@dataclass
class Table:
    """Rows of figures under a header; None is an empty cell."""

    header: list[str]
    rows: list[list[Any]] = field(default_factory=list)


def number(value: Any) -> str:
    """A figure with the digits that matter."""
    if value is None or value != value:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if math.isinf(value):
        return "never"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def markdown(groups: dict[str, Group], machine: dict[str, Any], quick: bool) -> str:
    """Return the whole page."""
    parts = ["# Benchmarks on the CPU\n", INTRODUCTION]
    if quick:
        parts.append(QUICK_NOTE)
    parts.append(machine_text(machine))
    return "\n".join([*parts, *body(groups)])


def body(groups: dict[str, Group]) -> list[str]:
    """Return the parts of a page below its introduction: requirements, then group by group."""
    parts = ["## Requirements\n"]
    lines = [line.cells() for group in groups.values() for line in group.lines]
    parts.append(markdown_table(["requirement", "measured", "required", "verdict"], lines))
    for group in groups.values():
        parts.append(f"## {group.title}\n\n{group.circumstances}\n")
        for table in group.tables:
            rows = [[number(cell) for cell in row] for row in table.rows]
            parts.append(markdown_table(table.header, rows))
        parts += [f"![{name}]({name}.png)\n" for name in group.figures]
        if group.notes:
            parts.append("\n".join(f"- {note}" for note in group.notes) + "\n")
    return parts


def machine_text(machine: dict[str, Any]) -> str:
    """Return where and with what was measured."""
    mine = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    text = (
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB, "
        f"{machine['system']}. Python {machine['python']}, {mine}; "
        f"BLAS: {', '.join(machine['blas'])}."
    )
    if "peers" in machine:
        theirs = ", ".join(f"{name} {value}" for name, value in machine["peers"].items())
        text += f" The peers' environment: {theirs}."
    return text + "\n"


def write(
    folder: Path, groups: dict[str, Group], machine: dict[str, Any], quick: bool
) -> tuple[Path, Path]:
    """Write cpu.md and cpu.json; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    page, data = folder / "cpu.md", folder / "cpu.json"
    page.write_text(markdown(groups, machine, quick))
    content = {name: asdict(group) for name, group in groups.items()}
    for name, group in groups.items():
        for stored, line in zip(content[name]["lines"], group.lines, strict=True):
            stored["verdict"] = line.verdict
    whole = {"quick": quick, "machine": machine, "groups": content}
    data.write_text(json.dumps(plain(whole), indent=1, ensure_ascii=False) + "\n")
    return page, data


def read(folder: Path) -> tuple[dict[str, Group], dict[str, Any]]:
    """Groups of an earlier run by name, and what is known of its machine; nothing if none."""
    data = folder / "cpu.json"
    if not data.exists():
        return {}, {}
    whole = json.loads(data.read_text())
    groups = {}
    for name, stored in whole["groups"].items():
        lines = [{key: line[key] for key in line if key != "verdict"} for line in stored["lines"]]
        stored["lines"] = [Line(**line) for line in lines]
        stored["tables"] = [Table(**table) for table in stored["tables"]]
        groups[name] = Group(**stored)
    return groups, whole["machine"]


def plain(value: Any) -> Any:
    """Plain JSON: lists and numbers, no NumPy, and no infinities."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
