"""Options about how a table is to be read, which all commands that read one share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer

PANEL = "Reading the table"


def _option(name: str, metavar: str, meaning: str, default: str) -> Any:
    return Annotated[
        str | None,
        typer.Option(
            name, metavar=metavar, help=meaning, show_default=default, rich_help_panel=PANEL
        ),
    ]


# Each becomes an attribute of :class:`lnml.tables.reading.Reading`, with this default.
OPTIONS: dict[str, tuple[Any, Any]] = {
    "missing": (
        Annotated[
            list[str],
            typer.Option(
                "--missing",
                metavar="VALUE",
                help="Value of feature columns that stands for a missing one, such as -999; may "
                "be repeated. A model remembers those of its training table.",
                show_default=False,
                rich_help_panel=PANEL,
            ),
        ],
        [],
    ),
    "delimiter": (
        _option(
            "--delimiter",
            "CHAR",
            "What separates the fields of a CSV or TSV file: a character, or tab, space, comma, "
            "semicolon, pipe.",
            "a tab in TSV; in CSV the first of , ; tab | that the header has",
        ),
        None,
    ),
    "decimal": (
        _option("--decimal", "CHAR", "What stands before decimals: a point or a comma.", "a point"),
        None,
    ),
    "encoding": (
        _option(
            "--encoding",
            "NAME",
            "Encoding of a file of text, such as latin-1 or utf-16.",
            "what the first bytes say, or UTF-8, or else Windows-1252",
        ),
        None,
    ),
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above; it gets them as one argument, ``reading``."""

    @wraps(command)
    def with_options(**given: Any) -> None:
        # Imported late, because the help must not wait for NumPy.
        from lnml.tables.reading import Reading

        said = {name: given.pop(name) for name in OPTIONS}
        said["missing"] = tuple(said["missing"])
        command(**given, reading=Reading(**said))

    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY)
        for parameter in signature(command).parameters.values()
        if parameter.name != "reading"
    ]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in OPTIONS.items()
    ]
    # Typer makes options of what it finds in these two.
    shown = signature(command).replace(parameters=[*own, *added], return_annotation=None)
    with_options.__signature__ = shown  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    return with_options
