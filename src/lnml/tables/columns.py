"""Decide what a column of a table is: numbers, categories, or nothing a distance can use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from lnml.core.checks import largest_value
from lnml.errors import InputError, require
from lnml.tables.texts import Kind, is_a_date, is_text, text_column

MOST_CATEGORIES = 100
# Fewer rows can be numbered by chance: 0, 1, 2 is also a feature with three values.
LEAST_ROWS_COUNTED = 10

# 99, -999, 8888, -99.9, and so on.
_CODE = re.compile(r"-?(([789])\2+(\.\2+)?|([789])\.\4{2,})")


def is_numeric(column: Any) -> bool:
    """Whether a column that :func:`plain_column` returned holds numbers."""
    return column.dtype.kind in "iuf"


def plain_column(name: str, column: Any, kind: Kind | None = None) -> Any:
    """Return a column as numbers (NaN if missing) or as categories, which are strings.

    Parameters
    ----------
    name : str
        Name of the column.
    column : pandas.Series of shape (n,)
        A column as it was read.
    kind : {'numbers', 'categories'}, optional
        What texts must be. If this is not given, they tell themselves.

    Returns
    -------
    column : pandas.Series of shape (n,)
        It has a NumPy number type, or the type ``category``.
    """
    pandas = require("pandas")
    types = pandas.api.types
    if is_text(column):
        column = text_column(name, column, kind)
    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _text_categories(column.astype("object"))
    if types.is_bool_dtype(dtype):
        return _text_categories(column.astype("object"))
    if types.is_numeric_dtype(dtype):
        return _numbers(name, column)
    held = types.infer_dtype(column, skipna=True)
    if held in ("boolean", "empty") or is_text(column):
        return _text_categories(column.astype("object"))
    if held in ("decimal", "integer", "floating", "mixed-integer-float"):
        return _numbers(name, column.astype("float64"))
    if held.startswith(("date", "time", "period")):
        raise is_a_date(name)
    raise InputError(
        f"column {name!r} holds {held} values, neither numbers nor text: convert it, or leave it "
        f"out (--drop {name!r})"
    )


def category_text(value: Any) -> str:
    """Return a value as the text that stands for its category; 1.0 is '1'."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_categories(column: Any) -> Any:
    """Return a plain column as categories, also where it holds numbers."""
    return _text_categories(column.astype("object")) if is_numeric(column) else column


def reason_to_leave_out(name: str, column: Any) -> str | None:
    """Say why a plain column should not be a feature; None if it should.

    Raises
    ------
    InputError
        For a column about which only the user can decide.
    """
    if column.isna().all():
        raise InputError(
            f"column {name!r} has no value in any row: remove it, or leave it out (--drop {name!r})"
        )
    if is_numeric(column):
        return "counts the rows" if _counts_rows(column.to_numpy()) else None
    categories = [str(category) for category in column.cat.categories]
    if is_identifier(len(categories), int(column.notna().sum())):
        return "has a different text in every row, like an identifier"
    if len(categories) > MOST_CATEGORIES:
        raise InputError(
            f"column {name!r} holds {len(categories)} different texts, more than the "
            f"{MOST_CATEGORIES} that become 0/1 columns: group them, or leave the column out "
            f"(--drop {name!r})"
        )
    return None


def is_identifier(n_texts: int, n_values: int) -> bool:
    """Whether a column of categories has a different text in every row that has one."""
    return n_texts == n_values > 1


def counts_rows(n: int, first: float) -> bool:
    """Whether numbers that rise by one from row to row, from a first, count the n rows."""
    return n >= LEAST_ROWS_COUNTED and first.is_integer()


def missing_codes(name: str, column: Any) -> list[str]:
    """Return sentences about numbers such as -999 that may stand for missing ones.

    Such a number is written with one digit, and lies further from all others than these from
    each other.

    Parameters
    ----------
    name : str
        Name of the column.
    column : pandas.Series of shape (n,)
        A column that :func:`plain_column` returned.
    """
    if not is_numeric(column):
        return []
    found = []
    rest = column.dropna().to_numpy(dtype="float64")
    while rest.size:
        ends = [value for value in {rest.min(), rest.max()} if _CODE.fullmatch(f"{value:.12g}")]
        others = rest[~np.isin(rest, ends)]
        low, high = (others.min(), others.max()) if others.size else (0.0, 0.0)
        far = [value for value in ends if max(low - value, value - high) > high - low > 0]
        if not far:
            break
        for value in far:
            shown = category_text(value)
            found.append(
                f"column {name!r}: {(rest == value).sum()} of {len(column)} values are {shown}, "
                f"far outside the others ({low:g} to {high:g}): if that stands for a missing "
                f"value, add --missing {shown}"
            )
        rest = rest[~np.isin(rest, far)]
    return found


def _numbers(name: str, column: Any) -> Any:
    if column.dtype.kind == "c":
        raise InputError(f"column {name!r} holds complex numbers: split it into two columns")
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "iuf":
        column = column.astype("float64")
    # Short types cannot hold the bound, and would be compared with infinity.
    values = column.to_numpy(dtype="float64")
    wrong = np.flatnonzero(np.abs(values) > largest_value(np.float64))
    if wrong.size:
        row = wrong[0]
        such = "one such value" if wrong.size == 1 else f"{wrong.size} such values"
        what = f"an infinite value in row {row}, counted from 0"
        if np.isfinite(values[row]):
            what = f"{values[row]:g} (row {row}, counted from 0), whose square overflows"
        raise InputError(
            f"column {name!r} holds {what} ({such} in all): correct or rescale it, or leave the "
            f"field empty where the number is missing"
        )
    return column


def _text_categories(column: Any) -> Any:
    """Return a column of categories, in sorted order, with only those that occur."""
    pandas = require("pandas")
    codes, values = pandas.factorize(column)
    texts = [category_text(value) for value in values]
    known = sorted(set(texts))
    position = {text: code for code, text in enumerate(known)}
    renumber = np.array([position[text] for text in texts] + [-1], dtype=np.int64)
    merged = pandas.Categorical.from_codes(
        renumber[codes], categories=pandas.Index(known, dtype=object)
    )
    return pandas.Series(merged, index=column.index, name=column.name)


def _counts_rows(values: np.ndarray) -> bool:
    """Whether whole numbers rise by one from row to row, from any start."""
    if not len(values) or not counts_rows(len(values), float(values[0])):
        return False
    # Differences of short whole numbers could wrap around.
    wide = values.astype(np.int64) if values.dtype.kind in "iu" else values
    return bool((np.diff(wide) == 1).all())
