"""A classification problem with its folds; raw features are prepared fold by fold."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from lnml.errors import InputError
from lnml.evaluation.results import DataSummary

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """Data, folds, and how features are prepared on the training part of each fold.

    Attributes
    ----------
    name : str
        Name of the data.
    features : array of shape (n, ...), list-like of texts, or data frame
        The rows, not yet prepared.
    labels : ndarray of shape (n,)
        Class labels.
    splits : sequence of (train, test)
        Row numbers of each fold.
    prepare : transformer, optional
        Turns features into a matrix; fitted on each training part.
    prepare_for : mapping of str to transformer
        Methods that have a preparation of their own.
    reduce : transformer, optional
        Applied after ``prepare``, for all methods but those in ``unreduced``.
    unreduced : sequence of str
        Methods that see the features before ``reduce``.
    digest : str, default=""
        Fingerprint of the data, if it is already known.
    dtype : str, default="float64"
        Type of the matrices that methods see.
    shares : mapping of str to float
        Methods that learn from a share of each training part only. The search for
        nearest neighbours still uses all of its rows.
    most_rows : mapping of str to int
        Methods that learn from so many rows of each training part at most.
    names : sequence of str
        Names of the columns of ``features``, where ``prepare`` does not know them.
    """

    name: str
    features: Any
    labels: np.ndarray
    splits: Sequence[Split]
    prepare: Any = None
    prepare_for: Mapping[str, Any] = field(default_factory=dict)
    reduce: Any = None
    unreduced: Sequence[str] = ()
    digest: str = ""
    dtype: str = "float64"
    shares: Mapping[str, float] = field(default_factory=dict)
    most_rows: Mapping[str, int] = field(default_factory=dict)
    names: Sequence[str] = ()

    def rows(self, indices: np.ndarray) -> Any:
        """Return some rows of the features."""
        if hasattr(self.features, "iloc"):
            return self.features.iloc[indices]
        return self.features[indices]

    def learned_rows(self, method: str, n_rows: int) -> int:
        """Return how many of some training rows a method learns from."""
        share = int(self.shares.get(method, 1.0) * n_rows)
        return min(share, self.most_rows.get(method, n_rows))

    def summary(self) -> DataSummary:
        """Size and fingerprint."""
        names, codes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        return DataSummary(
            name=self.name,
            n_features=int(np.prod(np.shape(self.features)[1:])),
            class_sizes={str(name): int(size) for name, size in zip(names, sizes, strict=True)},
            fingerprint=self.digest or fingerprint(self.features, self.labels),
            truth=codes.tolist(),
        )


class Columns(NamedTuple):
    """The columns that a method sees, or, if it sees their projections, those before them.

    ``inside`` and ``outside`` are training and test rows (n, d) and (m, d), ``names`` the names of
    the d columns, and ``projection`` (r, d) leads from there to what the method sees, but for a
    shift; None if it sees the columns themselves.
    """

    inside: np.ndarray
    outside: np.ndarray
    names: Sequence[str]
    projection: np.ndarray | None


class FoldData:
    """Matrices of one fold, made when first asked for."""

    def __init__(self, problem: Problem, fold: int) -> None:
        self.problem = problem
        self.train, self.test = problem.splits[fold]
        self._made: dict[tuple[int, bool], tuple[np.ndarray, np.ndarray]] = {}

    def matrices(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows as a method sees them."""
        prepare = self.problem.prepare_for.get(method, self.problem.prepare)
        reduced = self.problem.reduce is not None and method not in self.problem.unreduced
        key = id(prepare), reduced
        if key not in self._made:
            inside, outside = self._prepare(prepare)
            if reduced:
                reduce = clone(self.problem.reduce).fit(inside)
                inside, outside = reduce.transform(inside), reduce.transform(outside)
            dtype = self.problem.dtype
            self._made[key] = inside.astype(dtype), outside.astype(dtype)
        return self._made[key]

    def columns(self, method: str) -> Columns:
        """Return the columns behind the matrices of a method, with their names."""
        prepare = self.problem.prepare_for.get(method, self.problem.prepare)
        projection = None
        if getattr(prepare, "pca", None) is not None:
            fitted = clone(prepare).fit(self.problem.rows(self.train))
            prepare, projection = clone(prepare).set_params(pca=None), fitted.pca_components_
        inside, outside = self._prepare(prepare)
        if self.problem.reduce is not None and method not in self.problem.unreduced:
            projection = clone(self.problem.reduce).fit(inside).components_
        return Columns(inside, outside, self._names(prepare, inside.shape[1]), projection)

    def _names(self, prepare: Any, width: int) -> Sequence[str]:
        """Return the names of columns, as the problem or the preparation knows them."""
        if len(self.problem.names) == width:
            return self.problem.names
        if hasattr(prepare, "get_feature_names_out"):
            fitted = clone(prepare).fit(self.problem.rows(self.train))
            return [str(name) for name in fitted.get_feature_names_out()]
        return [f"column {number}" for number in range(width)]

    def _prepare(self, prepare: Any) -> tuple[np.ndarray, np.ndarray]:
        inside, outside = self.problem.rows(self.train), self.problem.rows(self.test)
        if prepare is not None:
            prepare = clone(prepare).fit(inside)
            inside, outside = prepare.transform(inside), prepare.transform(outside)
        return _as_array(inside), _as_array(outside)


def stratified_folds(labels: np.ndarray, n_folds: int, seed: int) -> list[Split]:
    """Return shuffled folds that have about the class ratios of all rows."""
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if smallest < n_folds:
        raise ValueError(
            f"{n_folds} folds need {n_folds} rows of every class, and the smallest class has "
            f"{smallest}: ask for fewer folds, or leave that class out"
        )
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(len(labels)), labels))


def possible_folds(labels: np.ndarray, n_folds: int, seed: int) -> tuple[list[Split], list[str]]:
    """Return as many stratified folds as small classes allow, and notes about these classes.

    A class of one row takes part in training only: it cannot be predicted from itself.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class labels.
    n_folds : int
        Folds that are wanted.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    splits : list of (train, test)
        The folds of :func:`stratified_folds` if no class is too small for them.
    notes : list of str
    """
    classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    single = sizes == 1
    if (~single).sum() < 2:
        raise InputError(
            "fewer than two classes have two rows or more, and rows of others cannot be predicted: "
            "give more rows"
        )
    notes = []
    if single.any():
        one = single.sum() == 1
        notes.append(
            f"{'class' if one else 'classes'} {_shown(classes[single])} of one row"
            f"{'' if one else ' each'}: used in training only, never tested"
        )
    smallest = int(sizes[~single].min())
    if smallest < n_folds:
        name = str(classes[sizes == smallest][0])
        notes.append(
            f"{smallest} folds instead of {n_folds}, because the smallest class ({name!r}) has "
            f"{smallest} rows; --drop-class {name!r} leaves it out"
        )
    tested, always = np.flatnonzero(~single[codes]), np.flatnonzero(single[codes])
    parts = stratified_folds(labels[tested], min(n_folds, smallest), seed)
    splits = [(np.union1d(tested[train], always), tested[test]) for train, test in parts]
    return splits, notes


def _shown(classes: np.ndarray, most: int = 5) -> str:
    names = ", ".join(repr(str(name)) for name in classes[:most])
    return f"{names}, ... ({classes.size} in all)" if classes.size > most else names


def stratified_sample(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the numbers of at most ``size`` rows, sorted; classes in proportion if possible."""
    rows = np.arange(labels.size)
    if rows.size <= size:
        return rows
    sizes = np.unique(labels, return_counts=True)[1]
    stratify = labels if sizes.min() > 1 and sizes.size <= size else None
    kept, _ = train_test_split(rows, train_size=size, stratify=stratify, random_state=seed)
    return np.sort(kept)


def fingerprint(features: Any, labels: np.ndarray) -> str:
    """SHA-256 of features and labels."""
    digest = hashlib.sha256()
    for values in (features, labels):
        if hasattr(values, "to_csv"):
            digest.update(values.to_csv(index=False).encode())
            continue
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            array = array.astype(str)
            digest.update("\0".join(array.ravel().tolist()).encode())
        else:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _as_array(matrix: Any) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
