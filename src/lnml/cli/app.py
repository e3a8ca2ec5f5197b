"""The Typer application and what all commands share: errors, notes, exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lnml.core.text import visible
from lnml.errors import InputError
from lnml.version import __version__

# Typer carries click's exceptions along in some versions and imports them in
# others; its own BadParameter has all usage errors as siblings in both.
UsageError: Any = typer.BadParameter.__base__


class Interrupted(Exception):
    """An interruption that leaves something behind; the message says what."""


class _PlainFlags:
    """Show flags without a type: the help of some versions of Typer says ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options, that of the help included."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found


class _Group(_PlainFlags, TyperGroup):
    """All commands."""


class _Command(_PlainFlags, TyperCommand):
    """One of them."""


app = typer.Typer(
    name="lnml",
    cls=_Group,
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
    _prepare_streams()
    try:
        # Otherwise workers would go on after SIGTERM, and half-written files stay.
        with signal_means(signal.SIGTERM, signal.default_int_handler):
            result = application()(arguments, prog_name="lnml", standalone_mode=False)
        sys.stdout.flush()
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
    except Interrupted as error:
        return _interrupted(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        # The reader of a pipe went away, as head does.
        _discard_unwritten()
        return 1
    except OSError as error:
        # Files say what is wrong with them by an InputError; what remains is the output.
        _discard_unwritten()
        return _fail(f"{error.filename or 'the output'} cannot be written: {error.strerror}")
    code = result if isinstance(result, int) else 0
    return _interrupted() if code == 130 else code


def _prepare_streams() -> None:
    """Write to nowhere what would go to a stream that the shell has closed (``>&-``).

    Characters that the terminal's encoding lacks are written as their numbers.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritten() -> None:
    """Keep Python from complaining at exit about output that cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def signal_means(number: signal.Signals, what: Any) -> Iterator[None]:
    """Say what a signal does in this block; only the main thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, what)
    try:
        yield
    finally:
        signal.signal(number, before)


@cache
def application() -> typer.Typer:
    """Return the application with all its commands, in the order of the help."""
    from lnml.cli import compare, export, fit, info, neighbors, study, transform

    app.callback(invoke_without_command=True, help=_flowing(root))(root)
    for command, examples in (
        (compare.compare, compare.EXAMPLES),
        (fit.fit, fit.EXAMPLES),
        (transform.transform, transform.EXAMPLES),
        (neighbors.neighbors, neighbors.EXAMPLES),
        (info.info, info.EXAMPLES),
        (export.export, export.EXAMPLES),
        (study.study, study.EXAMPLES),
    ):
        shown = "\n\n".join(("[bold]Examples[/bold]", *examples))
        app.command(epilog=shown, help=_flowing(command), cls=_Command)(command)
    return app


def show(text: str) -> None:
    """Print what a command found; what comes from a file cannot command the terminal."""
    print(visible(text, lines=True))


def _flowing(command: Callable[..., Any]) -> str:
    """Return the docstring with paragraphs of one line each, for terminals of any width."""
    paragraphs = (command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


@contextmanager
def keeping_folds(folder: Path | None, cure: str) -> Iterator[None]:
    """Say after an interruption how many results are kept in the folder, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        kept = 0 if folder is None else sum(1 for _ in folder.rglob("fold*.json"))
        if not kept:
            raise
        raise Interrupted(f"{kept} finished fits are kept in {folder}: {cure}") from error


def show_notes(notes: Iterable[str], *, quiet: bool = False) -> None:
    """Print what a user should know on stderr, one line each."""
    if not quiet:
        for note in notes:
            _say(f"note: {note}")


def show_warnings(caught: Iterable[Any]) -> None:
    """Print on stderr what :func:`warnings.catch_warnings` recorded, each text once."""
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        _say(f"warning: {text}")


def _fail(message: str) -> int:
    _say(message)
    return 2


def _interrupted(kept: str = "") -> int:
    _say(f"interrupted, no result was written{kept and f'; {kept}'}")
    return 130


def _say(text: str) -> None:
    """Print one line on stderr; the exit code must be right even where nobody can read it."""
    with suppress(OSError):
        print(f"lnml: {visible(' '.join(text.split()))}", file=sys.stderr)
