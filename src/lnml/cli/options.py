"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lnml.errors import InputError

# Fewer rows than this teach nothing about a table that is large.
FEWEST_LEARNED = 100
FORMATS = "CSV, TSV, Parquet, ARFF, NPZ, NPY, svmlight or XLSX, or - for standard input"

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help=f"Table with labels: {FORMATS}.", show_default=False)
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Model written by [bold]lnml fit[/bold].", show_default=False
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        metavar="COLUMN",
        help="Column that holds the classes. NPZ and svmlight files need none: y is taken.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str],
    typer.Option(
        "--drop", metavar="COLUMN", help="Column to leave out; may be repeated.", show_default=False
    ),
]
DropClass = Annotated[
    list[str],
    typer.Option(
        "--drop-class",
        metavar="LABEL",
        help="Class whose rows to leave out; may be repeated.",
        show_default=False,
    ),
]
Categories = Annotated[
    list[str],
    typer.Option(
        "--categories",
        metavar="COLUMN",
        help="Column whose values are categories, also where they are numbers; may be repeated.",
        show_default=False,
    ),
]
_SCALES = "none|standard|minmax"
_SCALE_HELP = "Leave columns of numbers as they are, or scale to mean 0, variance 1, or to 0..1."
Scale = Annotated[
    str,
    typer.Option(
        "--scale", metavar=_SCALES, help=_SCALE_HELP, autocompletion=lambda: _SCALES.split("|")
    ),
]
ScaleOfMethod = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar=_SCALES,
        help=_SCALE_HELP,
        show_default="the method's own, or none",
        autocompletion=lambda: _SCALES.split("|"),
    ),
]
Components = Annotated[
    float | None,
    typer.Option(
        "--pca",
        metavar="N",
        help="Keep N principal components, or, if N is below 1, this share of the variance.",
        show_default="all columns",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where fits run: cpu, cuda, or cuda:1 and so on; a GPU needs lnml\\[torch].",
        show_default="cpu",
    ),
]
Voters = Annotated[
    str,
    typer.Option(
        "--k",
        metavar="K|auto",
        help="Neighbours that vote; auto chooses them for each method and fold, by inner folds.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all random choices.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace the output if it exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but warnings and errors.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        help="Folds that run at the same time; -1 means one for each core.",
        show_default="-1, or 1 on a GPU",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FOLDER",
        help="Store finished folds in this folder, and do not repeat those it holds.",
        file_okay=False,
        show_default=False,
    ),
]


def read_learned(text: str) -> int | Literal["auto", "all"]:
    """Return what ``--learn-from`` says, or say what it must be.

    Examples
    --------
    >>> read_learned("2000"), read_learned("all")
    (2000, 'all')
    """
    if text == "auto" or text == "all":
        return "auto" if text == "auto" else "all"
    if not text.isdecimal() or int(text) < FEWEST_LEARNED:
        raise InputError(
            f"--learn-from must be auto, all, or a number of rows from {FEWEST_LEARNED} on; got "
            f"{text!r}"
        )
    return int(text)


def read_voters(text: str) -> int | Literal["auto"]:
    """Return what ``--k`` says, or say what it must be.

    Examples
    --------
    >>> read_voters("3"), read_voters("auto")
    (3, 'auto')
    """
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--k must be a number of neighbours (1, 2, ...) or auto; got {text!r}")
    return int(text)
