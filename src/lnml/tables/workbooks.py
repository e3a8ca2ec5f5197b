"""Read the first sheet of a workbook."""

from __future__ import annotations

import warnings
import zipfile
from typing import Any

from lnml.errors import InputError, require
from lnml.tables.delimited import EXTRA_MISSING, column_names
from lnml.tables.limits import check_archive, most_bytes, refuse_more
from lnml.tables.sources import Source

# Of the format.
MOST_ROWS = 2**20
# Bytes of XML that are read at once: all but sheets and their texts.
MOST_AT_ONCE = 2**24
_IN_PIECES = ("xl/worksheets/", "xl/sharedStrings")
_CURE = "write it as CSV"


def read_xlsx(source: Source) -> Any:
    """Read the first sheet; its first line that is not empty holds the names."""
    pandas, openpyxl = require("pandas"), require("openpyxl", extra="xlsx")
    try:
        with zipfile.ZipFile(source.path) as archive, warnings.catch_warnings():
            _check_parts(source, archive.infolist())
            # What openpyxl leaves out, such as names of ranges and styles, is not read here.
            warnings.simplefilter("ignore")
            workbook = openpyxl.load_workbook(source.path, read_only=True)
            try:
                sheets = workbook.sheetnames
                _check_cells(source, workbook[sheets[0]])
            finally:
                workbook.close()
            cells = pandas.read_excel(
                source.path, header=None, na_values=EXTRA_MISSING, dtype=object, engine="openpyxl"
            )
    except InputError:
        raise
    except Exception as error:
        # Damaged workbooks make openpyxl raise errors of many kinds.
        raise InputError(
            f"{source} is not an XLSX file, or was cut off or damaged: save it again"
        ) from error
    cells = cells.dropna(how="all").reset_index(drop=True)
    if cells.empty:
        raise InputError(f"{source}: the sheet {sheets[0]!r} is empty")
    if len(sheets) > 1:
        source.notes.append(f"{source} has {len(sheets)} sheets: only {sheets[0]!r} is read")
    header = ["" if name != name else str(name) for name in cells.iloc[0]]
    frame = cells.iloc[1:].set_axis(column_names(source, header), axis=1)
    return frame.reset_index(drop=True).infer_objects()


def _check_parts(source: Source, parts: list[zipfile.ZipInfo]) -> None:
    """Refuse a workbook whose XML is too long."""
    check_archive(source, source.path, parts, _CURE)
    at_once = [part for part in parts if not part.filename.startswith(_IN_PIECES)]
    refuse_more(source, sum(part.file_size for part in at_once), MOST_AT_ONCE, _CURE)


def _check_cells(source: Source, sheet: Any) -> None:
    """Refuse a sheet with a cell far outside: all before it would be filled with nothing."""
    sheet.reset_dimensions()
    most = most_bytes(source.path)
    last = width = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > MOST_ROWS:
            raise InputError(f"{source} has more than {MOST_ROWS} rows: {_CURE}")
        filled = [place for place, value in enumerate(row, start=1) if value is not None]
        if filled:
            last, width = number, max(width, filled[-1])
            # Each cell is a pointer at least.
            refuse_more(source, 8 * last * width, most, f"remove cells far outside, or {_CURE}")
