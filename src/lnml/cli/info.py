"""``lnml info``: what a model file holds."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from lnml.cli.options import ModelFile

EXAMPLES = (
    "lnml info iris.model",
    "lnml info iris.model --json",
)


def info(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model was learned from, how, and how well the fit went."""
    from lnml.models import load_model

    facts = _facts(load_model(model))
    if as_json:
        print(json.dumps(facts, indent=1))
        return
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        grid.add_row(f"[bold]{name.replace('_', ' ')}[/bold]", _words(value))
    Console().print(grid)


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
        "data": dict(model.data),
        "label": model.label,
        "classes": model.class_sizes,
        "columns": columns,
        "scale": preparation.scale,
        "pca": preparation.pca,
        "components": list(model.components.shape),
        "training_rows": len(model.rows),
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
        if set(value) == {"class", "parameters"}:
            inner = ", ".join(f"{name}={_plain(v)}" for name, v in value["parameters"].items())
            return f"{value['class']}({inner})"
        return "\n".join(f"{name}: {_plain(v)}" for name, v in value.items())
    if isinstance(value, list):
        shown = [_plain(item) for item in value[:10]]
        return ", ".join(shown) + (f", ... ({len(value)})" if len(value) > 10 else "")
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
