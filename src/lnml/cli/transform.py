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
    "zcat new.csv.gz | lnml transform iris.model - -o -",
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
            help="File to write: CSV, TSV, Parquet or NPZ, or - for CSV to standard output.",
            show_default=False,
        ),
    ],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Map the rows of DATA so that their Euclidean distance is the learned distance.

    OUT has the columns z0, z1, ... and the labels, if DATA has them.
    """
    from lnml.models import load_table_model
    from lnml.tables.sources import STREAM
    from lnml.tables.writing import check_writable, write_matrix

    check_writable(output)
    if str(output) != STREAM:
        check_output(output, force=force, inputs=[model, data])
    fitted = load_table_model(model)
    frame, notes = read_queries(fitted, data, reading)
    Z = fitted.transform(frame)
    matrix = require("pandas").DataFrame(Z, columns=[f"z{i}" for i in range(Z.shape[1])])
    label = fitted.label if fitted.label in frame.columns else None
    if label is not None:
        if label in matrix.columns:
            raise InputError(f"the column of labels {label!r} has the name of a result: rename it")
        matrix[label] = frame[label].to_numpy()
    write_matrix(output, matrix, label, replace=force)
    # Only now, because an error must be a single line.
    show_notes(notes, quiet=quiet)


def read_queries(fitted: Any, data: Path, reading: Any) -> tuple[Any, list[str]]:
    """Read rows for a model; return them and notes about what is new in them.

    That is how many values have a category that does not occur in the training rows.
    """
    from lnml.tables.formats import read_frame

    notes: list[str] = []
    said = reading.with_missing(fitted.missing)
    frame = read_frame(data, (fitted.label,), said, notes, fitted.preparation.names)
    counts = fitted.preparation.count_unknown(frame)
    notes += [
        f"column {name!r}: {count} of {len(frame)} values do not occur in the training rows, so "
        f"all 0/1 columns of {name!r} are 0 there"
        for name, count in counts.items()
    ]
    return frame, notes
