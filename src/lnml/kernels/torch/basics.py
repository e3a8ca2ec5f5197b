"""Small helpers for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

# Rows that one thread of a GPU adds up.
PIECE = 256
# Coordinates of a row that a program holds at once, at most.
MOST_COORDINATES = 256
# Arrays of at most so many bytes are sent to a GPU without waiting for its work; those of rows are
# larger, and sent once a fit.
MOST_PINNED = 2**20


def to_tensor(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Values on the device; NumPy arrays are not copied where the device is the CPU."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()
    if isinstance(values, np.ndarray):
        # Torch knows no negative strides.
        values = np.ascontiguousarray(values)
        if device.type == "cuda" and values.nbytes <= MOST_PINNED:
            return _sent(torch.as_tensor(values, dtype=dtype), device)
    return torch.as_tensor(values, device=device, dtype=dtype)


def _sent(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy values to a GPU; from memory that cannot be paged out, and so without waiting for it.

    What is sent is that copy in pinned memory: the values may change at once.
    """
    try:
        values = torch.empty_like(values, pin_memory=True).copy_(values)
    except RuntimeError:
        # The system gives no such memory: a plain copy waits.
        return values.to(device)
    return values.to(device, non_blocking=True)


def to_numpy(values: torch.Tensor) -> np.ndarray:
    """Values on the host."""
    return values.detach().cpu().numpy()


def float64_zeros(shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Zeros in float64 on the device of another tensor."""
    return torch.zeros(shape, dtype=torch.float64, device=like.device)


def centred(values: torch.Tensor) -> torch.Tensor:
    """Return values minus their column means."""
    return values - values.mean(dim=0, dtype=torch.float64).to(values.dtype)


def range_sums(values: torch.Tensor, start: np.ndarray) -> torch.Tensor:
    """Sum of the values (or rows of values) of each range ``start[c]:start[c + 1]``.

    Added in an order that is always the same, and in two levels: a GPU gives each column of a
    range to one thread.
    """
    counts = -(-np.diff(start) // PIECE)
    ends = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    first = np.repeat(start[:-1], counts) + PIECE * within
    for level in (np.append(first, start[-1]), ends):
        offsets = to_tensor(level.astype(np.int64), values.device)
        values = torch.segment_reduce(values, "sum", offsets=offsets, initial=0.0)
    return values


def squared_norms(values: torch.Tensor) -> torch.Tensor:
    """Squared length of every row."""
    return torch.linalg.vecdot(values, values)
