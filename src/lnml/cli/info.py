"""``lnml info``: what a model file holds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lnml.cli.app import show
from lnml.cli.options import FORMATS, ModelFile
from lnml.cli.reading import reads_tables
from lnml.core.text import visible
from lnml.errors import InputError

if TYPE_CHECKING:
    from lnml.certificates import Verification

EXAMPLES = (
    "lnml info iris.model",
    "lnml info iris.model --json",
    "lnml info iris.model --verify iris.csv",
)


@reads_tables
def info(
    model: ModelFile,
    reading: Any,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            metavar="DATA",
            help=f"Check the stored proof against the training table: {FORMATS}; or the Parquet "
            "files of a fit on a cluster.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what a model was learned from, how, and how well the fit went.

    With --verify, all sums behind the proof of optimality are computed again from DATA. The exit
    code is 1 if the proof does not hold.
    """
    from lnml.models import load_table_model

    fitted = load_table_model(model)
    if verify is not None:
        _verify(fitted, model, verify, reading, as_json)
        return
    facts = _facts(fitted)
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    _show(facts)


def _show(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        grid.add_row(f"[bold]{name.replace('_', ' ')}[/bold]", _words(value))
    Console().print(grid)


def _verify(fitted: Any, model: Path, data: Path, reading: Any, as_json: bool) -> None:
    """Check a model's certificate against the table it was fitted on, and say what came out."""
    from lnml.certificates import verify

    if fitted.certificate is None:
        raise InputError(
            f"{model} ({fitted.method}) holds no certificate: NCA and the Euclidean metric have "
            f"none, nor has a fit that proved nothing; LMNN, MCML, MMC, ITML, support-vector, "
            f"relative and learned neighbourhoods with these do: fit again with one of them"
        )
    table = _training_table(fitted, model, data, reading)
    found = verify(fitted.certificate, fitted.preparation.transform(table.features), table.labels)
    if as_json:
        print(json.dumps(_findings(found, fitted.certificate.about), indent=1))
    elif found.holds:
        show(f"The proof holds. {fitted.certificate.about}")
        _show(
            {
                "objective": f"{found.objective:.15g}, exact to {found.objective_error:.1e}",
                "bound": f"{found.bound:.15g}",
                "gap": f"{found.gap:.3g}",
            }
        )
    if not found.holds:
        print(f"lnml: the proof does not hold: {visible(found.reason)}", file=sys.stderr)
        raise typer.Exit(1)


def _training_table(fitted: Any, model: Path, data: Path, reading: Any) -> Any:
    """Read DATA with the columns that the model uses; it must be the training table."""
    table, fingerprint = (_read_files if "files" in fitted.data else _read)(fitted, data, reading)
    if fingerprint != fitted.data["fingerprint"]:
        raise InputError(
            f"{data} is not the table that {model} was fitted on ({fitted.data['name']}): its "
            f"rows, columns or labels are others; give that table"
        )
    return table


def _read_files(fitted: Any, data: Path, reading: Any) -> tuple[Any, str]:
    """Read Parquet files as a cluster does; return the table and its fingerprint."""
    from lnml.tables.parquet_files import find_files
    from lnml.tables.pieces import Plan
    from lnml.tables.summary import read_whole

    columns = fitted.preparation.columns_
    plan = Plan(
        fitted.label,
        tuple(column.name for column in columns if column.kind == "numbers"),
        tuple(column.name for column in columns if column.kind == "categories"),
        reading.with_missing(fitted.missing).missing,
    )
    return read_whole(find_files(data)[0], plan, fitted.classes)


def _read(fitted: Any, data: Path, reading: Any) -> tuple[Any, str]:
    """Read a table; return it and its fingerprint."""
    from lnml.tables import make_table
    from lnml.tables.formats import read_frame
    from lnml.tables.table import label_texts

    said = reading.with_missing(fitted.missing)
    frame = read_frame(data, (fitted.label,), said, wanted=fitted.preparation.names)
    kinds = {column.name: column.kind for column in fitted.preparation.columns_}
    unused = [name for name in frame.columns if name not in kinds and name != fitted.label]
    known = [name for name in frame.columns if kinds.get(name) == "categories"]
    found = set(label_texts(frame[fitted.label])) if fitted.label in frame else set()
    # The fit may have left classes out; a table that lacks one of the others is another.
    others = found.difference(fitted.classes) if found.issuperset(fitted.classes) else ()
    table = make_table(
        frame, fitted.label, name=data.name, drop=unused, categories=known, drop_classes=others
    )
    return table, table.fingerprint


def _findings(found: Verification, about: str) -> dict[str, Any]:
    """Return what was found for JSON, which has no NaN."""
    numbers = {
        name: None if isinstance(value, float) and value != value else value
        for name, value in found._asdict().items()
    }
    return {"about": about, **numbers}


def _facts(model: Any) -> dict[str, Any]:
    preparation = model.preparation
    columns = {
        column.name: "numbers" if column.categories is None else list(column.categories)
        for column in preparation.columns_
    }
    return {
        "method": model.method,
        "estimator": model.estimator,
        "fit": dict(model.fit),
        "k": model.k,
        "data": dict(model.data),
        "label": model.label,
        "classes": model.class_sizes,
        "columns": columns,
        "read_as_missing": list(model.missing) or None,
        "scale": preparation.scale,
        "pca": preparation.pca,
        "components": list(model.components.shape),
        "training_rows": model.n_rows,
        "kept_rows": len(model.rows),
        "certificate": None if model.certificate is None else model.certificate.about,
        "created": model.created,
        "lnml_version": model.lnml_version,
    }


def _words(value: Any) -> Any:
    """Return a value as text for people; brackets are no markup here."""
    from rich.text import Text

    return Text(_plain(value))


def _plain(value: Any) -> str:
    if value is None or value == {}:
        return "none"
    if isinstance(value, dict):
        if set(value) == {"class", "parameters"} and isinstance(value["parameters"], dict):
            inner = ", ".join(
                f"{visible(name)}={_plain(v)}" for name, v in value["parameters"].items()
            )
            return f"{visible(value['class'])}({inner})"
        return "\n".join(f"{visible(name)}: {_plain(v)}" for name, v in value.items())
    if isinstance(value, list):
        shown = [_plain(item) for item in value[:10]]
        return ", ".join(shown) + (f", ... ({len(value)})" if len(value) > 10 else "")
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible(str(value))
