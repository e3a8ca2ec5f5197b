"""A fitted metric, with everything that is needed to use it on new rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from lnml.certificates import Certificate
from lnml.core.checks import largest_value
from lnml.errors import InputError, require
from lnml.estimators.base import MetricEstimator
from lnml.kernels.tensors import host_array
from lnml.learning.knn import majority, nearest_rows
from lnml.learning.votes import cross_validated_votes
from lnml.tables import Preparation, Table
from lnml.tables.columns import category_text
from lnml.version import __version__

# Distances below this share of the largest coordinate are rounding.
SAME = 1e-13
# Neighbours of a model that has no k of its own.
UNTOLD_K = 5


@dataclass(frozen=True)
class Model:
    """What ``lnml fit`` stores.

    Attributes
    ----------
    method : str
        Name of the method, such as ``ln-lmnn``.
    estimator : dict
        Class and parameters of the estimator, for the record.
    preparation : Preparation
        How columns become a matrix of d columns.
    components : ndarray of shape (r, d)
        The learned metric.
    rows : ndarray of shape (n, r)
        Training rows in the learned space.
    classes : tuple of str
        Class labels.
    codes : ndarray of int, shape (n,)
        Class of each training row, as a position in ``classes``.
    label : str
        Name of the column of labels.
    data : dict
        ``name`` and ``fingerprint`` of the training table.
    fit : dict
        ``objective``, ``gap``, ``converged``, ``n_iter`` and ``seconds`` (None if a method has
        no such number), and what inner cross-validation has ``chosen``,
        with its ``reason`` if there is one.
    lnml_version : str
        Version of lnml that fitted it.
    created : str
        Time of the fit, in ISO format.
    certificate : Certificate or None
        Proof that the metric is close to the best one, where the method has one.
    k : int or None
        Neighbours that vote, from 1 to n; None if none was given or chosen.
    missing : tuple of str
        Values that stand for missing ones in feature columns, beside the usual ones.
    numbers : ndarray of int, shape (n,), or None
        Numbers of ``rows`` in the training table, if these are a sample of it.
    class_rows : tuple of int
        Rows of each class that the metric was learned from, if ``rows`` are a sample of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from lnml.datasets import load_dataset
    >>> from lnml.models import fit_model
    >>> from lnml.tables import Preparation, make_table
    >>> iris = load_dataset("iris")
    >>> frame = pd.DataFrame(iris.data, columns=iris.feature_names).assign(kind=iris.target)
    >>> table = make_table(frame, "kind")
    >>> model = fit_model(table, "euclidean", None, Preparation(scale="standard"), k=3)
    >>> distances, rows = model.neighbors(frame.iloc[[0, 75]])
    >>> rows.shape, model.vote(rows).tolist()
    ((2, 3), ['setosa', 'versicolor'])
    """

    method: str
    estimator: Mapping[str, Any]
    preparation: Preparation
    components: np.ndarray
    rows: np.ndarray
    classes: tuple[str, ...]
    codes: np.ndarray
    label: str
    data: Mapping[str, str]
    fit: Mapping[str, Any]
    lnml_version: str
    created: str
    certificate: Certificate | None = None
    k: int | None = None
    missing: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    class_rows: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows that the metric was learned from."""
        return sum(self.class_rows) or len(self.rows)

    @property
    def n_voters(self) -> int:
        """Neighbours that vote unless a call says otherwise: ``k``, or 5 if that is None."""
        return UNTOLD_K if self.k is None else self.k

    @property
    def labels(self) -> np.ndarray:
        """Label of each training row: shape (n,)."""
        return np.array(self.classes)[self.codes]

    @property
    def class_sizes(self) -> dict[str, int]:
        """Rows of each class that the metric was learned from, by label."""
        kept = np.bincount(self.codes, minlength=len(self.classes)).tolist()
        return dict(zip(self.classes, self.class_rows or kept, strict=True))

    def transform(self, frame: Any) -> np.ndarray:
        """Map rows so that their Euclidean distance is the learned distance.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (m, columns)
            Rows with the feature columns of the training table.

        Returns
        -------
        Z : ndarray of shape (m, r)

        Raises
        ------
        InputError
            If a row is so far from others that its distances overflow.
        """
        # Rows that overflow are refused by their numbers, which says more than NumPy's warning.
        with np.errstate(over="ignore", invalid="ignore"):
            return mapped(self.preparation.transform(frame), self.components)

    def neighbors(
        self, frame: Any, k: int | None = None, *, without_self: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest training rows; ties go to the lowest row.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (m, columns)
            Rows with the feature columns of the training table.
        k : int, optional
            Rows to find; by default the model's own k, or 5 if it has none.
        without_self : bool, default=False
            Whether to leave out the training row that a row is itself. That is one at distance
            0: the one with the same number if the frame is the training table, or else the first,
            with the same label if the frame has labels.

        Returns
        -------
        distances : ndarray of shape (m, k)
            Learned distances, in rising order.
        rows : ndarray of int, shape (m, k)
            Numbers of the training rows, counted from 0.
        """
        queries = self.transform(frame)
        if k is None:
            k = self.n_voters
        if without_self and k >= len(self.rows):
            raise InputError(
                f"k must be from 1 to {len(self.rows) - 1}, the number of other training rows; "
                f"got {k}"
            )
        try:
            nearest = nearest_rows(self.rows, queries, k + without_self)
        except ValueError as error:
            raise InputError(str(error)) from error
        # One neighbour at a time, because m x k x r numbers could be too many.
        distances = np.column_stack(
            [np.linalg.norm(queries - self.rows[rows], axis=1) for rows in nearest.T]
        )
        if not without_self:
            return distances, nearest
        kept = np.ones(nearest.shape, dtype=bool)
        kept[np.arange(len(kept)), self._own_places(frame, queries, distances, nearest)] = False
        return distances[kept].reshape(-1, k), nearest[kept].reshape(-1, k)

    def is_same(self, distances: np.ndarray) -> np.ndarray:
        """Whether distances are 0 but for rounding: an array of the same shape."""
        return distances <= SAME * np.abs(self.rows).max()

    def _own_places(
        self, frame: Any, queries: np.ndarray, distances: np.ndarray, nearest: np.ndarray
    ) -> np.ndarray:
        """Return where among its neighbours (m, k) each row stands itself; or else the last."""
        itself = self.is_same(distances)
        if queries.shape == self.rows.shape and self.is_same(np.abs(queries - self.rows)).all():
            itself &= nearest == np.arange(len(nearest))[:, None]
        elif self.label in frame.columns:
            labels = [category_text(value) for value in frame[self.label].astype("object")]
            itself &= self.labels[nearest] == np.array(labels)[:, None]
        return np.where(itself.any(axis=1), itself.argmax(axis=1), nearest.shape[1] - 1)

    def vote(self, rows: np.ndarray) -> np.ndarray:
        """Return the label that most neighbours have; if labels tie, the nearest row decides.

        Parameters
        ----------
        rows : ndarray of int, shape (m, k)
            Neighbours, as :meth:`neighbors` returns them.

        Returns
        -------
        predicted : ndarray of str, shape (m,)
        """
        return np.array(self.classes)[majority(self.codes[rows], len(self.classes))]


def rows_that_overflow(rows: np.ndarray) -> np.ndarray:
    """Return the numbers of those rows (n, r) whose distances from others may be infinite."""
    # Written so that NaN is found, too.
    return np.flatnonzero(~(np.abs(rows) <= largest_value(rows.dtype)).all(axis=1))


def fit_model(
    table: Table,
    method: str,
    estimator: Any,
    preparation: Preparation,
    *,
    k: int | Literal["auto"] | None = None,
    seed: int = 0,
) -> Model:
    """Fit a metric to a table.

    Parameters
    ----------
    table : Table
        Labelled rows.
    method : str
        Name to store.
    estimator : estimator or None
        A metric learner of lnml, to be fitted; None is the Euclidean metric.
    preparation : Preparation
        How columns become numbers; to be fitted.
    k : int, "auto" or None, default=None
        Neighbours that vote. With "auto" they are chosen by three inner folds with a fit each
        (:mod:`lnml.learning.votes`), unless the estimator has chosen its ``n_neighbors_``. None
        keeps the estimator's choice, if it has made one.
    seed : int, default=0
        Seed of the inner folds.

    Returns
    -------
    model : Model

    Examples
    --------
    >>> import pandas as pd
    >>> from lnml import LMNN
    >>> from lnml.models import fit_model
    >>> from lnml.tables import Preparation, make_table
    >>> frame = pd.DataFrame(
    ...     {"size": [1, 2, 3, 7, 8, 9], "colour": list("rrgggg"), "kind": list("aaabbb")}
    ... )
    >>> model = fit_model(make_table(frame, "kind"), "lmnn", LMNN(n_neighbors=1), Preparation())
    >>> model.classes, model.rows.shape
    (('a', 'b'), (6, 3))
    """
    X = preparation.fit_transform(table.features)
    classes, codes = np.unique(table.labels, return_inverse=True)
    rows: Any = X
    if isinstance(estimator, MetricEstimator):
        # With names, so that messages can tell which column is meant.
        frame = require("pandas").DataFrame
        rows = frame(X, columns=preparation.get_feature_names_out(), copy=False)
    components, facts = fitted_components(estimator, rows, table.labels)
    return Model(
        method=method,
        preparation=preparation,
        components=components,
        rows=mapped(X, components),
        classes=tuple(str(name) for name in classes),
        codes=codes.astype(np.int64),
        label=table.label,
        data={"name": table.name, "fingerprint": table.fingerprint},
        k=_voters(k, estimator, X, table.labels, seed),
        missing=table.missing,
        **facts,
    )


def fitted_components(estimator: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Fit an estimator, or take the Euclidean metric if it is None.

    Returns
    -------
    components : ndarray of shape (r, d)
    facts : dict
        What a :class:`Model` stores about the fit.
    """
    start = time.perf_counter()
    components = np.eye(X.shape[1])
    if estimator is not None:
        estimator.fit(X, y)
        components = np.ascontiguousarray(host_array(estimator.components_), dtype=np.float64)
    seconds = time.perf_counter() - start
    # Euclid's metric and learners of other packages lack some of these.
    fit = {
        "objective": _number(getattr(estimator, "objective_", None)),
        "gap": _number(getattr(estimator, "duality_gap_", None)),
        "converged": bool(getattr(estimator, "converged_", True)),
        "n_iter": int(getattr(estimator, "n_iter_", 0)),
        "chosen": _plain(getattr(estimator, "best_params_", {})),
        "reason": str(getattr(estimator, "reason_", "")),
        "seconds": seconds,
    }
    return components, {
        "estimator": _description(estimator),
        "fit": fit,
        "lnml_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "certificate": getattr(estimator, "certificate_", None),
    }


def mapped(X: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Map rows (n, d) to the learned space (n, r); refuse those whose distances overflow."""
    rows = X @ components.T
    far = rows_that_overflow(rows)
    if far.size:
        raise InputError(
            f"row {far[0]}, counted from 0, is so far from others that its distances overflow: "
            f"correct its values, or remove it"
        )
    return rows


def _voters(
    k: int | Literal["auto"] | None, estimator: Any, X: np.ndarray, y: np.ndarray, seed: int
) -> int | None:
    """Return how many neighbours vote, for rows (n, d) and labels (n,); None if nobody says."""
    found = told_voters(k, estimator, len(X))
    if found is not None or k is None:
        return found

    def fit(rows: np.ndarray, labels: np.ndarray) -> Any:
        return None if estimator is None else clone(estimator).fit(rows, labels)

    return cross_validated_votes(fit, X, y, seed=seed)


def told_voters(k: int | Literal["auto"] | None, estimator: Any, n_rows: int) -> int | None:
    """Return how many of n rows vote, if the user or the estimator says so."""
    if isinstance(k, int):
        if not 1 <= k <= n_rows:
            raise ValueError(f"k must be from 1 to {n_rows}, the number of rows; got {k}")
        return k
    own = getattr(estimator, "n_neighbors_", None)
    return None if own is None else int(own)


def _description(estimator: Any) -> dict[str, Any]:
    """Class and parameters, as far as JSON can hold them."""
    if estimator is None:
        return {"class": "Euclidean", "parameters": {}}
    parameters = estimator.get_params(deep=False)
    for name in ("callback", "verbose"):
        parameters.pop(name, None)
    return {
        "class": type(estimator).__name__,
        "parameters": {name: _plain(value) for name, value in sorted(parameters.items())},
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _number(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return _description(value) if hasattr(value, "get_params") else repr(value)


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
