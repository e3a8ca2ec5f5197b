"""Bad input is refused here, before any work, with its cause and its cure."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from lnml.neighborhoods.graph import Neighborhoods


def check_integer(name: str, value: Any, least: int) -> int:
    """Return a whole number >= least, or say what is wrong."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return a number strictly between two others, or say what is wrong."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low < float(value) < high:
        raise ValueError(f"{name} must be a number above {low} and below {high}, got {value!r}")
    return float(value)


def check_training_data(
    estimator: BaseEstimator, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X as floats, class names and class codes of its rows."""
    try:
        X, y = validate_data(
            estimator, X, y, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2
        )
    except ValueError as error:
        cure = _cure(str(error))
        if cure is None:
            raise
        raise ValueError(f"{error}\n{cure}") from error
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}): a metric is learned from what tells "
            f"classes apart, so give rows of at least two classes"
        )
    if np.bincount(codes).max() < 2:
        raise ValueError(
            "every class has one row only, so no row has a neighbour of its own class: "
            "give at least one class two rows"
        )
    largest = float(np.abs(X).max())
    if largest > np.sqrt(np.finfo(X.dtype).max) / 1e3:
        raise ValueError(
            f"X holds values up to {largest:.1e}, whose squares overflow {X.dtype}: rescale it"
        )
    if not (X != X[0]).any():
        raise ValueError("all rows of X are the same: there is no distance to learn")
    return X, classes, codes


def check_target_neighbors(graph: Any, codes: np.ndarray) -> Neighborhoods:
    """Return given target neighbours, or say what is wrong with them."""
    n = codes.size
    if isinstance(graph, Neighborhoods):
        targets = graph
    else:
        if np.ndim(graph) != 2 and not hasattr(graph, "tocsr"):
            raise ValueError(
                f"target_neighbors must be an n x n matrix (dense or sparse) with a non-zero "
                f"entry for every target pair, got {type(graph).__name__}"
            )
        if np.shape(graph) != (n, n):
            raise ValueError(
                f"target_neighbors has shape {np.shape(graph)}, X has {n} rows. Cross-validation "
                f"slices rows only: compute the neighbours of each training part inside it, or "
                f"let the estimator find them"
            )
        targets = Neighborhoods.from_graph(graph)
    rows, columns = targets.pairs()
    if targets.n_rows != n:
        raise ValueError(f"target_neighbors covers {targets.n_rows} rows, X has {n}")
    if np.any(rows == columns):
        raise ValueError("a row cannot be its own target neighbour: clear the diagonal")
    if np.any(codes[rows] != codes[columns]):
        i = int(np.argmax(codes[rows] != codes[columns]))
        raise ValueError(
            f"target neighbours must be of the same class; row {rows[i]} has row {columns[i]} of "
            f"another class: remove such pairs"
        )
    if targets.size == 0:
        raise ValueError("target_neighbors is empty: there is nothing to learn from")
    return targets


def check_labelled_pairs(
    estimator: BaseEstimator, pairs: Any, labels: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (m, 2, d) as floats and whether each is similar, or say what is wrong."""
    pairs = check_array(
        pairs,
        ensure_2d=False,
        allow_nd=True,
        dtype=[np.float64, np.float32],
        input_name="pairs",
    )
    if pairs.ndim != 3 or pairs.shape[1] != 2 or pairs.shape[2] == 0:
        raise ValueError(
            f"pairs must have shape (m, 2, d), two points of d features in each entry; "
            f"got {pairs.shape}"
        )
    validate_data(estimator, pairs[:, 0], dtype=[np.float64, np.float32])
    labels = check_array(labels, ensure_2d=False, dtype="numeric", input_name="labels")
    if labels.shape != pairs.shape[:1]:
        raise ValueError(
            f"labels has shape {labels.shape}, but there are {pairs.shape[0]} pairs: give one "
            f"label for each pair"
        )
    if not np.isin(labels, [1, -1]).all():
        raise ValueError(
            f"labels must be 1 (similar) or -1 (dissimilar), got {np.unique(labels)[:5]}"
        )
    similar = np.asarray(labels == 1)
    if similar.all() or not similar.any():
        raise ValueError(
            "all pairs have the same label: a metric is learned from what tells similar from "
            "dissimilar pairs, so give some of both"
        )
    largest = float(np.abs(pairs).max())
    if largest > np.sqrt(np.finfo(pairs.dtype).max) / 1e3:
        raise ValueError(
            f"pairs hold values up to {largest:.1e}, whose squares overflow {pairs.dtype}: "
            f"rescale them"
        )
    if not (pairs[~similar, 0] != pairs[~similar, 1]).any():
        raise ValueError(
            "all dissimilar pairs are of identical points: no metric can tell them apart; "
            "give pairs that differ"
        )
    return pairs, similar


def refuse_unknown(name: str, given: dict[str, Any], accepted: str) -> None:
    """Say clearly that fit does not take an argument."""
    for argument in given:
        if argument == "sample_weight":
            raise TypeError(
                f"{name} does not support sample_weight: repeat rows, or resample them in "
                f"proportion to their weight, before fit"
            )
        raise TypeError(f"{name}.fit takes {accepted}; it does not know {argument!r}")


def _cure(message: str) -> str | None:
    if "could not convert string to float" in message:
        return (
            "X holds text: encode categories as numbers first, for example with "
            "sklearn.preprocessing.OneHotEncoder."
        )
    if "Complex data not supported" in message:
        return "Pass real and imaginary parts as separate columns."
    return None
