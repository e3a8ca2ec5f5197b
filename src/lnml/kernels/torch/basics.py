"""Small helpers for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def to_tensor(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Values on the device; NumPy arrays are not copied where the device is the CPU."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()
    if isinstance(values, np.ndarray):
        # Torch knows no negative strides.
        values = np.ascontiguousarray(values)
    return torch.as_tensor(values, device=device, dtype=dtype)


def to_numpy(values: torch.Tensor) -> np.ndarray:
    """Values on the host."""
    return values.detach().cpu().numpy()


def float64_zeros(shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Zeros in float64 on the device of another tensor."""
    return torch.zeros(shape, dtype=torch.float64, device=like.device)


def centred(values: torch.Tensor) -> torch.Tensor:
    """Return values minus their column means."""
    return values - values.mean(dim=0, dtype=torch.float64).to(values.dtype)


def squared_norms(values: torch.Tensor) -> torch.Tensor:
    """Squared length of every row."""
    return torch.linalg.vecdot(values, values)
