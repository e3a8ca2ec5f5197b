"""Single numbers that users give, refused with their cause and their cure."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np

# Beside the scatter of target pairs, a smaller trace penalty would be rounding.
LEAST_PENALTY = 1e-12


class ColumnError(ValueError):
    """A column has values that no fit can use.

    Parameters
    ----------
    column : int
        Its number.
    told : str
        What is wrong with its values.
    names : sequence of str, or None
        The names of all columns, if they have any.
    where : str
        What the columns are of.

    Examples
    --------
    >>> error = ColumnError(1, "are too large")
    >>> print(error, "|", error.named(["width", "height"]))
    values of column 1 of X are too large | values of column 'height' are too large
    """

    def __init__(self, column: int, told: str, names: Any = None, where: str = "X") -> None:
        self.column, self.told, self.names, self.where = column, told, names, where
        called = f"column {column} of {where}"
        if names is not None:
            called = f"column {str(names[column])!r}"
        super().__init__(f"values of {called} {told}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Come back from another process as it was."""
        return ColumnError, (self.column, self.told, self.names, self.where)

    def named(self, names: Any) -> ColumnError:
        """Return the same with the names of the columns."""
        return ColumnError(self.column, self.told, names, self.where)


def largest_value(dtype: Any) -> float:
    """Return a number up to which squares, and sums of many squares, stay finite."""
    return float(np.sqrt(np.finfo(dtype).max) / 1e3)


def refuse_overflow(name: str, values: Any) -> None:
    """Say clearly that squares of the values would be infinite, or all zero."""
    largest = max(float(values.max()), -float(values.min()))
    kind = np.float32 if values.itemsize == 4 else np.float64
    if largest > largest_value(kind):
        raise ValueError(
            f"{name} holds values up to {largest:.1e}, whose squares overflow {kind.__name__}: "
            f"rescale it"
        )
    if 0.0 < largest < np.sqrt(np.finfo(kind).tiny) * 1e3:
        raise ValueError(
            f"{name} holds values up to {largest:.1e} only, whose squares underflow "
            f"{kind.__name__}: rescale it"
        )


def refuse_spreads(name: str, spread: np.ndarray, names: Any = None) -> None:
    """Say clearly that squares of the spread of a column (d,) would be lost, or in its units.

    ``names`` are those of the columns, if they have any.
    """
    tiny = np.flatnonzero((spread > 0.0) & (spread < np.sqrt(np.finfo(np.float64).tiny) * 1e3))
    if tiny.size:
        raise ColumnError(
            int(tiny[0]),
            f"differ by {spread[tiny[0]]:.1e} at most, and squares of that underflow: rescale or "
            f"drop it",
            names,
            name,
        )
    low, high = spread[spread > 0.0].min(initial=inf), spread.max(initial=0.0)
    if float(high) > float(low) * largest_value(np.float64):
        raise ValueError(
            f"spreads of the columns of {name} go from {low:.1e} to {high:.1e}, a factor whose "
            f"square overflows: rescale them, for example with StandardScaler"
        )


def check_integer(name: str, value: Any, least: int) -> int:
    """Return a whole number >= least, or say what is wrong."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def check_trace_penalty(value: Any) -> float:
    """Return a penalty, zero or large enough to be seen beside rounding, or say what is wrong."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (value == 0.0 or LEAST_PENALTY <= float(value) < inf):
        raise ValueError(
            f"trace_penalty must be 0 or a finite number >= {LEAST_PENALTY:g} (smaller ones are "
            f"lost in rounding), got {value!r}"
        )
    return float(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number strictly between two others, or say what is wrong."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low < float(value) < high:
        raise ValueError(f"{name} must be a number above {low} and below {high}, got {value!r}")
    return float(value)


def kind_of(value: Any) -> str:
    """Name the type of a value in a message; of a class, say how to make an object of it.

    Examples
    --------
    >>> kind_of(1.5), kind_of(dict)
    ('float', 'the class dict (write dict() instead)')
    """
    if isinstance(value, type):
        return f"the class {value.__name__} (write {value.__name__}() instead)"
    return type(value).__name__
