"""The learned metric: what every estimator of this library is after ``fit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from lnml.kernels.dask_rows import columns_of, dask_rows, lazy_matmul, lazy_pair_lengths
from lnml.kernels.tensors import (
    checked_tensor,
    host_array,
    is_dask,
    matmul,
    tensor_pair_lengths,
)


def check_pairs(pairs: Any, n_features: int | None = None) -> np.ndarray:
    """Return pairs of points (m, 2, d) as floats, or say what is wrong with them."""
    pairs = check_array(
        pairs, ensure_2d=False, allow_nd=True, dtype=[np.float64, np.float32], input_name="pairs"
    )
    width = "d" if n_features is None else n_features
    if pairs.ndim != 3 or pairs.shape[1] != 2 or pairs.shape[2] != (n_features or pairs.shape[2]):
        raise ValueError(
            f"pairs must have shape (m, 2, {width}), one pair of points in each entry; "
            f"got {pairs.shape}"
        )
    return pairs


class MahalanobisMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A metric D(a, b) = |L a - L b| given by ``components_`` = L, shape (r, d).

    Distances between transformed points are Euclidean, so a fitted metric goes
    in front of anything that works with Euclidean distances.

    Attributes
    ----------
    not_coupled_because : str
        Why :class:`lnml.LNML` cannot use this method, worded as the end of a
        sentence; empty if it can.
    """

    not_coupled_because: str = ""
    components_: Any

    def transform(self, X: Any) -> Any:
        """Map rows so that their Euclidean distance is the learned distance.

        Parameters
        ----------
        X : array-like, torch tensor, Dask array or Dask DataFrame of shape (n, d)
            Data.

        Returns
        -------
        Z : ndarray, or tensor if X is one, or (lazy) Dask array, of shape (n, r)
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._transform_later(X)
        rows = checked_tensor(X, self.n_features_in_)
        if rows is None:
            rows = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return matmul(rows, self.components_)

    def _transform_later(self, X: Any) -> Any:
        """Return a lazy Dask array; what is known without work is checked now."""
        chosen = getattr(self, "_sklearn_output_config", {})
        if chosen.get("transform", get_config()["transform_output"]) != "default":
            raise ValueError(
                "set_output would bring all rows of the Dask data here: "
                "use set_output(transform='default'), which gives a Dask array"
            )
        rows = dask_rows(X)
        validate_data(self, columns_of(X), reset=False, skip_check_array=True)
        return lazy_matmul(rows, host_array(self.components_))

    def get_mahalanobis_matrix(self) -> Any:
        """Return M = L^T L, shape (d, d): D(a, b)^2 = (a - b)^T M (a - b)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def pair_distance(self, pairs: Any) -> Any:
        """Learned distance of each pair.

        Parameters
        ----------
        pairs : array-like, torch tensor or Dask array of shape (m, 2, d)
            Pairs of points.

        Returns
        -------
        distances : ndarray, or tensor or (lazy) Dask array if pairs are one, of shape (m,)
        """
        check_is_fitted(self)
        if is_dask(pairs):
            return lazy_pair_lengths(pairs, host_array(self.components_))
        lengths = tensor_pair_lengths(pairs, self.components_, self.n_features_in_)
        if lengths is not None:
            return lengths
        ends = check_pairs(pairs, self.n_features_in_)
        return np.linalg.norm((ends[:, 0] - ends[:, 1]) @ host_array(self.components_).T, axis=1)

    def pair_score(self, pairs: Any) -> Any:
        """Similarity of each pair: minus its distance, so that larger is closer."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return the distance as a function ``metric(u, v, squared=False)``.

        It keeps no reference to the estimator and works wherever SciPy or
        scikit-learn take a callable metric.
        """
        check_is_fitted(self)
        components = host_array(self.components_).copy()

        def metric(u: Any, v: Any, squared: bool = False) -> float:
            difference = components @ (np.asarray(u) - np.asarray(v))
            square = float(difference @ difference)
            return square if squared else float(np.sqrt(square))

        return metric

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
