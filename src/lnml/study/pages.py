"""Write what the study found: a table for the terminal, Markdown, JSON and the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lnml.errors import unknown_name
from lnml.evaluation.results import Comparison, Provenance
from lnml.files import atomic_output
from lnml.report.advice import Advice
from lnml.report.layout import AccuracyTable, accuracy_table
from lnml.report.page import write_report
from lnml.report.solved import unfinished_fits
from lnml.study.paper import ACCURACY, LARGE_COLUMNS, SMALL_COLUMNS
from lnml.study.problems import LARGE, SMALL, UNOBTAINABLE, StudyData
from lnml.study.run import StudyResults

GROUPS = {"Small data": SMALL_COLUMNS, "Large data": LARGE_COLUMNS}
REFERENCE = "paper"
NEXT = Advice(
    "Compare the methods on a table of your own:", "lnml compare TABLE.csv --label COLUMN"
)


def chosen_data(names: Sequence[str], everything: bool) -> list[StudyData]:
    """Return the data sets asked for: by name, all, or the small ones."""
    known = {data.name: data for data in (*SMALL, *LARGE)}
    for name in names:
        if name not in known:
            raise unknown_name("data set", name, list(known))
    if names:
        return [data for data in known.values() if data.name in names]
    return list(known.values()) if everything else list(SMALL)


def write_study(
    folder: Path, results: StudyResults, provenance: Provenance, *, replace: bool = True
) -> str:
    """Write ``report.html``, ``study.md`` and ``study.json``; return what to print.

    Parameters
    ----------
    folder : path
        Where to write.
    results : StudyResults
        What was found.
    provenance : Provenance
        How the results were made.
    replace : bool, default=True
        Whether older files are replaced, or the new ones refused.
    """
    groups = {title: _comparisons(results, title) for title in GROUPS}
    groups = {title: found for title, found in groups.items() if found}
    absent = {title: _absent(results, title) for title in groups}
    tables = {title: _table(title, groups[title], absent[title]) for title in groups}
    notes = [note for found in groups.values() for c in found for note in _unfinished(c)]
    notes += [
        f"{data.title}: left out, because some of its folds are missing; "
        f"lnml study --data {data.name} --resume completes them."
        for data in results.unfinished
    ]
    write_report(
        folder / "report.html",
        groups,
        portraits={c.data.name: drawn for c, drawn in results.found.values() if drawn},
        provenance=provenance,
        reference=ACCURACY,
        reference_name=REFERENCE,
        absent=absent,
        columns=GROUPS,
        notes=notes,
        advice=NEXT,
        replace=replace,
    )
    stored = {
        "provenance": asdict(provenance),
        "comparisons": [c.to_json() for c, _ in results.found.values()],
    }
    with atomic_output(folder / "study.json", replace=replace) as temporary:
        temporary.write_text(json.dumps(stored), encoding="utf-8")
    with atomic_output(folder / "study.md", replace=replace) as temporary:
        temporary.write_text(_markdown(tables, notes), encoding="utf-8")
    lines = []
    for title, table in tables.items():
        lines += [title, table.to_text(), ""]
    lines += [next(iter(tables.values())).caption, *notes, f"report: {folder / 'report.html'}"]
    return "\n".join(lines)


def _comparisons(results: StudyResults, title: str) -> list[Comparison]:
    large = title == "Large data"
    return [found for data, (found, _) in results.found.items() if data.large == large]


def _absent(results: StudyResults, title: str) -> dict[str, str]:
    large = title == "Large data"
    missing = {data.title: "not on this machine" for data in results.absent if data.large == large}
    if large:
        missing.update(dict.fromkeys(UNOBTAINABLE, "not obtainable"))
    return missing


def _table(title: str, found: list[Comparison], absent: dict[str, str]) -> AccuracyTable:
    return accuracy_table(
        found, methods=GROUPS[title], reference=ACCURACY, reference_name=REFERENCE, absent=absent
    )


def _unfinished(comparison: Comparison) -> list[str]:
    return [f"{comparison.data.name}: {line}" for line in unfinished_fits(comparison)]


def _markdown(tables: dict[str, AccuracyTable], notes: list[str]) -> str:
    parts = []
    for title, table in tables.items():
        parts += [f"### {title}", table.caption, table.to_markdown()]
    return "\n\n".join([*parts, *notes]) + "\n"
