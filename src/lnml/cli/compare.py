"""``lnml compare``: find the best distance for a table, and whether its lead is real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show_notes
from lnml.cli.device import check_device, fold_jobs
from lnml.cli.methods import NAMES
from lnml.cli.options import (
    Components,
    Data,
    Device,
    Drop,
    Force,
    Jobs,
    Label,
    Quiet,
    Resume,
    Scale,
    Seed,
)
from lnml.cli.progress import fold_bar
from lnml.files import atomic_output, check_output
from lnml.registry import check_methods

EXAMPLES = (
    "lnml compare iris.csv --label species",
    "lnml compare wine.parquet --label cultivar --scale standard --methods euclidean,lmnn,ln-lmnn",
    "lnml compare big.csv --label kind --resume work/ -o big.html   (go on after an interruption)",
)

Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        "-m",
        metavar="NAMES",
        help=f"Names separated by commas, from {', '.join(NAMES)}.",
        show_default="the eight methods of the paper",
    ),
]
Voters = Annotated[int, typer.Option("--k", metavar="K", help="Neighbours that vote.", min=1)]
Folds = Annotated[
    int, typer.Option("--folds", metavar="N", help="Folds of the cross-validation.", min=2)
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="REPORT",
        help="HTML file to write; the JSON file beside it has the same name.",
        show_default="name of DATA with .html, in this folder",
    ),
]


def compare(
    data: Data,
    label: Label = None,
    methods: Methods = "",
    k: Voters = 1,
    folds: Folds = 10,
    scale: Scale = "none",
    pca: Components = None,
    drop: Drop = [],  # noqa: B006 - Typer copies it
    output: Report = None,
    resume: Resume = None,
    jobs: Jobs = None,
    device: Device = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Cross-validate metric learners on the rows of DATA and say which one is best.

    All methods see the same folds; each is judged by the k-nearest-neighbour rule. Differences are
    tested by McNemar's exact test. The result is a table here, a report that any browser shows, and
    a JSON file.
    """
    page = output or Path(f"{data.name.split('.')[0]}.html")
    stored = page.with_suffix(".json")
    for path in (page, stored):
        check_output(path, force=force)
    keys = _method_keys(methods)
    place = check_device(device)
    from lnml.tables import read_table

    table = read_table(data, label, drop)
    from lnml.cli.work import compare_table, provenance

    settings = {
        "label": table.label,
        "folds": folds,
        "k": k,
        "scale": scale,
        "pca": pca,
        "dropped columns": ", ".join(drop) or None,
        "seed": seed,
        "device": place,
    }
    with fold_bar(data.name, quiet=quiet) as progress:
        found, portrait = compare_table(
            table, keys, settings, folder=resume, n_jobs=fold_jobs(jobs, place), progress=progress
        )
    show_notes(table.notes, quiet=quiet)
    origin = provenance(settings)
    _write(page, stored, found, portrait, origin, table.notes)
    if not quiet:
        print(_summary(found, page, stored))


def _method_keys(names: str) -> list[str]:
    keys = [key.strip() for key in names.split(",") if key.strip()]
    return check_methods(keys) if keys else []


def _write(
    page: Path, stored: Path, found: Any, portrait: Any, origin: Any, notes: tuple[str, ...]
) -> None:
    from dataclasses import asdict

    from lnml.report.page import write_report

    content = {"provenance": asdict(origin), "comparison": found.to_json()}
    with atomic_output(stored) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")
    try:
        write_report(
            page,
            [found],
            portraits={} if portrait is None else {found.data.name: portrait},
            provenance=origin,
            notes=notes,
        )
    except BaseException:
        stored.unlink(missing_ok=True)
        raise


def _summary(found: Any, page: Path, stored: Path) -> str:
    from lnml.report.layout import accuracy_table
    from lnml.report.page import unfinished_fits
    from lnml.report.verdict import verdict_on_data

    lines = [
        accuracy_table([found]).to_text(),
        "",
        verdict_on_data(found, 0.05),
        *unfinished_fits(found),
        "",
        f"report: {page}",
        f"results: {stored}",
    ]
    return "\n".join(lines)
