"""Find Parquet files, and learn from their footers what they hold, before any row is read."""

from __future__ import annotations

import glob
import socket
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lnml.errors import InputError, require
from lnml.tables.reading import Reading
from lnml.tables.sources import STREAM, SYNONYMS
from lnml.tables.table import check_names

PARQUET = ".parquet"
# Other programs leave files of these names beside their data.
NOT_DATA = (".", "_")
NO_VALUES = "no values"


class DataFile(NamedTuple):
    """A file.

    Attributes
    ----------
    name : str
        What messages call it.
    path : str
        Where it is, from any working directory.
    """

    name: str
    path: str


class ColumnType(NamedTuple):
    """What a file says of a column.

    Attributes
    ----------
    family : str
        What its values are: numbers, booleans, text, dates, no values, or the name of a type
        that no distance can use.
    declared : bool
        Whether the file says that they are categories.
    """

    family: str
    declared: bool = False


class Footer(NamedTuple):
    """What the end of a Parquet file says.

    Attributes
    ----------
    file : DataFile
        The file.
    columns : dict of str to ColumnType
        Its columns, without an index of pandas.
    groups : tuple of int
        Rows of each row group.
    """

    file: DataFile
    columns: dict[str, ColumnType]
    groups: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return sum(self.groups)


def check_reading(reading: Reading) -> None:
    """Refuse what is said about files of text."""
    said = {
        "--delimiter": reading.delimiter,
        "--decimal": reading.decimal,
        "--encoding": reading.encoding,
    }
    for option, value in said.items():
        if value is not None:
            raise InputError(
                f"{option} is for files of text, and a cluster reads Parquet: leave it out"
            )


def find_files(data: str | Path) -> tuple[list[DataFile], list[str]]:
    """Return the Parquet files that a name stands for, by name, and notes about the others.

    Parameters
    ----------
    data : str or Path
        A file, a folder, or a pattern such as ``rows/*.parquet`` or ``rows/**/*.parquet``.
    """
    try:
        found, where = _candidates(data)
    except OSError as error:
        raise InputError(f"{data} cannot be read: {error.strerror or error}") from error
    files = sorted(filter(_is_parquet, found), key=str)
    if not files:
        raise InputError(
            f"{where}: there is no Parquet file (.parquet or .pq), and a cluster reads no other: "
            f"convert the table; a pattern such as 'rows/**/*.parquet' also finds subfolders"
        )
    others = sorted(each.name for each in found if not _is_parquet(each))
    notes = []
    if others:
        names = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        notes = [f"{where}: not read, because they are no Parquet files: {names}"]
    return [DataFile(str(each), str(each.absolute())) for each in files], notes


def _candidates(data: str | Path) -> tuple[list[Path], str]:
    """Return the files that a name may stand for, and what messages call it."""
    path = Path(data)
    if str(data) == STREAM:
        raise InputError("standard input cannot be read by a cluster: name Parquet files")
    if path.is_file():
        return [path], str(path)
    if path.is_dir():
        found, where = list(path.iterdir()), f"the folder {path}"
    elif glob.has_magic(str(data)):
        found = [Path(each) for each in glob.glob(str(data), recursive=True)]
        where = f"the pattern {data}"
        if not found:
            raise InputError(f"{data} matches no file: check the pattern")
    else:
        raise InputError(f"{data} does not exist: check the name")
    return [each for each in found if each.is_file() and not each.name.startswith(NOT_DATA)], where


def _is_parquet(path: Path) -> bool:
    extension = path.suffix.lower()
    return SYNONYMS.get(extension, extension) == PARQUET


def read_footers(files: Sequence[DataFile]) -> list[Footer]:
    """Read the ends of files; refuse one that is not whole."""
    return [_read_footer(file) for file in files]


def _read_footer(file: DataFile) -> Footer:
    with opened(file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
        index = [
            name
            for name in (schema.pandas_metadata or {}).get("index_columns", [])
            if isinstance(name, str)
        ]
        names = [name for name in schema.names if name not in index]
        for name, count in Counter(names).items():
            if count > 1:
                raise InputError(f"{file.name} has two columns named {name!r}: rename one of them")
        columns = {name: column_type(schema.field(name).type) for name in names}
        groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    return Footer(file, columns, tuple(groups))


@contextmanager
def opened(file: DataFile) -> Iterator[Any]:
    """Open a Parquet file on a worker, or say why that cannot be done there."""
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    try:
        with open(file.path, "rb") as stream:
            yield parquet.ParquetFile(stream)
    except FileNotFoundError as error:
        raise InputError(
            f"{file.name} is not there for a worker on {socket.gethostname()}: all workers must "
            f"reach it as {file.path}"
        ) from error
    except arrow.ArrowException as error:
        raise InputError(
            f"{file.name} is not a Parquet file, or was cut off while it was written: write it "
            f"again"
        ) from error
    except OSError as error:
        raise InputError(
            f"{file.name} cannot be read by a worker on {socket.gethostname()}: "
            f"{error.strerror or error}"
        ) from error


def column_type(kind: Any) -> ColumnType:
    """Return what values of an Arrow type are.

    Examples
    --------
    >>> import pyarrow
    >>> column_type(pyarrow.int8()).family, column_type(pyarrow.date32()).family
    ('numbers', 'dates')
    >>> column_type(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))
    ColumnType(family='text', declared=True)
    """
    types = require("pyarrow").types
    if types.is_dictionary(kind):
        return ColumnType(column_type(kind.value_type).family, True)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ColumnType("numbers")
    if types.is_boolean(kind):
        return ColumnType("booleans")
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return ColumnType("text")
    if types.is_temporal(kind):
        return ColumnType("dates")
    return ColumnType(NO_VALUES if types.is_null(kind) else str(kind))


def common_columns(
    footers: Sequence[Footer], label: str | None, drop: Collection[str], categories: Collection[str]
) -> dict[str, ColumnType]:
    """Return the columns of all files, without those to drop; refuse files that differ.

    Parameters
    ----------
    footers : sequence of Footer
        Files that have rows.
    label : str or None
        Column of the labels.
    drop, categories : collections of str
        Columns that are left out, and that hold categories.
    """
    first = footers[0]
    everywhere = dict.fromkeys(name for footer in footers for name in footer.columns)
    check_names(first.file.name, everywhere, label, drop, categories)
    known = {name: kind for name, kind in first.columns.items() if name not in drop}
    source = dict.fromkeys(known, first.file.name)
    for footer in footers[1:]:
        _refuse_other_names(first, footer, known, drop)
        for name in known:
            before, now = known[name], footer.columns[name]
            if NO_VALUES not in (before.family, now.family) and before.family != now.family:
                raise InputError(
                    f"{footer.file.name}: column {name!r} holds {now.family}, but "
                    f"{before.family} in {source[name]}: write it with one type in all files"
                )
            if before.family == NO_VALUES:
                source[name] = footer.file.name
            family = now.family if before.family == NO_VALUES else before.family
            known[name] = ColumnType(family, before.declared or now.declared)
    return known


def _refuse_other_names(
    first: Footer, footer: Footer, known: Collection[str], drop: Collection[str]
) -> None:
    lacking = [name for name in known if name not in footer.columns]
    beside = [name for name in footer.columns if name not in known and name not in drop]
    if not lacking and not beside:
        return
    said = [f"it lacks {_shown(lacking)}"] if lacking else []
    said += [f"it has {_shown(beside)} beside"] if beside else []
    raise InputError(
        f"{footer.file.name} has other columns than {first.file.name}: {' and '.join(said)}; "
        f"write all files with the same columns, or leave these out (--drop)"
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
