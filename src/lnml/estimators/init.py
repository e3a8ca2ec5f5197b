"""The metric a fit starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import null_space

from lnml.core.chance import own_generator
from lnml.kernels.axes import discriminant_axes, principal_axes
from lnml.kernels.tensors import is_dask

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
        rng = own_generator(random_state)
        return rng.standard_normal((n_components, d)) / np.sqrt(d)
    if init == "pca":
        axes = principal_axes(X, codes, n_components, own_generator(random_state))
        return _completed(axes, n_components)
    if init == "lda":
        return _completed(_discriminants(X, codes), n_components)
    raise ValueError(f"init must be an array or one of {', '.join(NAMES)}; got {init!r}")


def _discriminants(X: Any, codes: np.ndarray) -> np.ndarray:
    """Return discriminant axes, or say that nothing varies within classes: they divide by it."""
    differ = True
    if not is_dask(X):
        first_rows = X[np.unique(codes, return_index=True)[1]]
        differ = bool((X != first_rows[codes]).any())
    axes = discriminant_axes(X, codes) if differ else np.empty((0, X.shape[1]))
    if not len(axes):
        raise ValueError(
            "init='lda' needs classes whose rows differ, and here all rows of each class are the "
            "same: use init='pca' or 'identity'"
        )
    return axes


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
