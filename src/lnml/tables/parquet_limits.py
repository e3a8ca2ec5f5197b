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


def check_parquet(source: Source) -> None:
    """Refuse a Parquet file, or a folder of such, by its footers and by the lengths of its texts.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If it cannot be read.
    """
    parquet = require("pyarrow.parquet")
    paths = sorted(source.path.rglob("*.parquet")) if source.path.is_dir() else [source.path]
    for path in paths:
        with parquet.ParquetFile(path) as file:
            most = most_bytes(path, ALWAYS)
            size, longest = _declared(file)
            refuse_more(source, max(size, file.metadata.num_rows), most, _CURE)
            if size + longest > most:
                _check_texts(source, path, file.schema_arrow, size, most)


def _declared(file: Any) -> tuple[int, int]:
    """Return bytes of all values by the footer, and what texts may take beside, at most."""
    size = longest = 0
    metadata = file.metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for place, column in enumerate(map(group.column, range(group.num_columns))):
            count, kind = max(column.num_values, group.num_rows), column.physical_type
            width = file.schema.column(place).length if kind == "FIXED_LEN_BYTE_ARRAY" else 0
            size += max(width, 8) * count
            if kind == "BYTE_ARRAY":
                # Each row may hold a text as long as the chunk, in which it is stored once.
                longest += count * column.total_uncompressed_size
    return size, longest


def _check_texts(source: Source, path: Path, schema: Any, size: int, most: int) -> None:
    """Add the lengths of all texts, which are read as dictionaries: each text once."""
    arrow, compute = require("pyarrow"), require("pyarrow.compute")
    parquet, types = require("pyarrow.parquet"), arrow.types
    is_text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    names = [field.name for field in schema if any(test(field.type) for test in is_text)]
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for group in range(file.num_row_groups):
            for name in names:
                for chunk in file.read_row_group(group, columns=[name]).column(0).chunks:
                    lengths = compute.binary_length(chunk.dictionary)
                    size += compute.sum(lengths.take(chunk.indices)).as_py() or 0
                    refuse_more(source, size, most, _CURE)
