"""Turn the columns of a table into a matrix, by rules learned from a training part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from lnml.errors import InputError
from lnml.tables.columns import as_categories, is_numeric, plain_column
from lnml.tables.texts import Kind

SCALES = ("none", "standard", "minmax")
MISSING = "(missing)"


@dataclass(frozen=True)
class Column:
    """A feature column of the training part.

    Attributes
    ----------
    name : str
        Its name.
    categories : tuple of str or None
        Its categories in sorted order; None for numbers.
    has_missing : bool
        Whether "missing" is one more category.
    """

    name: str
    categories: tuple[str, ...] | None = None
    has_missing: bool = False

    @property
    def kind(self) -> Kind:
        """What it holds."""
        return "numbers" if self.categories is None else "categories"

    @property
    def output_names(self) -> list[str]:
        """Names of the matrix columns that this column becomes."""
        if self.categories is None:
            return [self.name]
        shown = (*self.categories, MISSING) if self.has_missing else self.categories
        return [f"{self.name}={category}" for category in shown]


class Preparation(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into a matrix of numbers.

    - *Numbers* stay as they are. A missing number becomes the median of its
      column in the training part (0 if that part has no value at all).
    - *Categories* (text, booleans) become one 0/1 column each, in sorted
      order. "Missing" is a category of its own if the training part has
      missing values. A category that the training part lacks gives zeros
      in all of these columns.
    - ``scale`` then applies to the columns of numbers, and ``pca`` to all.

    All that is learned is in a few arrays and strings (:meth:`get_state`), so
    it can be stored without pickling scikit-learn's objects. ``transform``
    uses nothing else, so a stored copy gives the same bits.

    Parameters
    ----------
    scale : {'none', 'standard', 'minmax'}, default='none'
        Leave numbers as they are, or scale every column to mean 0 and variance 1,
        or to the range from 0 to 1, in the training part.
    pca : int or float, default=None
        Project on this many principal components of the training part, or on
        as many as hold this share of its variance (a number below 1).

    Attributes
    ----------
    columns_ : tuple of Column
        The columns used, those of numbers first.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"kind": ["a", "b", None], "size": [1.0, None, 3.0]})
    >>> preparation = Preparation().fit(frame)
    >>> preparation.get_feature_names_out().tolist()
    ['size', 'kind=a', 'kind=b', 'kind=(missing)']
    >>> preparation.transform(frame)
    array([[1., 1., 0., 0.],
           [2., 0., 1., 0.],
           [3., 0., 0., 1.]])
    """

    def __init__(self, *, scale: str = "none", pca: float | None = None) -> None:
        self.scale = scale
        self.pca = pca

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Learn medians, categories, scales and components from a training part.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (n, columns)
            Features, as in :attr:`lnml.tables.Table.features`.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self
        """
        self._fit_matrix(frame)
        return self

    def learned(
        self,
        columns: tuple[Column, ...],
        *,
        medians: np.ndarray,
        centers: np.ndarray,
        spreads: np.ndarray,
        projection: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Self:
        """Take what was learned elsewhere, as from rows that are not here.

        Parameters
        ----------
        columns : tuple of Column
            The columns, those of numbers first.
        medians, centers, spreads : ndarray of shape (columns of numbers,)
            What stands for missing numbers, is taken from numbers, and divides them.
        projection : tuple of ndarray, optional
            Mean (d',) and principal components (d, d').
        """
        self.check_parameters()
        self.columns_ = columns
        self.medians_, self.centers_, self.spreads_ = medians, centers, spreads
        if projection is not None:
            self.pca_mean_, self.pca_components_ = projection
        return self

    def fit_transform(self, frame: Any, y: Any = None) -> np.ndarray:
        """Learn from a training part and return it as a matrix of shape (n, d)."""
        return self._project(self._fit_matrix(frame))

    def transform(self, frame: Any) -> np.ndarray:
        """Return rows as a matrix.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (m, columns)
            Rows with at least the columns of the training part, in any order.

        Returns
        -------
        X : ndarray of float64, shape (m, d)
        """
        plain = self._plain_columns(frame)
        return self.finished(self._matrix(plain, len(frame)))

    def finished(self, X: np.ndarray) -> np.ndarray:
        """Scale and project rows (n, d') of numbers and 0/1 columns, in place: shape (n, d)."""
        return self._project(self._scaled(X))

    def count_unknown(self, frame: Any) -> dict[str, int]:
        """Count by column the values whose category does not occur in the training part."""
        plain = self._plain_columns(frame)
        places = {
            c.name: _category_places(c, plain[c.name])
            for c in self.columns_
            if c.categories is not None
        }
        return {name: int((place < 0).sum()) for name, place in places.items() if place.min() < 0}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the matrix: ``size``, ``kind=a``, or ``pca0``, ..."""
        self._check_fitted()
        if self.pca is not None:
            return np.array([f"pca{i}" for i in range(len(self.pca_components_))], dtype=object)
        names = [name for column in self.columns_ for name in column.output_names]
        return np.array(names, dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that was learned: a dict that JSON can hold, and arrays by name."""
        self._check_fitted()
        columns = [
            {"name": c.name}
            if c.categories is None
            else {"name": c.name, "categories": list(c.categories), "has_missing": c.has_missing}
            for c in self.columns_
        ]
        arrays = {"medians": self.medians_, "centers": self.centers_, "spreads": self.spreads_}
        if self.pca is not None:
            arrays |= {"pca_mean": self.pca_mean_, "pca_components": self.pca_components_}
        return {"scale": self.scale, "pca": self.pca, "columns": columns}, arrays

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> Preparation:
        """Undo :meth:`get_state`; refuse a state whose parts do not fit each other."""
        preparation = cls(scale=state["scale"], pca=state["pca"])
        preparation.check_parameters()
        preparation.columns_ = tuple(_stored_column(column) for column in state["columns"])
        n_numbers = sum(column.categories is None for column in preparation.columns_)
        width = sum(len(column.output_names) for column in preparation.columns_)
        expected: dict[str, tuple[int, ...]] = {
            name: (n_numbers,) for name in ("medians", "centers", "spreads")
        }
        if preparation.pca is not None:
            rank = len(arrays["pca_components"])
            expected |= {"pca_mean": (width,), "pca_components": (rank, width)}
        for name, shape in expected.items():
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} must be finite numbers of shape {shape}")
            if name == "spreads" and not (arrays[name] > 0).all():
                raise ValueError("spreads must be above 0")
            setattr(preparation, f"{name}_", np.ascontiguousarray(arrays[name], dtype=np.float64))
        return preparation

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that it takes."""
        return tuple(column.name for column in self.columns_)

    @property
    def n_features_out(self) -> int:
        """Columns of the matrix."""
        return len(self.get_feature_names_out())

    def _fit_matrix(self, frame: Any) -> np.ndarray:
        """Learn everything; return the training part before the projection."""
        self.check_parameters()
        plain = {name: plain_column(name, frame[name]) for name in frame.columns}
        numbers = [Column(name) for name, column in plain.items() if is_numeric(column)]
        categories = [
            Column(name, tuple(column.cat.categories), bool(column.isna().any()))
            for name, column in plain.items()
            if not is_numeric(column)
        ]
        self.columns_ = (*numbers, *categories)
        self.medians_ = np.array([_median(plain[column.name].to_numpy()) for column in numbers])
        X = self._matrix(plain, len(frame))
        self._fit_scale(X[:, : len(numbers)])
        X = self._scaled(X)
        self._fit_pca(X)
        return X

    def check_parameters(self) -> None:
        """Refuse a scale, or a number of components, that cannot be."""
        if self.scale not in SCALES:
            raise InputError(f"scale must be one of {', '.join(SCALES)}; got {self.scale!r}")
        if self.pca is None:
            return
        whole = float(self.pca).is_integer() and self.pca >= 1
        if not whole and not 0.0 < self.pca < 1.0:
            raise InputError(
                f"pca must be a number of components (1, 2, ...) or a share of the variance above "
                f"0 and below 1; got {self.pca:g}"
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "columns_"):
            raise NotFittedError("this Preparation is not fitted yet: call fit first")

    def _plain_columns(self, frame: Any) -> dict[str, Any]:
        self._check_fitted()
        missing = [column.name for column in self.columns_ if column.name not in frame.columns]
        if missing:
            shown = ", ".join(map(repr, missing[:10])) + (", ..." if len(missing) > 10 else "")
            raise InputError(
                f"{len(missing)} of the {len(self.columns_)} feature columns are missing: {shown}"
            )
        return {c.name: plain_column(c.name, frame[c.name], c.kind) for c in self.columns_}

    def _matrix(self, plain: dict[str, Any], n_rows: int) -> np.ndarray:
        """Numbers with medians for missing ones, and 0/1 columns: shape (n, width)."""
        width = sum(len(column.output_names) for column in self.columns_)
        X = np.zeros((n_rows, width))
        end = 0
        for number, column in enumerate(self.columns_):
            start, end = end, end + len(column.output_names)
            if column.categories is None:
                X[:, start] = _as_numbers(column.name, plain[column.name])
                X[np.isnan(X[:, start]), start] = self.medians_[number]
            else:
                place = _category_places(column, plain[column.name])
                known = np.flatnonzero(place >= 0)
                X[known, start + place[known]] = 1.0
        return X

    def _fit_scale(self, numbers: np.ndarray) -> None:
        """Learn centres and spreads of the columns of numbers; constant columns have spread 1."""
        d = numbers.shape[1]
        self.centers_, self.spreads_ = np.zeros(d), np.ones(d)
        if d and self.scale == "standard":
            scaler = StandardScaler().fit(numbers)
            self.centers_, self.spreads_ = scaler.mean_, scaler.scale_
        elif d and self.scale == "minmax":
            scaler = MinMaxScaler().fit(numbers)
            self.centers_, self.spreads_ = scaler.data_min_, 1.0 / scaler.scale_

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        numbers = X[:, : self.centers_.size]
        numbers -= self.centers_
        numbers /= self.spreads_
        return X

    def _fit_pca(self, X: np.ndarray) -> None:
        if self.pca is None:
            return
        check_components(self.pca, X.shape, varies=bool((X != X[0]).any()))
        # Both solvers are exact; the second is faster if there are many rows.
        solver = "full" if X.shape[0] < 10 * X.shape[1] else "covariance_eigh"
        wanted = int(self.pca) if self.pca >= 1 else self.pca
        fitted = PCA(wanted, svd_solver=solver).fit(X)
        self.pca_mean_ = fitted.mean_
        self.pca_components_ = np.ascontiguousarray(fitted.components_)

    def _project(self, X: np.ndarray) -> np.ndarray:
        if self.pca is None:
            return X
        return (X - self.pca_mean_) @ self.pca_components_.T


def check_components(pca: float, shape: tuple[int, int], *, varies: bool) -> None:
    """Refuse more principal components than rows (n, d) have; ``varies`` if these differ."""
    most = min(shape)
    if pca >= 1 and pca > most:
        raise InputError(
            f"pca={pca:g} exceeds the {most} principal components of {shape[0]} training rows "
            f"with {shape[1]} columns: use at most {most}"
        )
    if not varies:
        raise InputError("all training rows are the same: there are no principal components")


def _stored_column(stored: dict[str, Any]) -> Column:
    """Return a column from what JSON holds of it."""
    texts = [stored["name"], *stored.get("categories", [])]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("names and categories of columns must be text")
    if "categories" not in stored:
        return Column(texts[0])
    return Column(texts[0], tuple(texts[1:]), bool(stored["has_missing"]))


def _median(values: np.ndarray) -> float:
    present = values[~np.isnan(values)]
    return float(np.median(present)) if present.size else 0.0


def _category_places(column: Column, values: Any) -> np.ndarray:
    """Return the position of every value among a column's categories (n,); -1 if unknown."""
    values = as_categories(values)
    position = {category: place for place, category in enumerate(column.categories or ())}
    missing = len(position) if column.has_missing else -1
    # The code of a missing value is -1, which points to the last entry.
    places = [position.get(category, -1) for category in values.cat.categories] + [missing]
    return np.array(places)[values.cat.codes.to_numpy()]


def _as_numbers(name: str, column: Any) -> np.ndarray:
    if is_numeric(column):
        return column.to_numpy()
    if column.isna().all():
        return np.full(len(column), np.nan)
    row = int(np.flatnonzero(column.notna())[0])
    raise InputError(
        f"column {name!r} holds categories such as {column.iloc[row]!r} (row {row}, counted from "
        f"0), but it held numbers in the training part: correct it, or leave the field empty where "
        f"the number is missing"
    )
