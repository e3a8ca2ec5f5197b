"""Directions that rows spread along: where fits may start, for rows of all kinds.

Tensors and Dask arrays stay where they are: what leaves the device or the workers is a sum.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lnml.kernels.tensors import host_array, is_dask, is_tensor

# Rows of a tensor that sums look at together.
ROWS_AT_A_TIME = 2**15
# Rows that differ from their mean by so many roundings of it are equal.
ROUNDINGS = 4.0


class Moments(NamedTuple):
    """What rows look like, class by class, in float64.

    Attributes
    ----------
    counts : ndarray of shape (c,)
        Rows of each class.
    means : ndarray of shape (c, d)
        Their means.
    scatter : ndarray of shape (d, d)
        Sum over all rows of u u^T, u = a row minus the mean of its class.
    """

    counts: np.ndarray
    means: np.ndarray
    scatter: np.ndarray


def principal_axes(X: Any, codes: np.ndarray, n_axes: int, random_state: Any) -> np.ndarray:
    """Return the leading principal axes as rows; fewer if the data have fewer."""
    most = min(codes.size, X.shape[1])
    if not (is_tensor(X) or is_dask(X)):
        return PCA(min(n_axes, most), random_state=random_state).fit(X).components_
    scatter = _moments(X, np.zeros_like(codes)).scatter
    return np.asarray(np.linalg.eigh(scatter)[1][:, ::-1].T[:most])


def discriminant_axes(X: Any, codes: np.ndarray) -> np.ndarray:
    """Axes of linear discriminant analysis as rows, scaled as scikit-learn does.

    There are none if the rows of each class are the same.
    """
    if not (is_tensor(X) or is_dask(X)):
        return LinearDiscriminantAnalysis(solver="svd").fit(X, codes).scalings_.T
    counts, means, within = _moments(X, codes)
    values, vectors = np.linalg.eigh(within / counts.sum())
    if values.max() <= (ROUNDINGS * np.finfo(float).eps * np.abs(means).max()) ** 2:
        return np.empty((0, values.size))
    kept = values > np.finfo(float).eps * values.size * values.max()
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    spread = means - np.average(means, axis=0, weights=counts)
    _, lengths, axes = np.linalg.svd((np.sqrt(counts)[:, None] * spread) @ whitening)
    rank = np.count_nonzero(lengths > 1e-4 * lengths.max())
    return np.asarray(axes[:rank] @ whitening.T)


def _moments(X: Any, codes: np.ndarray) -> Moments:
    """Moments of a tensor or Dask array (n, d) whose rows have some classes (n,)."""
    return _dask_moments(X, codes) if is_dask(X) else _tensor_moments(X, codes)


def _tensor_moments(X: Any, codes: np.ndarray) -> Moments:
    torch = sys.modules["torch"]
    labels = torch.as_tensor(codes, device=X.device).long()
    counts = torch.bincount(labels).double()
    parts = list(zip(X.split(ROWS_AT_A_TIME), labels.split(ROWS_AT_A_TIME), strict=True))
    members = torch.eye(counts.shape[0], dtype=torch.float64, device=X.device)
    means = sum(members[part_labels].T @ part.double() for part, part_labels in parts)
    means = means / counts[:, None]
    scatter = torch.zeros((X.shape[1], X.shape[1]), dtype=torch.float64, device=X.device)
    for part, part_labels in parts:
        centred = part.double() - means[part_labels]
        scatter += centred.T @ centred
    return Moments(host_array(counts), host_array(means), host_array(scatter))


def _dask_moments(X: Any, codes: np.ndarray) -> Moments:
    # Needs distributed, which is an extra.
    from lnml.kernels.cluster.given import Given

    return Moments(*Given(X, codes.size).class_moments(codes))
