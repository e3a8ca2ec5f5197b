"""Single numbers that users give, refused with their cause and their cure."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np

# Beside the scatter of target pairs, a smaller trace penalty would be rounding.
LEAST_PENALTY = 1e-12


def largest_value(dtype: Any) -> float:
    """Return a number up to which squares, and sums of many squares, stay finite."""
    return float(np.sqrt(np.finfo(dtype).max) / 1e3)


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
