"""Read a file of any known format into a pandas frame, or say what is wrong with it."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from lnml.errors import InputError, require
from lnml.tables.arrays import read_npy, read_npz, read_svmlight
from lnml.tables.delimited import check_columns, read_delimited
from lnml.tables.limits import most_bytes, refuse_more
from lnml.tables.parquet_limits import check_parquet
from lnml.tables.reading import AS_IT_IS, Reading, mark_missing
from lnml.tables.sources import STREAM, Source, open_source
from lnml.tables.workbooks import read_xlsx

# Formats whose labels are a column y, unless the user names another.
LABELLED = (".npz", ".svmlight")


def read_frame(
    path: str | Path,
    text_columns: Collection[str] = (),
    reading: Reading = AS_IT_IS,
    notes: list[str] | None = None,
    wanted: Collection[str] = (),
) -> Any:
    """Read a file into a frame, with the columns of the file.

    Parameters
    ----------
    path : str or Path
        A file of one of the formats in docs/cli.md, which its extension tells; ``-`` is standard
        input.
    text_columns : collection of str
        Columns to keep as they are written (labels).
    reading : Reading
        What the file itself does not say.
    notes : list of str, optional
        Gets what a user should know about the file, such as its encoding.
    wanted : collection of str
        Columns that will be asked for. They are zero where svmlight files leave them out.

    Returns
    -------
    frame : pandas.DataFrame of shape (n, columns)

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    return read_labelled(path, None, text_columns, reading, notes, wanted)[0]


def read_labelled(
    path: str | Path,
    label: str | None,
    text_columns: Collection[str] = (),
    reading: Reading = AS_IT_IS,
    notes: list[str] | None = None,
    wanted: Collection[str] = (),
) -> tuple[Any, str | None]:
    """Read a file as :func:`read_frame` does; return its frame and its column of labels, too.

    That is the one the user named, or the one that the format knows, or None.
    """
    name = "standard input" if str(path) == STREAM else str(path)
    try:
        with open_source(path, reading) as source:
            if label is None and source.extension in LABELLED:
                label = "y"
            kept = {*text_columns, *(() if label is None else (label,))}
            frame = _read(source, kept, wanted)
            if notes is not None:
                notes.extend(source.notes)
            return frame, label
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not {error.encoding} text (byte {error.start} cannot be decoded): name its "
            f"encoding (--encoding)"
        ) from error
    except UnicodeError as error:
        raise InputError(f"{name} is not text of its encoding: {error}") from error
    except FileNotFoundError as error:
        raise InputError(f"{name} does not exist: check the name") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder: name a file in it") from error
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InputError(f"{name} cannot be unpacked, it seems cut off or damaged") from error
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(f"{name} cannot be unpacked: {error}") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}") from error


def _read(source: Source, text_columns: Collection[str], wanted: Collection[str]) -> Any:
    if source.path.stat().st_size == 0:
        raise InputError(f"{source} is empty (0 bytes): write it again")
    readers: dict[str, Callable[[Source], Any]] = {
        ".parquet": _read_parquet,
        ".arff": _read_arff,
        ".npz": read_npz,
        ".npy": read_npy,
        ".svmlight": partial(read_svmlight, wanted=wanted),
        ".xlsx": read_xlsx,
    }
    if source.extension in readers:
        frame = readers[source.extension](source)
    else:
        frame = read_delimited(source, text_columns)
    frame.columns = [str(column) for column in frame.columns]
    check_columns(source, list(frame.columns))
    if not len(frame):
        raise InputError(f"{source} has column names but no rows")
    return mark_missing(frame, source.reading.missing, keep=text_columns)


def _read_parquet(source: Source) -> Any:
    pandas = require("pandas")
    try:
        nested = check_parquet(source)
        flat = None
        if nested:
            known = require("pyarrow.parquet").read_schema(source.path).names
            flat = [name for name in known if name not in nested]
        frame = pandas.read_parquet(source.path, engine="pyarrow", columns=flat)
        for name in nested:
            # Refused with its name if it is used, and not in the way if it is left out.
            frame[name] = pandas.Series([()] * len(frame), index=frame.index, dtype=object)
        for _, column in frame.items():
            _check_text(column.cat.categories if column.dtype == "category" else column)
        return frame
    except (InputError, MemoryError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:
        # Damaged footers and what pandas says in them make both raise errors of many kinds.
        raise InputError(
            f"{source} is not a Parquet file, or was cut off while it was written: write it again"
        ) from error


def _check_text(values: Any) -> None:
    """Refuse bytes that are no text where Arrow keeps text; it decodes them when they are used."""
    if values.dtype == "str":
        require("pyarrow").array(values).validate(full=True)


def _read_arff(source: Source) -> Any:
    pandas, arff = require("pandas"), require("arff", "liac-arff")
    _check_sparse(source)
    with source.open_text() as file:
        try:
            content = arff.load(file)
        except (MemoryError, OSError, UnicodeError):
            raise
        except Exception as error:
            # The reader has errors of its own, and others for texts that it does not expect.
            what = "a declaration or a row is damaged"
            # The message itself cannot be made if the file holds signs of percent.
            with suppress(ValueError, TypeError):
                what = str(error) if isinstance(error, arff.ArffException) else what
            raise InputError(f"{source} cannot be read as ARFF: {what}") from error
    columns = {}
    for position, (name, kind) in enumerate(content["attributes"]):
        values = [row[position] for row in content["data"]]
        numeric = isinstance(kind, str) and kind.upper() in ("NUMERIC", "REAL", "INTEGER")
        # Categories even where their names are numbers: the file says so.
        columns[name] = pandas.Series(values, dtype="float64" if numeric else "category")
    return pandas.DataFrame(columns)


def _check_sparse(source: Source) -> None:
    """Refuse ARFF whose sparse rows, of a few bytes each, would become too many values."""
    attributes = rows = 0
    with source.open_text() as file:
        for line in file:
            start = line.lstrip()[:10].lower()
            attributes += start == "@attribute"
            rows += start.startswith("{")
    # Each value is a pointer at least.
    refuse_more(source, 8 * attributes * rows, most_bytes(source.path), "leave attributes out")
