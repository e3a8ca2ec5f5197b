"""Refuse Parquet files that become far more in memory than they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lnml.errors import require
from lnml.tables.limits import most_bytes, refuse_more
from lnml.tables.sources import Source

# Columns with few values take next to nothing in a file, so that more may come out of it.
ALWAYS = 2**27
_CURE = "write it without dictionaries and compression, or leave rows out"


def check_parquet(source: Source) -> list[str]:
    """Refuse a Parquet file, or a folder of such, by its footers and by the lengths of its texts.

    Returns
    -------
    nested : list of str
        Columns of lists and the like, which no distance can use. They must not be read: a footer
        does not tell how much they hold.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If it cannot be read.
    """
    parquet, types = require("pyarrow.parquet"), require("pyarrow").types
    paths = sorted(source.path.rglob("*.parquet")) if source.path.is_dir() else [source.path]
    nested: dict[str, None] = {}
    for path in paths:
        with parquet.ParquetFile(path) as file:
            schema, most = file.schema_arrow, most_bytes(path, ALWAYS)
            nested |= {field.name: None for field in schema if types.is_nested(field.type)}
            size, longest = _declared(file)
            refuse_more(source, size, most, _CURE)
            texts = [field.name for field in schema if _is_text(field.type)]
            if texts and size + longest > most:
                _check_texts(source, path, texts, size, most)
    return list(nested)


def _declared(file: Any) -> tuple[int, int]:
    """Return bytes of all values by the footer, and what texts may take beside, at most.

    Groups of rows are looked at, and not the columns in them: pyarrow ends the process if what the
    footer says of these is damaged.
    """
    columns = [file.schema.column(place) for place in range(len(file.schema))]
    # The length is that of values of fixed length, and 0 or less for others.
    width = sum(max(column.length, 8) for column in columns)
    metadata, size, longest = file.metadata, file.metadata.num_rows, 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        size += width * group.num_rows
        # Each row may hold a text as long as its group, in which it is stored once.
        longest += group.num_rows * group.total_byte_size
    return size, longest


def _is_text(kind: Any) -> bool:
    types = require("pyarrow").types
    plain = types.is_string(kind) or types.is_binary(kind)
    return plain or types.is_large_string(kind) or types.is_large_binary(kind)


def _check_texts(source: Source, path: Path, names: list[str], size: int, most: int) -> None:
    """Add the lengths of all texts, which are read as dictionaries: each text once."""
    compute, parquet = require("pyarrow.compute"), require("pyarrow.parquet")
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for group in range(file.num_row_groups):
            for name in names:
                for chunk in file.read_row_group(group, columns=[name]).column(0).chunks:
                    lengths = compute.binary_length(chunk.dictionary)
                    size += compute.sum(lengths.take(chunk.indices)).as_py() or 0
                    refuse_more(source, size, most, _CURE)
