"""What a comparison is given, refused before any work with its cause and its cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from lnml.core.checks import check_integer, kind_of
from lnml.errors import unknown_name
from lnml.evaluation.retrieval import Score
from lnml.evaluation.store import file_name
from lnml.learning.knn import refuse_dask

FLOATS = [np.float64, np.float32]
EXAMPLE = '{"Euclidean": None, "LMNN": LMNN()}'


def check_rows(X: Any, y: Any, methods: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
    """Return features (n, d), a data frame if they are one, and labels (n,)."""
    refuse_dask("a comparison", X)
    try:
        values = check_array(X, dtype=FLOATS, ensure_all_finite=False, ensure_min_samples=2)
    except (TypeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"X must be a matrix of numbers, one row for each label: {reason}"
        ) from error
    labels = column_or_1d(y)
    if len(labels) != len(values):
        raise ValueError(
            f"X has {len(values)} rows, and y has {len(labels)} labels: give one label for each row"
        )
    _check_finite(values, methods, getattr(X, "columns", None))
    missing = np.flatnonzero([label is None or label != label for label in labels.tolist()])
    if missing.size:
        raise ValueError(f"row {missing[0]} has no label in y: leave such rows out")
    check_classification_targets(labels)
    if np.unique(labels).size < 2:
        raise ValueError(
            f"y holds one class only ({labels[0]!r}): give rows of at least two classes"
        )
    return X if hasattr(X, "iloc") else values, labels


def _check_finite(values: np.ndarray, methods: Mapping[str, Any], names: Any) -> None:
    """Refuse what no distance can use; an estimator may fill in missing values by itself.

    ``names`` are those of the columns, or None.
    """
    bad = ~np.isfinite(values)
    plain = [name for name, estimator in methods.items() if estimator is None]
    if not plain:
        bad &= ~np.isnan(values)
    if bad.any():
        row, column = (int(place[0]) for place in np.nonzero(bad))
        raise ValueError(
            f"X holds {values[row, column]} in row {row}, "
            f"column {column if names is None else repr(str(names[column]))}: "
            + (f"{plain[0]!r} cannot use it; " if plain else "")
            + "correct it, or leave the row out"
        )


def check_methods(methods: Any, scaled: Any) -> None:
    """Refuse what is no mapping of names to estimators, or names that no method has."""
    if not isinstance(methods, Mapping):
        raise TypeError(
            f"methods must map names to estimators, such as {EXAMPLE}; got {kind_of(methods)}"
        )
    if not methods:
        raise ValueError(f"there is no method to compare: give some, such as {EXAMPLE}")
    files: dict[str, str] = {}
    for name, estimator in methods.items():
        if not isinstance(name, str):
            raise TypeError(f"names of methods must be text; got {name!r}")
        _check_estimator(name, estimator)
        other = files.setdefault(file_name(name), name)
        if other != name:
            raise ValueError(
                f"the methods {other!r} and {name!r} differ in case or punctuation only: rename one"
            )
    if isinstance(scaled, str) or not isinstance(scaled, Sequence):
        raise TypeError(f"scaled must be a list of names of methods; got {scaled!r}")
    for name in scaled:
        if name not in methods:
            raise unknown_name("method", str(name), methods)


def _check_estimator(name: str, estimator: Any) -> None:
    if estimator is None:
        return
    usable = hasattr(estimator, "transform") or hasattr(estimator, "predict")
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and usable):
        raise TypeError(
            f"the method {name!r} must be an estimator with fit and transform, a classifier, or "
            f"None for Euclidean distance; got {kind_of(estimator)}"
        )


def check_voters(k: Any, fewest: int) -> None:
    """Refuse a number of neighbours that is none, or more than a training part has rows."""
    if isinstance(k, str) and k == "auto":
        return
    if isinstance(k, str):
        raise ValueError(f'k must be a number of neighbours (1, 2, ...) or "auto"; got {k!r}')
    if check_integer("k", k, 1) > fewest:
        raise ValueError(
            f"k={k} exceeds the {fewest} rows that the training part of a fold has: choose fewer"
        )


def check_depth(score: Score, fewest: int) -> None:
    """Refuse to look at more rows than a training part has."""
    if score.k is not None and score.k > fewest:
        raise ValueError(
            f"{score.name} looks at more than the {fewest} rows that the training part of a fold "
            f"has: choose fewer"
        )
