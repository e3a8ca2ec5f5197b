"""Bad input is refused here, before any work, with its cause and its cure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from lnml.core.checks import ColumnError, refuse_overflow, refuse_spreads
from lnml.core.labels import Classes, classes_by_appearance
from lnml.core.neighborhoods import Neighborhoods
from lnml.estimators.metric import check_pairs
from lnml.kernels.dask_rows import columns_of, dask_rows, local_labels
from lnml.kernels.tensors import checked_tensor, host_array, is_dask, is_tensor


class TrainingRows(NamedTuple):
    """Checked data.

    Attributes
    ----------
    X : ndarray or tensor of shape (n, d)
        Rows, in float32 or float64.
    labels : ndarray of shape (c,)
        Class labels as they appear, which is the order of the blocks of a training set.
    codes : ndarray of shape (n,)
        Position of each row's label in ``labels``.
    """

    X: Any
    labels: np.ndarray
    codes: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """Class labels in scikit-learn's order."""
        return np.sort(self.labels)


def check_percentiles(values: Any) -> tuple[float, float]:
    """Return two percentiles in rising order, or say what is wrong."""
    low, high = _two_numbers("percentiles", values)
    if not 0.0 <= low <= high <= 100.0:
        raise ValueError(
            f"percentiles must be two numbers from 0 to 100 in rising order, got {values!r}"
        )
    return low, high


def check_bounds(values: Any) -> tuple[float, float]:
    """Return bounds 0 < u <= l on squared distances, or say what is wrong."""
    upper, lower = _two_numbers("bounds", values)
    if not 0.0 < upper <= lower < np.inf:
        raise ValueError(
            f"bounds must be (u, l) with 0 < u <= l: the largest squared distance of similar "
            f"pairs and the least of dissimilar ones; got {values!r}"
        )
    return upper, lower


def check_pair_labels(labels: Any, n_pairs: int) -> np.ndarray:
    """Return labels 1 and -1 of pairs, or say what is wrong."""
    labels = np.asarray(labels)
    if labels.shape != (n_pairs,):
        raise ValueError(
            f"labels has shape {labels.shape}, but there are {n_pairs} pairs: give one label for "
            f"each pair"
        )
    if labels.dtype.kind not in "iuf" or not np.isin(labels, (-1, 1)).all():
        raise ValueError(
            f"labels must be 1 (similar) or -1 (dissimilar), got "
            f"{', '.join(str(label) for label in np.unique(labels)[:5])}: "
            f"recode them, for example as 2 * labels - 1 where they are 0 and 1"
        )
    return labels


def check_training_data(estimator: BaseEstimator, X: Any, y: Any) -> TrainingRows:
    """Return the rows and their classes, or say what is wrong with them."""
    if is_dask(X):
        return _check_dask_rows(estimator, X, y)
    rows = checked_tensor(X)
    if rows is None:
        rows, y = _check_array_rows(estimator, X, y)
    else:
        y = _check_tensor_labels(estimator, rows, y)
    labels, codes = _classes(y)
    check_classes(labels, codes)
    highest, lowest = _column_range(rows)
    _refuse_equal_rows(highest, lowest)
    refuse_overflow("X", np.stack([highest, lowest]))
    spread = highest.astype(np.float64) - lowest.astype(np.float64)
    refuse_spreads("X", spread, getattr(estimator, "feature_names_in_", None))
    return TrainingRows(rows, labels, codes)


def _check_dask_rows(estimator: BaseEstimator, X: Any, y: Any) -> TrainingRows:
    """Return rows that stay on a cluster, with their labels; values are checked there."""
    rows = dask_rows(X)
    validate_data(estimator, columns_of(X), y, reset=True, skip_check_array=True)
    y = column_or_1d(local_labels(y), warn=True)
    if y.size < 2:
        raise ValueError(f"Found {y.size} row(s) in y: at least 2 are needed")
    assert_all_finite(y, input_name="y")
    labels, codes = _classes(y)
    check_classes(labels, codes)
    return TrainingRows(rows, labels, codes)


def _classes(y: np.ndarray) -> Classes:
    """Return the classes of labels (n,), or say why these are none."""
    try:
        found = classes_by_appearance(y)
        # Of few labels it is enough to look at each of them: scikit-learn sorts what it is given.
        few = 3 * found.labels.size < y.size
        check_classification_targets(np.repeat(found.labels, 3) if few else y)
        return found
    except TypeError as error:
        raise ValueError(
            f"labels in y are of more than one type, or missing ({error}): use one type, and "
            f"leave out rows without a label"
        ) from error


def _check_tensor_labels(estimator: BaseEstimator, X: Any, y: Any) -> np.ndarray:
    """Return the labels of the rows of a tensor, on the host."""
    y = column_or_1d(local_labels(y), warn=True)
    if X.shape[0] < 2:
        raise ValueError(f"Found a tensor with {X.shape[0]} row(s): at least 2 are needed")
    check_consistent_length(range(X.shape[0]), y)
    set_features(estimator, X.shape[1])
    return y


def set_features(estimator: BaseEstimator, n_features: int) -> None:
    """Say how many features there are, which have no names."""
    estimator.n_features_in_ = n_features
    estimator.__dict__.pop("feature_names_in_", None)


def _check_array_rows(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of an array as floats, and their labels."""
    try:
        X, y = validate_data(
            estimator,
            X,
            local_labels(y),
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2,
        )
    except ValueError as error:
        cure = _cure(str(error))
        if cure is None:
            raise
        raise ValueError(f"{error}\n{cure}") from error
    return X, y


def check_learnable(X: Any, classes: np.ndarray, codes: np.ndarray) -> None:
    """Refuse rows from which nothing can be learned; ``classes`` are those that occur."""
    check_classes(classes, codes)
    _refuse_equal_rows(*_column_range(X))


def _refuse_equal_rows(highest: np.ndarray, lowest: np.ndarray) -> None:
    """Refuse columns (d,) none of which varies."""
    if not (highest > lowest).any():
        raise ValueError("all rows of X are the same: there is no distance to learn")


def check_classes(classes: np.ndarray, codes: np.ndarray) -> None:
    """Refuse labels from which nothing can be learned."""
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


def refuse_fourth_powers(estimator: BaseEstimator, X: Any) -> None:
    """Say clearly that a norm of the metric, squared, would overflow or be zero.

    The entries of a metric are about one over squared differences of the rows (n, d).
    """
    highest, lowest = (part.astype(np.float64) for part in _column_range(X))
    limits, spread = np.finfo(np.float64), highest - lowest
    least, most = limits.tiny**0.25 * 1e3, limits.max**0.25 / 1e3
    wrong = np.flatnonzero((spread > most) | ((spread > 0.0) & (spread < least)))
    if wrong.size:
        raise ColumnError(
            int(wrong[0]),
            f"differ by up to {spread[wrong[0]]:.1e}, and {type(estimator).__name__} needs fourth "
            f"powers of such differences, which are no numbers of float64: rescale or drop it",
            getattr(estimator, "feature_names_in_", None),
        )


def _column_range(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Highest and lowest value of every column of an array or tensor, in its type."""
    if is_tensor(X):
        return host_array(X.amax(0)), host_array(X.amin(0))
    return X.max(axis=0), X.min(axis=0)


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
    pairs = check_pairs(pairs)
    validate_data(estimator, pairs[:, 0], dtype=[np.float64, np.float32])
    similar = check_pair_labels(labels, len(pairs)) == 1
    if similar.all() or not similar.any():
        raise ValueError(
            "all pairs have the same label: a metric is learned from what tells similar from "
            "dissimilar pairs, so give some of both"
        )
    refuse_overflow("pairs", pairs)
    refuse_spreads("pairs", np.abs(pairs[:, 0] - pairs[:, 1]).max(axis=0))
    if not (pairs[~similar, 0] != pairs[~similar, 1]).any():
        raise ValueError(
            "all dissimilar pairs are of identical points: no metric can tell them apart; "
            "give pairs that differ"
        )
    return pairs, similar


def check_triplets(triplets: Any) -> np.ndarray:
    """Return triplets as a float array of shape (m, 3, d), or say what is wrong."""
    triplets = check_array(
        triplets,
        ensure_2d=False,
        allow_nd=True,
        dtype=[np.float64, np.float32],
        input_name="triplets",
    )
    if triplets.ndim != 3 or triplets.shape[1] != 3 or triplets.shape[2] == 0:
        raise ValueError(
            f"triplets must have shape (m, 3, d), the points anchor, near and far in each entry; "
            f"got {triplets.shape}"
        )
    refuse_overflow("triplets", triplets)
    refuse_spreads("triplets", np.abs(triplets - triplets[:, :1]).max(axis=(0, 1)))
    if not (triplets != triplets[:, :1]).any():
        raise ValueError(
            "the three points of every triplet are the same: there is no distance to learn"
        )
    return triplets


def check_basis(basis: Any, n_features: int) -> np.ndarray:
    """Return a basis (d x m) in float64, the identity for None, or say what is wrong."""
    if basis is None:
        return np.eye(n_features)
    found = np.array(basis, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != n_features or found.shape[1] == 0:
        raise ValueError(
            f"basis has shape {found.shape}, but the data have {n_features} features: pass an "
            f"array of shape ({n_features}, m), one direction per column"
        )
    if not np.isfinite(found).all():
        raise ValueError("basis contains NaN or inf: pass finite directions")
    empty = np.flatnonzero(~found.any(axis=0))
    if empty.size:
        raise ValueError(f"column {empty[0]} of basis is all zero, no direction: remove it")
    return found


def refuse_unknown(name: str, given: dict[str, Any], accepted: str) -> None:
    """Say clearly that fit does not take an argument."""
    for argument in given:
        if argument == "sample_weight":
            raise TypeError(
                f"{name} does not support sample_weight: repeat rows, or resample them in "
                f"proportion to their weight, before fit"
            )
        raise TypeError(f"{name}.fit takes {accepted}; it does not know {argument!r}")


def _two_numbers(name: str, values: Any) -> tuple[float, float]:
    given = np.asarray(values)
    if given.shape != (2,) or given.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be two numbers, got {values!r}")
    return float(given[0]), float(given[1])


def _cure(message: str) -> str | None:
    if "could not convert string to float" in message:
        return (
            "X holds text: encode categories as numbers first, for example with "
            "sklearn.preprocessing.OneHotEncoder."
        )
    if "Complex data not supported" in message:
        return "Pass real and imaginary parts as separate columns."
    return None
