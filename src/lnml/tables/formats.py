"""Read a file of any known format into a pandas frame, or say what is wrong with it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from lnml.errors import InputError, require
from lnml.tables.columns import is_number
from lnml.tables.reading import AS_IT_IS, Reading, mark_missing

COMPRESSIONS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
KNOWN = ".csv, .tsv, .parquet, .arff and .npz (.csv, .tsv and .arff also with .gz, .bz2 or .xz)"
# pandas' own list (empty, NA, NaN, null, None, ...) lacks the mark of the UCI repository.
EXTRA_MISSING = ["?"]


def read_frame(
    path: str | Path, text_columns: Collection[str] = (), reading: Reading = AS_IT_IS
) -> Any:
    """Read a file into a frame, with the columns of the file.

    Parameters
    ----------
    path : str or Path
        A CSV, TSV, Parquet, ARFF or NPZ file; the extension tells the format.
    text_columns : collection of str
        Columns of CSV and TSV files to keep as text, as they are written (labels).
    reading : Reading
        What the file itself does not say.

    Returns
    -------
    frame : pandas.DataFrame of shape (n, columns)

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    path = Path(path)
    extension = table_extension(path)
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes): write it again")
        if extension in (".csv", ".tsv"):
            frame = _read_delimited(path, extension, text_columns, reading)
        elif extension == ".parquet":
            frame = _read_parquet(path)
        elif extension == ".arff":
            frame = _read_arff(path)
        else:
            frame = _read_npz(path)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be decoded): save it as UTF-8, "
            f"or give it the extension of its format"
        ) from error
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the name") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder: name a file in it") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be unpacked, it seems cut off or damaged") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    frame.columns = [str(column) for column in frame.columns]
    refuse_duplicates(path, list(frame.columns))
    if not len(frame):
        raise InputError(f"{path} has column names but no rows")
    return mark_missing(frame, reading.missing, keep=text_columns)


def table_extension(path: str | Path) -> str:
    """Return the extension that tells the format of a file, without ``.gz`` and the like."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSIONS
    extension = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    extension = {".tab": ".tsv", ".pq": ".parquet"}.get(extension, extension)
    packable = (".csv", ".tsv", ".arff")
    if extension not in (*packable, ".parquet", ".npz") or (packed and extension not in packable):
        raise InputError(f"{path}: the extension tells the format and must be one of {KNOWN}")
    return extension


def refuse_duplicates(path: Path, names: list[str]) -> None:
    """Refuse a table with two columns of the same name."""
    twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if twice:
        raise InputError(
            f"{path} has more than one column named {', '.join(map(repr, twice))}: rename them"
        )


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _open_text(path: Path) -> IO[str]:
    opener = COMPRESSIONS.get(path.suffix.lower(), open)
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _read_delimited(
    path: Path, extension: str, text_columns: Collection[str], reading: Reading
) -> Any:
    pandas = require("pandas")
    separator = "\t" if extension == ".tsv" else _separator(path)
    header, n_rows = _check_fields(path, separator)
    with _open_text(path) as file:
        try:
            frame = pandas.read_csv(
                file,
                sep=separator,
                header=0,
                names=header,
                dtype={name: str for name in header if name in text_columns},
                na_values={
                    name: [*EXTRA_MISSING, *(() if name in text_columns else reading.missing)]
                    for name in header
                },
                skipinitialspace=True,
                low_memory=False,
                **_exact_floats(pandas),
            )
        except pandas.errors.ParserError as error:
            # All rows have the right number of fields, so the quotes must be wrong.
            raise InputError(_open_quote(path)) from error
    if len(frame) != n_rows:
        raise InputError(_open_quote(path))
    return frame


def _open_quote(path: Path) -> str:
    return f"{path} has a quotation mark without its partner: correct the quotes"


def _exact_floats(pandas: Any) -> dict[str, str]:
    """Return the option to read numbers to the last bit; it is the default from pandas 3.1 on."""
    major, minor = (int(part) for part in pandas.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _separator(path: Path) -> str:
    """Return a comma, or a semicolon if the header has semicolons but no commas."""
    with _open_text(path) as file:
        header = next((line for line in file if line.strip()), "")
    return ";" if ";" in header and "," not in header else ","


def _check_fields(path: Path, separator: str) -> tuple[list[str], int]:
    """Return column names and the number of rows; every row must have all fields.

    pandas fills short rows up, and takes the first column of long rows for row
    names, both without a warning.
    """
    header: list[str] = []
    n_rows = 0
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        try:
            for fields in reader:
                if not fields:
                    continue
                if not header:
                    header = _column_names(path, fields)
                elif len(fields) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(fields)} fields, but the header has "
                        f"{len(header)}: correct that line"
                    )
                else:
                    n_rows += 1
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from error
    if not header:
        raise InputError(f"{path} holds no header line with the names of the columns")
    return header, n_rows


def _column_names(path: Path, fields: list[str]) -> list[str]:
    names = [field.strip() for field in fields]
    if all(is_number(name) for name in names):
        raise InputError(
            f"{path}: the first line holds numbers only: add a header line with column names"
        )
    refuse_duplicates(path, [name for name in names if name])
    return [name or f"column {position}" for position, name in enumerate(names)]


def _read_parquet(path: Path) -> Any:
    pandas, arrow = require("pandas"), require("pyarrow")
    try:
        return pandas.read_parquet(path, engine="pyarrow")
    except arrow.ArrowException as error:
        raise InputError(
            f"{path} is not a Parquet file, or was cut off while it was written: write it again"
        ) from error


def _read_arff(path: Path) -> Any:
    pandas, arff = require("pandas"), require("arff", "liac-arff")
    with _open_text(path) as file:
        try:
            content = arff.load(file)
        except arff.ArffException as error:
            raise InputError(f"{path} cannot be read as ARFF: {error}") from error
    columns = {}
    for position, (name, kind) in enumerate(content["attributes"]):
        values = [row[position] for row in content["data"]]
        numeric = isinstance(kind, str) and kind.upper() in ("NUMERIC", "REAL", "INTEGER")
        columns[name] = pandas.Series(values, dtype="float64" if numeric else "object")
    return pandas.DataFrame(columns)


def _plain_array(path: Path, arrays: Any, key: str) -> np.ndarray:
    try:
        return arrays[key]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        plain = "float" if key == "X" else "str"
        raise InputError(
            f"{path}: the array {key} holds Python objects, which could run code when they are "
            f"read: store {key}.astype({plain})"
        ) from error


def _read_npz(path: Path) -> Any:
    """Read ``X`` (columns named by ``feature_names``, or x0, x1, ...) and ``y`` as column y."""
    pandas = require("pandas")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            wanted = [key for key in ("X", "y", "feature_names") if key in arrays]
            stored = {key: _plain_array(path, arrays, key) for key in wanted}
        for array in stored.values():
            # NumPy's strings may hold halves of characters, which no file of text can.
            "".join(array.ravel().tolist() if array.dtype.kind == "U" else "").encode()
    except InputError:
        raise
    except (ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise InputError(
            f"{path} is not an NPZ file of plain arrays, or was cut off: write it with "
            f"numpy.savez(file, X=..., y=...)"
        ) from error
    X = stored.get("X")
    if X is None or X.ndim != 2:
        found = "has none" if X is None else f"has shape {X.shape}"
        raise InputError(f"{path} must hold a two-dimensional array X of features, but {found}")
    names = [str(name) for name in stored.get("feature_names", [])] or [
        f"x{column}" for column in range(X.shape[1])
    ]
    if len(names) != X.shape[1]:
        raise InputError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X")
    frame = pandas.DataFrame(X, columns=names)
    if "y" in stored:
        if stored["y"].shape != (len(X),):
            raise InputError(
                f"{path}: y has shape {stored['y'].shape}, but X has {len(X)} rows: give one label "
                f"for each row"
            )
        frame = pandas.concat([frame, pandas.Series(stored["y"], name="y")], axis=1)
    return frame
