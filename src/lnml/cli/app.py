"""The Typer application and what all commands share: errors, notes, exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

import typer

from lnml.core.text import visible
from lnml.errors import InputError
from lnml.version import __version__

# Typer carries click's exceptions along in some versions and imports them in
# others; its own BadParameter has all usage errors as siblings in both.
UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="lnml",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with [bold]lnml compare iris.csv --label species[/bold]. "
    "Every command explains itself: [bold]lnml compare --help[/bold].",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lnml {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version),
    ] = False,
) -> None:
    """Learn a distance for labelled tables, and use it on new rows.

    A metric learner stretches and turns the space of your features so that
    nearest neighbours have the same class more often. LNML also learns which
    rows should be neighbours.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def run(arguments: list[str]) -> int:
    """Run the application; every mistake of the user becomes one line and exit code 2."""
    try:
        with _terminated_as_interrupted():
            result = application()(arguments, prog_name="lnml", standalone_mode=False)
    except InputError as error:
        return _fail(str(error))
    except MemoryError as error:
        # Fits say what they need and what there is; Python itself says nothing.
        return _fail(
            str(error) or "out of memory: take fewer rows, or fewer folds at a time (-j 1)"
        )
    except UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "lnml"
        return _fail(f"{error.format_message().rstrip('.')}: see {command} --help")
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        # The reader of a pipe went away; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    code = result if isinstance(result, int) else 0
    return _interrupted() if code == 130 else code


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Make SIGTERM act as Ctrl-C; otherwise workers would go on, and half-written files stay."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may say what signals do.
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@cache
def application() -> typer.Typer:
    """Return the application with all its commands, in the order of the help."""
    from lnml.cli import compare, fit, info, neighbors, study, transform

    for command, examples in (
        (compare.compare, compare.EXAMPLES),
        (fit.fit, fit.EXAMPLES),
        (transform.transform, transform.EXAMPLES),
        (neighbors.neighbors, neighbors.EXAMPLES),
        (info.info, info.EXAMPLES),
        (study.study, study.EXAMPLES),
    ):
        shown = "\n\n".join(("[bold]Examples[/bold]", *examples))
        app.command(epilog=shown)(command)
    return app


def show(text: str) -> None:
    """Print what a command found; what comes from a file cannot command the terminal."""
    print(visible(text, lines=True))


def show_notes(notes: Iterable[str], *, quiet: bool = False) -> None:
    """Print what a user should know on stderr, one line each."""
    if not quiet:
        for note in notes:
            print(f"lnml: note: {_one_line(note)}", file=sys.stderr)


def show_warnings(caught: Iterable[Any]) -> None:
    """Print on stderr what :func:`warnings.catch_warnings` recorded, each text once."""
    for text in dict.fromkeys(_one_line(str(warning.message)) for warning in caught):
        print(f"lnml: warning: {text}", file=sys.stderr)


def _fail(message: str) -> int:
    print(f"lnml: {_one_line(message)}", file=sys.stderr)
    return 2


def _interrupted() -> int:
    print("lnml: interrupted, no result was written", file=sys.stderr)
    return 130


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
