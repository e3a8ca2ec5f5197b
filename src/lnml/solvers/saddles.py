"""The way out of a saddle in the components of a metric."""

from __future__ import annotations

import numpy as np

ESCAPE_SHARE = 1e-3
# Share of the start's size below which a metric counts as lost.
COLLAPSED = 1e-6


def leave_saddle(
    components: np.ndarray,
    directions: np.ndarray,
    scale: float,
    room: np.ndarray | float = np.inf,
) -> np.ndarray:
    """Add a little to M = L^T L along directions it lacks.

    Where L is zero its gradient 2 L G is too, although G may say that more
    metric would help; the eigenvectors of G then point the way out. ``scale`` is
    the mean square of the start's entries, a size that means something where L
    has collapsed. A metric of low rank lacks most directions by intent, so it
    is helped only where it has collapsed. ``room`` limits what is added along
    each direction.
    """
    rank, dimension = components.shape
    metric = components.T @ components
    size = np.trace(metric) / components.size
    if rank < dimension and size > COLLAPSED * scale:
        return components
    amount = np.minimum(ESCAPE_SHARE * rank * max(size, scale), room)
    amount = np.broadcast_to(amount, directions.shape[1])
    missing = np.einsum("im,ij,jm->m", directions, metric, directions) < amount
    if not missing.any():
        return components
    added = directions[:, missing]
    values, vectors = np.linalg.eigh(metric + amount[missing] * added @ added.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # The symmetric root of a diagonal metric is diagonal.
    return root @ vectors.T if rank == dimension else root.T[::-1][:rank]
