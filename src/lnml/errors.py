"""The exception for input that a user can correct, and for a package that is missing."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class InputError(ValueError):
    """A file or an option cannot be used; the message is one line with cause and cure."""


class MissingPackage(InputError, ImportError):
    """A package of an extra is not installed; the message names the extra."""


def require(module: str, package: str | None = None, *, extra: str = "cli") -> Any:
    """Import a module of an extra, or say how to install it.

    Parameters
    ----------
    module : str
        Name to import.
    package : str, optional
        Name of the package that holds it, if different.
    extra : str, default="cli"
        Name of the extra.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingPackage(
            f'this needs {package or module}, which is not installed: pip install "lnml[{extra}]"'
        ) from error


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among those known, with near ones.

    Examples
    --------
    >>> print(unknown_name("column", "specis", ["species", "length"]))
    there is no column 'specis' (did you mean 'species'?); there are: species, length
    """
    names = list(known)
    close = get_close_matches(name, names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    shown = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
    return InputError(f"there is no {what} {name!r}{hint}; there are: {shown}")
