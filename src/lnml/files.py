"""Output files that are there completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lnml.errors import InputError


def check_output(path: str | Path, *, force: bool, inputs: Iterable[str | Path] = ()) -> Path:
    """Refuse an output that could not be written, before any work is done for it.

    Parameters
    ----------
    path : str or Path
        Where the output goes.
    force : bool
        Whether a file that is there already may be replaced.
    inputs : iterable of str or Path
        Files that are read. They are never replaced, under whatever name.
    """
    path = Path(path)
    if str(path) == "-":
        raise InputError("this cannot be written to standard output (-): name a file")
    if any(_is_same(path, source) for source in inputs):
        raise InputError(f"{path} is read, and would be lost: choose another name for the output")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file and cannot be replaced: choose another name")
    if path.exists() and not force:
        raise InputError(f"{path} exists already: choose another name, or replace it with --force")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"the folder {folder} does not exist: create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {folder} cannot be written to: choose another one")
    return path


def _is_same(path: Path, other: str | Path) -> bool:
    return path.exists() and Path(other).exists() and path.samefile(other)


@contextmanager
def atomic_output(path: str | Path, *, replace: bool = True) -> Iterator[Path]:
    """Give a temporary name in the same folder; its file takes the place of ``path`` at the end.

    If the block fails or is interrupted, nothing is left behind and an older
    file stays as it was. The temporary name has the same extension.

    Parameters
    ----------
    path : str or Path
        Where the output goes.
    replace : bool, default=True
        Whether an older file may be replaced. If not, a file that has appeared by then, such as
        that of another run, stays, and this one is refused.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_output(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     (Path(folder) / "a.txt").read_text()
    'done'
    """
    path = Path(path)
    temporary = path.with_name(f".{secrets.token_hex(6)}-{path.name}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if not replace:
            _claim(temporary, path)
        os.replace(temporary, path)
    except FileExistsError as error:
        raise InputError(
            f"{path} appeared while this command ran, and was not replaced: choose another name, "
            f"or replace it with --force"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        # Where even that is impossible, as in a folder that became read-only, the cause was told.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _claim(temporary: Path, path: Path) -> None:
    """Give a finished file its final name too, unless a file has that name already."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no second names; an empty file then stands there for a moment.
        path.open("xb").close()
