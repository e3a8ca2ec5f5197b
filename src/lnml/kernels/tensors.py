"""Torch tensors that users pass in as data and get back as results.

Nothing here imports torch before a tensor was given.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

# Rows of a tensor that sums look at together.
ROWS_AT_A_TIME = 2**15


def is_tensor(values: Any) -> bool:
    """Whether values are a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def host_array(values: Any) -> Any:
    """Return a tensor as a NumPy array, anything else as it is."""
    return values.detach().cpu().numpy() if is_tensor(values) else values


def like(values: np.ndarray, given: Any) -> Any:
    """Return an array as what was given: a tensor on the same device, or as it is."""
    if not is_tensor(given):
        return values
    return sys.modules["torch"].as_tensor(values, device=given.device)


def check_tensor(values: Any, n_features: int | None = None) -> Any:
    """Return a float tensor of shape (n, d), without gradients, or say what is wrong with it."""
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


def class_moments(X: Any, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, means (c x d) and scatter within classes (d x d) of the rows of a tensor.

    In float64; of the rows themselves nothing leaves the device.
    """
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


def matmul(X: Any, components: Any) -> Any:
    """X @ components.T, a tensor where X is one, in the type of X."""
    if not is_tensor(X):
        return X @ host_array(components).astype(X.dtype, copy=False).T
    torch = sys.modules["torch"]
    return X @ torch.as_tensor(components, device=X.device, dtype=X.dtype).T
