"""``lnml neighbors``: the training rows nearest to new rows, and their vote."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show_notes
from lnml.cli.options import FORMATS, Force, ModelFile, Quiet
from lnml.cli.reading import reads_tables
from lnml.cli.transform import read_queries
from lnml.core.text import rows_text, visible
from lnml.errors import InputError, require
from lnml.files import atomic_output, check_output

SHOWN = 20


EXAMPLES = (
    "lnml neighbors iris.model new.csv -k 3",
    "lnml neighbors iris.model new.csv -o nearest.json",
    "lnml neighbors iris.model new.csv | head",
    "lnml neighbors iris.model iris.csv --without-self   (rows of the training table)",
)


@reads_tables
def neighbors(
    model: ModelFile,
    reading: Any,
    query: Annotated[
        Path,
        typer.Argument(metavar="QUERY", help=f"Rows to look up: {FORMATS}.", show_default=False),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="K",
            help="Neighbours of each row.",
            show_default="the model's own, or 5 if it has none",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write all rows to a .csv or .json file, or with - as CSV to standard output.",
            show_default=False,
        ),
    ] = None,
    without_self: Annotated[
        bool,
        typer.Option(
            "--without-self",
            help="Leave out the training row that a row of QUERY is itself (one at distance 0).",
        ),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Show the training rows nearest to every row of QUERY, under the learned distance.

    Rows are numbered from 0; the header does not count. "predicted" is the label
    that most of the K neighbours have; if labels tie, the nearest row decides. A
    terminal shows the first rows as a table; a pipe receives all rows as CSV.
    """
    from lnml.models import load_table_model

    path = None if str(output) == "-" else output
    if path is not None:
        _check_output(path, force, inputs=[model, query])
    fitted = load_table_model(model)
    frame, notes = read_queries(fitted, query, reading)
    distances, rows = fitted.neighbors(frame, k, without_self=without_self)
    predicted = fitted.vote(rows)
    table = _long_table(distances, rows, fitted, predicted)
    if path is not None:
        _write(path, table, force)
    elif output is None and sys.stdout.isatty():
        _show(table, rows.shape[1])
    else:
        print(table.to_csv(index=False), end="")
    # Only now, because an error must be a single line.
    show_notes((*notes, *_about_sample(fitted)), quiet=quiet)
    if not without_self:
        show_notes(_found_themselves(fitted, distances), quiet=quiet)
    show_notes(_accuracy(fitted.label, frame, predicted), quiet=quiet)


def _check_output(path: Path, force: bool, inputs: Sequence[Path]) -> None:
    if path.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{path}: neighbours are written to .csv or .json")
    check_output(path, force=force, inputs=inputs)


def _long_table(distances: Any, rows: Any, fitted: Any, predicted: Any) -> Any:
    """One line for each pair of a query and a neighbour."""
    m, k = rows.shape
    found = rows.ravel()
    return require("pandas").DataFrame(
        {
            "query": [i for i in range(m) for _ in range(k)],
            "predicted": predicted.repeat(k),
            "rank": list(range(1, k + 1)) * m,
            "row": found if fitted.numbers is None else fitted.numbers[found],
            "distance": distances.ravel(),
            "label": fitted.labels[found],
        }
    )


def _write(path: Path, table: Any, force: bool) -> None:
    with atomic_output(path, replace=force) as temporary:
        if path.suffix.lower() == ".csv":
            table.to_csv(temporary, index=False)
            return
        queries = [
            {
                "query": int(query),
                "predicted": lines["predicted"].iloc[0],
                "neighbors": lines[["row", "distance", "label"]].to_dict(orient="records"),
            }
            for query, lines in table.groupby("query", sort=True)
        ]
        temporary.write_text(json.dumps(queries, indent=1) + "\n", encoding="utf-8")


def _show(table: Any, k: int) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    def cell(label: str) -> Text:
        # A plain string would be read as markup.
        return Text(visible(label))

    grid = Grid("query", "predicted", "rank", "row", "distance", "label")
    for line in table.head(SHOWN * k).itertuples():
        first = line.rank == 1
        grid.add_row(
            str(line.query) if first else "",
            cell(line.predicted if first else ""),
            str(line.rank),
            str(line.row),
            f"{line.distance:.4g}",
            cell(line.label),
            end_section=line.rank == k,
        )
    console = Console()
    console.print(grid)
    hidden = len(table) // k - SHOWN
    if hidden > 0:
        console.print(f"{hidden} more rows: write all with -o FILE.csv or FILE.json")


def _about_sample(fitted: Any) -> list[str]:
    """Say if a model keeps some of its training rows only."""
    if fitted.numbers is None:
        return []
    return [
        f"the model keeps {len(fitted.rows)} of its {fitted.n_rows} training rows: neighbours are "
        f"sought among these"
    ]


def _found_themselves(fitted: Any, distances: Any) -> list[str]:
    """How many rows seem to be training rows."""
    count = int(fitted.is_same(distances[:, 0]).sum())
    if not count:
        return []
    if len(distances) == 1:
        return [
            "the row has a training row at distance 0: it seems to be a row of the training table, "
            "and votes for itself; --without-self leaves it out"
        ]
    return [
        f"{count} of {len(distances)} rows have a training row at distance 0: they seem to be rows "
        f"of the training table, and vote for themselves; --without-self leaves them out"
    ]


def _accuracy(label: str, frame: Any, predicted: Any) -> list[str]:
    """How often the vote is right, where the query rows have labels."""
    from lnml.tables.columns import category_text

    if label not in frame.columns:
        return []
    known = frame[label].notna().to_numpy()
    if not known.any():
        return []
    truth = [category_text(value) for value in frame[label].astype("object")[known]]
    right = sum(a == b for a, b in zip(truth, predicted[known], strict=True))
    verb = "is" if len(truth) == 1 else "are"
    return [f"{right} of the {rows_text(len(truth))} with a label {verb} predicted right"]
