"""The metric a fit starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import null_space
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import check_random_state

from lnml.tensors import class_moments, is_tensor

NAMES = ("identity", "pca", "lda", "random")


def initial_components(
    init: Any, n_components: int, X: Any, codes: np.ndarray, random_state: Any
) -> np.ndarray:
    """Components (n_components x d) named or given by ``init``, in float64."""
    d = X.shape[1]
    if not isinstance(init, str):
        return _given(init, n_components, d)
    if init == "identity":
        return np.eye(n_components, d)
    if init == "random":
        rng = check_random_state(random_state)
        return rng.standard_normal((n_components, d)) / np.sqrt(d)
    if init == "pca":
        if is_tensor(X):
            found = _principal_axes(X)
        else:
            found = PCA(min(n_components, *X.shape), random_state=random_state).fit(X).components_
        return _completed(found, n_components)
    if init == "lda":
        _refuse_equal_rows(X, codes)
        if is_tensor(X):
            found = _discriminant_axes(X, codes)
        else:
            found = LinearDiscriminantAnalysis(solver="svd").fit(X, codes).scalings_.T
        return _completed(found, n_components)
    raise ValueError(f"init must be an array or one of {', '.join(NAMES)}; got {init!r}")


def _refuse_equal_rows(X: Any, codes: np.ndarray) -> None:
    """Say clearly that nothing varies within classes, which discriminant analysis divides by."""
    first_rows = X[np.unique(codes, return_index=True)[1]]
    if not (X != first_rows[codes]).any():
        raise ValueError(
            "init='lda' needs classes whose rows differ, and here all rows of each class are the "
            "same: use init='pca' or 'identity'"
        )


def _principal_axes(X: Any) -> np.ndarray:
    """Principal axes of a tensor, from its scatter: the rows stay on their device."""
    _, _, scatter = class_moments(X, np.zeros(X.shape[0], dtype=int))
    axes = np.linalg.eigh(scatter)[1][:, ::-1].T
    return np.asarray(axes[: min(X.shape)])


def _discriminant_axes(X: Any, codes: np.ndarray) -> np.ndarray:
    """Axes of linear discriminant analysis of a tensor, scaled as scikit-learn does."""
    counts, means, within = class_moments(X, codes)
    values, vectors = np.linalg.eigh(within / counts.sum())
    kept = values > np.finfo(float).eps * values.size * values.max()
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    spread = means - np.average(means, axis=0, weights=counts)
    _, lengths, axes = np.linalg.svd((np.sqrt(counts)[:, None] * spread) @ whitening)
    rank = np.count_nonzero(lengths > 1e-4 * lengths.max())
    return np.asarray(axes[:rank] @ whitening.T)


def _given(init: Any, n_components: int, d: int) -> np.ndarray:
    components = np.array(init, dtype=np.float64)
    if components.shape != (n_components, d):
        raise ValueError(
            f"init has shape {components.shape}, but n_components x features is "
            f"({n_components}, {d}): pass an array of that shape"
        )
    if not np.isfinite(components).all():
        raise ValueError("init contains NaN or inf: pass finite components")
    if not components.any():
        raise ValueError("init is all zero, a metric that no step can leave: pass other components")
    return components


def _completed(found: np.ndarray, n_components: int) -> np.ndarray:
    """Add orthogonal directions where a method gives fewer than n_components.

    A zero row of L has zero gradient and would never move.
    """
    found = np.asarray(found, dtype=np.float64)
    missing = n_components - found.shape[0]
    if missing <= 0:
        return found[:n_components]
    return np.vstack([found, null_space(found).T[:missing]])
