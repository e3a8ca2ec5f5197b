"""Parameters of estimators as JSON can hold them, for model files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# JSON has one kind of object; the key says what an object stands for.
_ARRAY, _DICT, _ESTIMATOR, _TUPLE = "array", "dict", "estimator", "tuple"
# Stands for what cannot be stored: a function, a generator of random numbers, a splitter.
LEFT_OUT = object()


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that JSON can hold; others are left out.

    Examples
    --------
    >>> from lnml import LMNN, LNML
    >>> stored = plain_parameters(LNML(LMNN(tol=0.1), callback=print))
    >>> stored["k_min"], stored["estimator"]["parameters"]["tol"], "callback" in stored
    (3, 0.1, False)
    """
    found = {
        name: plain_value(value) for name, value in sorted(estimator.get_params(deep=False).items())
    }
    return {name: value for name, value in found.items() if value is not LEFT_OUT}


def from_plain(stored: Any, classes: Mapping[str, type]) -> dict[str, Any]:
    """Undo :func:`plain_parameters`; estimators among them are of the given classes."""
    if not isinstance(stored, dict):
        raise ValueError("parameters must have names")
    return {name: value_of(value, classes) for name, value in stored.items()}


def plain_value(value: Any) -> Any:
    """Return a value as JSON can hold it, or ``LEFT_OUT``."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else LEFT_OUT
    if isinstance(value, list | tuple):
        items = [plain_value(item) for item in value]
        if LEFT_OUT in items:
            return LEFT_OUT
        return {_TUPLE: items} if isinstance(value, tuple) else items
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and np.isfinite(value).all():
        return {_ARRAY: value.tolist()}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        entries = {name: plain_value(item) for name, item in value.items()}
        return LEFT_OUT if LEFT_OUT in entries.values() else {_DICT: entries}
    if isinstance(value, BaseEstimator):
        return {_ESTIMATOR: type(value).__name__, "parameters": plain_parameters(value)}
    return LEFT_OUT


def value_of(stored: Any, classes: Mapping[str, type]) -> Any:
    """Undo :func:`plain_value`."""
    if isinstance(stored, list):
        return [value_of(item, classes) for item in stored]
    if not isinstance(stored, dict):
        return stored
    if _ESTIMATOR in stored:
        if stored[_ESTIMATOR] not in classes:
            raise ValueError(f"{stored[_ESTIMATOR]} is no estimator of lnml")
        return classes[stored[_ESTIMATOR]](**from_plain(stored["parameters"], classes))
    if _ARRAY in stored:
        return np.asarray(stored[_ARRAY], dtype=np.float64)
    if _TUPLE in stored:
        return tuple(value_of(item, classes) for item in stored[_TUPLE])
    return from_plain(stored[_DICT], classes)
