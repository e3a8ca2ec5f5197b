"""Read CSV and TSV files; pandas alone would accept too much."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection
from typing import Any

from lnml.errors import InputError, require
from lnml.tables.sources import Source
from lnml.tables.texts import is_number

# pandas' own list (empty, NA, NaN, null, None, ...) lacks the mark of the UCI repository.
EXTRA_MISSING = ["?"]
# Each column takes a millisecond.
MOST_COLUMNS = 2**16


def read_delimited(source: Source, text_columns: Collection[str]) -> Any:
    """Read a CSV or TSV file into a frame; columns of text keep what is written in them."""
    pandas = require("pandas")
    separator = _separator(source)
    header, n_rows = _check_fields(source, separator)
    missing = source.reading.missing
    with source.open_text() as file:
        try:
            frame = pandas.read_csv(
                file,
                sep=separator,
                header=0,
                names=header,
                dtype={name: str for name in header if name in text_columns},
                na_values={
                    name: [*EXTRA_MISSING, *(() if name in text_columns else missing)]
                    for name in header
                },
                decimal=source.reading.decimal or ".",
                skipinitialspace=True,
                low_memory=False,
                **_exact_floats(pandas),
            )
        except pandas.errors.ParserError as error:
            # All rows have the right number of fields, so the quotes must be wrong.
            raise InputError(_open_quote(source)) from error
    if len(frame) != n_rows:
        raise InputError(_open_quote(source))
    return frame


def _open_quote(source: Source) -> str:
    return f"{source} has a quotation mark without its partner: correct the quotes"


def _exact_floats(pandas: Any) -> dict[str, str]:
    """Return the option to read numbers to the last bit; it is the default from pandas 3.1 on."""
    major, minor = (int(part) for part in pandas.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _separator(source: Source) -> str:
    """Return what separates fields: as said, or a tab, or what the header of a CSV file has."""
    if source.reading.separator is not None:
        return source.reading.separator
    if source.extension == ".tsv":
        return "\t"
    with source.open_text() as file:
        header = next((line for line in file if line.strip()), "")
    return next((character for character in ",;\t|" if character in header), ",")


def _check_fields(source: Source, separator: str) -> tuple[list[str], int]:
    """Return column names and the number of rows; every row must have all fields.

    pandas fills short rows up, and takes the first column of long rows for row
    names, both without a warning.
    """
    header: list[str] = []
    n_rows = 0
    with source.open_text() as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        try:
            for fields in reader:
                if not fields:
                    continue
                if not header:
                    header = column_names(source, fields)
                elif len(fields) != len(header):
                    raise InputError(
                        f"{source}, line {reader.line_num}: {len(fields)} fields, but the header "
                        f"has {len(header)}: correct that line"
                    )
                else:
                    n_rows += 1
        except csv.Error as error:
            raise InputError(
                f"{source}, line {reader.line_num}: {error}: correct that line, or its quotes"
            ) from error
    if not header:
        raise InputError(f"{source} holds no header line with the names of the columns")
    return header, n_rows


def column_names(source: Source, fields: list[str]) -> list[str]:
    """Return the names in a header; columns without a name get their number."""
    names = [field.strip() for field in fields]
    if all(is_number(name) for name in names):
        raise InputError(
            f"{source}: the first line holds numbers only: add a header line with column names"
        )
    names = [name or f"column {position}" for position, name in enumerate(names)]
    check_columns(source, names)
    return names


def check_columns(source: Source, names: list[str]) -> None:
    """Refuse a table with two columns of the same name, or with more than can be looked at."""
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{source} has {len(names)} columns, more than the {MOST_COLUMNS} that are read: leave "
            f"columns out, or turn the table if they are its rows"
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        shown = ", ".join(map(repr, sorted(twice)[:5])) + (", ..." if len(twice) > 5 else "")
        raise InputError(f"{source} has more than one column named {shown}: rename them")
