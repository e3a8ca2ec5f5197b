"""Data as users give them, NumPy arrays or torch tensors: the one place that tells them apart.

Nothing here imports torch before a tensor was given. A tensor stays where it is:
of its rows nothing leaves the device.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

# Rows of a tensor that sums look at together.
ROWS_AT_A_TIME = 2**15


def is_tensor(values: Any) -> bool:
    """Whether values are a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_dask(values: Any) -> bool:
    """Whether values are a Dask array; Dask is not imported to find out."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(values, array.Array)


def host_array(values: Any) -> Any:
    """Return a tensor as a NumPy array, anything else as it is."""
    return values.detach().cpu().numpy() if is_tensor(values) else values


def like(values: np.ndarray, given: Any) -> Any:
    """Return a tensor on the device of ``given`` if that is a tensor, else the array."""
    if not is_tensor(given):
        return values
    return sys.modules["torch"].as_tensor(values, device=given.device)


def checked_tensor(values: Any, n_features: int | None = None) -> Any | None:
    """Return a float tensor (n, d) without gradients, None for no tensor, or say what is wrong.

    Parameters
    ----------
    values : Any
        What the user gave.
    n_features : int, optional
        Columns that it must have.
    """
    if not is_tensor(values):
        return None
    values = values.detach()
    if values.ndim != 2:
        raise ValueError(f"X must be a tensor of shape (n, d), got {tuple(values.shape)}")
    if values.is_complex():
        raise ValueError("Complex data not supported: pass real and imaginary parts as columns")
    if n_features is not None and values.shape[1] != n_features:
        raise ValueError(
            f"X has {values.shape[1]} features, but the metric was learned on {n_features}"
        )
    if values.itemsize not in (4, 8) or not values.is_floating_point():
        values = values.double()
    if not bool(values.isfinite().all()):
        raise ValueError("X contains NaN or infinity: replace or leave out such rows")
    return values


def matmul(X: Any, components: Any) -> Any:
    """X @ components.T, a tensor where X is one, in the type of X."""
    if not is_tensor(X):
        return X @ host_array(components).astype(X.dtype, copy=False).T
    torch = sys.modules["torch"]
    return X @ torch.as_tensor(components, device=X.device, dtype=X.dtype).T


def lazy_matmul(X: Any, components: np.ndarray) -> Any:
    """X @ components.T for a Dask array, computed when it is asked for."""
    if X.ndim != 2 or X.shape[1] != components.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}, but the metric was learned on {components.shape[1]} features"
        )
    whole = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    kind: Any = np.float32 if X.dtype == np.float32 else np.float64
    right = np.asarray(components, dtype=kind).T

    def mapped(rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows, dtype=kind) @ right

    return whole.map_blocks(
        mapped,
        dtype=kind,
        chunks=(whole.chunks[0], (components.shape[0],)),
        meta=np.empty((0, 0), kind),
    )


def tensor_pair_lengths(pairs: Any, components: Any, n_features: int) -> Any | None:
    """Learned distance of each pair of a tensor (m, 2, d), or None for no tensor."""
    if not is_tensor(pairs):
        return None
    ends = (checked_tensor(pairs[:, end], n_features) for end in range(2))
    first, second = (matmul(end, components) for end in ends)
    return (first - second).norm(dim=1)


def principal_axes(X: Any, n_axes: int, random_state: Any) -> np.ndarray:
    """Return the leading principal axes as rows; fewer if the data have fewer."""
    if not is_tensor(X):
        return PCA(min(n_axes, *X.shape), random_state=random_state).fit(X).components_
    _, _, scatter = _class_moments(X, np.zeros(X.shape[0], dtype=int))
    axes = np.linalg.eigh(scatter)[1][:, ::-1].T
    return np.asarray(axes[: min(X.shape)])


def discriminant_axes(X: Any, codes: np.ndarray) -> np.ndarray:
    """Axes of linear discriminant analysis as rows, scaled as scikit-learn does."""
    if not is_tensor(X):
        return LinearDiscriminantAnalysis(solver="svd").fit(X, codes).scalings_.T
    counts, means, within = _class_moments(X, codes)
    values, vectors = np.linalg.eigh(within / counts.sum())
    kept = values > np.finfo(float).eps * values.size * values.max()
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    spread = means - np.average(means, axis=0, weights=counts)
    _, lengths, axes = np.linalg.svd((np.sqrt(counts)[:, None] * spread) @ whitening)
    rank = np.count_nonzero(lengths > 1e-4 * lengths.max())
    return np.asarray(axes[:rank] @ whitening.T)


def _class_moments(X: Any, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, means (c x d) and scatter within classes (d x d) of a tensor, in float64."""
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
    return host_array(counts), host_array(means), host_array(scatter)
