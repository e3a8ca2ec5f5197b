"""How a file is to be read where the file itself does not say so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lnml.errors import InputError
from lnml.tables.texts import is_number

# Characters that are hard to type in a shell.
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " ", "pipe": "|"}


@dataclass(frozen=True)
class Reading:
    """What a user says about a file.

    Attributes
    ----------
    missing : tuple of str
        Values of feature columns that stand for missing ones, as the file writes them.
    delimiter : str or None
        What separates the fields of a CSV or TSV file: a character, or one of ``DELIMITERS``.
    decimal : str or None
        What stands before decimals in such a file: a point (the default) or a comma.
    encoding : str or None
        Encoding of a file of text.

    Raises
    ------
    InputError
        If one of them cannot be what it is said to be.
    """

    missing: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise InputError(
                f"--delimiter must be one character, or one of {', '.join(DELIMITERS)}; got "
                f"{self.delimiter!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal must be a point or a comma; got {self.decimal!r}")
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except LookupError as error:
                raise InputError(
                    f"there is no encoding {self.encoding!r}: name one such as utf-8, utf-16, "
                    f"latin-1 or cp1252"
                ) from error

    @property
    def separator(self) -> str | None:
        """The character that separates fields, if it was said."""
        return None if self.delimiter is None else DELIMITERS.get(self.delimiter, self.delimiter)

    def with_missing(self, missing: Collection[str]) -> Reading:
        """Return the same with more values that stand for missing ones."""
        return replace(self, missing=tuple(dict.fromkeys((*self.missing, *missing))))


AS_IT_IS = Reading()


def mark_missing(frame: Any, codes: Collection[str], keep: Collection[str] = ()) -> Any:
    """Return a frame in which values that stand for missing ones are missing.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, columns)
        What a file holds.
    codes : collection of str
        The values. A number stands for all ways to write it.
    keep : collection of str
        Columns to leave as they are (labels).

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1, -999, 3], "kind": ["a", "-999", "b"]})
    >>> mark_missing(frame, ["-999.0"], keep=["kind"])["size"].tolist()
    [1.0, nan, 3.0]
    """
    if not codes:
        return frame
    columns = {
        name: column if name in keep else column.mask(_equals_a_code(column, codes))
        for name, column in frame.items()
    }
    return type(frame)(columns)


def _equals_a_code(column: Any, codes: Collection[str]) -> np.ndarray:
    numbers = [float(code) for code in codes if is_number(code)]
    if column.dtype.kind in "iu":
        return np.isin(column.to_numpy(dtype="float64"), numbers)
    if column.dtype.kind == "f" and isinstance(column.dtype, np.dtype):
        # In the column's own precision: -99.9 in float32 is another number than in float64.
        return np.isin(column.to_numpy(), np.array(numbers, dtype=column.dtype))
    texts = set(codes)
    return np.array([_is_code(value, texts, numbers) for value in column])


def _is_code(value: Any, texts: set[str], numbers: list[float]) -> bool:
    text = str(value).strip()
    return text in texts or (is_number(text) and float(text) in numbers)
