"""What the texts of a column say: numbers, dates and times, or categories."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lnml.errors import InputError, require

Kind = Literal["numbers", "categories"]

_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"
_DATE = re.compile(
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}([T ].*)?|\d{{1,2}}([./])\d{{1,2}}\2\d{{2,4}}( .*)?|{_TIME}"
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_PERCENT = re.compile(r"[+-]?\d+([.,]\d+)? ?%")


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        # Python alone reads 1_000 as a number.
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def is_text(column: Any) -> bool:
    """Whether a column holds texts, also beside numbers, and was not declared as categories."""
    pandas = require("pandas")
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return False
    held = pandas.api.types.infer_dtype(column, skipna=True)
    if held not in ("mixed", "mixed-integer"):
        return held == "string"
    # A stray word in a workbook leaves the other cells numbers.
    present = list(column.dropna())
    known = all(isinstance(value, str | int | float | np.number) for value in present)
    return known and any(isinstance(value, str) for value in present)


def text_column(name: str, column: Any, kind: Kind | None = None) -> Any:
    """Return a column of texts as numbers (NaN if missing) or as texts that are categories.

    Parameters
    ----------
    name : str
        Name of the column.
    column : pandas.Series of shape (n,)
        Texts and missing values, and perhaps numbers.
    kind : {'numbers', 'categories'}, optional
        What the column must hold. If this is not given, its texts tell.

    Raises
    ------
    InputError
        If texts must be numbers and are not, or if only the user can say what they are.
    """
    pandas = require("pandas")
    codes, different = pandas.factorize(column.astype("object"))
    if kind == "categories" or not len(different):
        return column
    texts = [str(value) for value in different]
    numbers = [float(text) if is_number(text) else np.nan for text in texts]
    # The code of a missing value is -1, which points to the last entry.
    values = np.array([*numbers, np.nan])[codes]
    wrong = np.flatnonzero(np.isnan(values) & (codes >= 0))
    if not wrong.size:
        return pandas.Series(values, index=column.index, name=column.name)
    if kind is None:
        refuse_other_numbers(name, texts)
    n_present = int((codes >= 0).sum())
    if kind == "numbers" or wrong.size < n_present / 2:
        where = (
            f"text in {wrong.size} of {n_present} rows (the first is "
            f"{texts[codes[wrong[0]]]!r} in row {wrong[0]}, counted from 0)"
        )
        cure = "correct it, or leave the field empty where the number is missing"
        if kind == "numbers":
            raise InputError(
                f"column {name!r} held numbers in the training part, but holds {where}: {cure}"
            )
        raise InputError(
            f"column {name!r} holds numbers, but {where}: {cure}, or read all values as categories "
            f"(--categories {name!r})"
        )
    return column


def is_a_date(name: str) -> InputError:
    """Return the error for a column of dates or times."""
    return InputError(
        f"column {name!r} holds dates or times: turn it into numbers (such as the year, or days "
        f"since a date), or leave it out (--drop {name!r})"
    )


def refuse_other_numbers(name: str, texts: Sequence[str]) -> None:
    """Refuse what a person reads as a number, or as a time, and a distance cannot use."""
    if all(_DATE.fullmatch(text) for text in texts):
        raise is_a_date(name)
    commas = [text for text in texts if "," in text]
    if commas and all(is_number(text) or _THOUSANDS.fullmatch(text) for text in texts):
        raise InputError(
            f"column {name!r} holds numbers with a comma ({commas[0]!r}), which may separate "
            f"thousands or decimals: write thousands without it, and decimals with a point, or "
            f"read these with --decimal , from a CSV or TSV file"
        )
    if commas and all(is_number(text.replace(",", ".")) for text in texts):
        wrong = next(text for text in commas if not _THOUSANDS.fullmatch(text))
        raise InputError(
            f"column {name!r} holds numbers with a decimal comma ({wrong!r}): write them with a "
            f"point, or read them with --decimal , from a CSV or TSV file"
        )
    percents = [text for text in texts if _PERCENT.fullmatch(text)]
    if percents and all(is_number(text) or _PERCENT.fullmatch(text) for text in texts):
        raise InputError(
            f"column {name!r} holds percentages ({percents[0]!r}): write them as numbers, without "
            f"the sign"
        )
