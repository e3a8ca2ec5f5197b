"""Single numbers that users give, refused with their cause and their cure."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any


def check_integer(name: str, value: Any, least: int) -> int:
    """Return a whole number >= least, or say what is wrong."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number >= 0, or say what is wrong."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) < inf:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number strictly between two others, or say what is wrong."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low < float(value) < high:
        raise ValueError(f"{name} must be a number above {low} and below {high}, got {value!r}")
    return float(value)
