"""Let a process load and compile what a method needs, before the method is measured."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone

ROWS_PER_CLASS = 10
MOST_COLUMNS = 16
# What a user hears about fits is about the real ones.
SILENT = {"callback": None, "verbose": False}

_done: set[tuple[str, str]] = set()


def warm_up(method: Any, like: np.ndarray) -> None:
    """Fit a method to a toy once in each process, so that no real fit pays for the start.

    Parameters
    ----------
    method : estimator or None
        It is cloned and stays as it is; None needs no start.
    like : ndarray of shape (n, d)
        Rows that will be fitted. The toy has their type and, up to a limit, their columns.
    """
    if method is None or (key := (repr(method), str(like.dtype))) in _done:
        return
    _done.add(key)
    labels = np.repeat([0, 1], ROWS_PER_CLASS)
    shape = labels.size, min(like.shape[1], MOST_COLUMNS)
    toy = (np.random.default_rng(0).normal(size=shape) + labels[:, None]).astype(like.dtype)
    # A toy can be too small for a method. Then its first fit pays after all.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        _silent(clone(method)).fit(toy, labels)


def _silent(method: Any) -> Any:
    names = [(name, name.split("__")[-1]) for name in method.get_params()]
    return method.set_params(**{name: SILENT[last] for name, last in names if last in SILENT})
