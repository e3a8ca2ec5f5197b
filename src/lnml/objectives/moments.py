"""The product of components with a moment matrix, by the cheaper of two ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lnml.kernels.protocol import Embedding


def cheaper_moment(
    kernel: Callable[[Any], tuple[np.ndarray, np.ndarray]],
    embedding: Embedding,
    components: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a kernel's row results and L (X^T Lap X), shape (r, d).

    The kernel takes values V and returns V^T Lap X. With V = X it needs one
    product of n x d values, with V = X L^T two of n x r (docs/mcml.md).
    """
    rank, dimension = components.shape
    if 2 * rank < dimension:
        return kernel(embedding.coordinates)
    rows, moment = kernel(embedding.points.data)
    return rows, components @ moment
