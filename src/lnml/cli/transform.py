"""``lnml transform``: map new rows to the learned space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show_notes
from lnml.cli.options import FORMATS, Force, ModelFile, Quiet
from lnml.cli.reading import reads_tables
from lnml.errors import InputError, require
from lnml.files import check_output

EXAMPLES = (
    "lnml transform iris.model new.csv -o learned.csv",
    "lnml transform iris.model new.parquet -o learned.npz",
)


@reads_tables
def transform(
    model: ModelFile,
    reading: Any,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help=f"Rows with the columns of the training table: {FORMATS}.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: CSV, TSV, Parquet or NPZ.",
            show_default=False,
        ),
    ],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Map the rows of DATA so that their Euclidean distance is the learned distance.

    OUT has the columns z0, z1, ... and the labels, if DATA has them.
    """
    from lnml.models import load_model
    from lnml.tables.formats import read_frame
    from lnml.tables.writing import check_writable, write_matrix

    check_writable(output)
    check_output(output, force=force)
    fitted = load_model(model)
    frame = read_frame(data, (fitted.label,), reading.with_missing(fitted.missing))
    show_unknown(fitted, frame, quiet)
    Z = fitted.transform(frame)
    matrix = require("pandas").DataFrame(Z, columns=[f"z{i}" for i in range(Z.shape[1])])
    label = fitted.label if fitted.label in frame.columns else None
    if label is not None:
        if label in matrix.columns:
            raise InputError(f"the column of labels {label!r} has the name of a result: rename it")
        matrix[label] = frame[label].to_numpy()
    write_matrix(output, matrix, label, replace=force)


def show_unknown(fitted: Any, frame: Any, quiet: bool) -> None:
    """Say how many values have a category that does not occur in the training rows."""
    counts = fitted.preparation.count_unknown(frame)
    show_notes(
        (
            f"column {name!r}: {count} of {len(frame)} values do not occur in the training rows, "
            f"so all 0/1 columns of {name!r} are 0 there"
            for name, count in counts.items()
        ),
        quiet=quiet,
    )
