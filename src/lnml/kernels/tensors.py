"""Data as users give them, NumPy arrays or torch tensors: the one place that tells them apart.

Nothing here imports torch before a tensor was given. A tensor stays where it is:
of its rows nothing leaves the device.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(values: Any) -> bool:
    """Whether values are a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_dask(values: Any) -> bool:
    """Whether values are a Dask array, DataFrame or Series; Dask is not imported to find out."""
    array = sys.modules.get("dask.array")
    return (array is not None and isinstance(values, array.Array)) or is_frame(values)


def is_frame(values: Any) -> bool:
    """Whether values are a Dask DataFrame or Series; neither Dask nor pandas is imported."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(values, (frames.DataFrame, frames.Series))


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
    if len(values) and not _ends_are_finite(values):
        raise ValueError("X contains NaN or infinity: replace or leave out such rows")
    return values


def _ends_are_finite(values: Any) -> bool:
    """Whether all numbers of a tensor (n, d) are finite: what is not shows in the ends of a column.

    A GPU has to load the programs of ``isfinite`` for nothing else.
    """
    return bool(np.isfinite([host_array(end) for end in (values.amax(0), values.amin(0))]).all())


def matmul(X: Any, components: Any) -> Any:
    """X @ components.T, a tensor where X is one, in the type of X."""
    if not is_tensor(X):
        return X @ host_array(components).astype(X.dtype, copy=False).T
    torch = sys.modules["torch"]
    return X @ torch.as_tensor(components, device=X.device, dtype=X.dtype).T


def tensor_pair_lengths(pairs: Any, components: Any, n_features: int) -> Any | None:
    """Learned distance of each pair of a tensor (m, 2, d), or None for no tensor."""
    if not is_tensor(pairs):
        return None
    ends = (checked_tensor(pairs[:, end], n_features) for end in range(2))
    first, second = (matmul(end, components) for end in ends)
    return (first - second).norm(dim=1)
