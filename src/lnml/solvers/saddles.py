"""The way out of a saddle in the components of a metric."""

from __future__ import annotations

import numpy as np

ESCAPE_SHARE = 1e-3
# Share of the start's size below which a metric counts as lost.
COLLAPSED = 1e-6
# A direction counts as lacking if this share of it lies where the metric is almost zero.
LEAST_LACKING = 0.5


def leave_saddle(
    components: np.ndarray,
    directions: np.ndarray,
    scale: float,
    room: np.ndarray | float = np.inf,
    share: float = ESCAPE_SHARE,
) -> np.ndarray:
    """Add a little to M = L^T L along directions it lacks.

    Where L is zero, its gradient 2 L G is zero, too, although G may say that more
    metric would help. The eigenvectors of G then show the way out. At a saddle M
    lacks these directions. Near a saddle M lacks only a part of them, and that part
    is added. ``scale`` is the mean square of the entries of the start; it replaces
    the size of L if L has collapsed. A metric of low rank lacks most directions on
    purpose, so it is changed only if it has collapsed. ``room`` limits what is added
    along each direction, as does ``share``, in units of the metric.
    """
    rank, dimension = components.shape
    metric = components.T @ components
    size = np.trace(metric) / components.size
    if rank < dimension and size > COLLAPSED * scale:
        return components
    most = share * rank * max(size, scale)
    amount = np.broadcast_to(np.minimum(most, room), directions.shape[1])
    directions, lacking = _lacking_part(metric, directions, most)
    along = np.einsum("im,ij,jm->m", directions, metric, directions)
    missing = (lacking > LEAST_LACKING) & (along < amount)
    if not missing.any():
        return components
    added = directions[:, missing]
    values, vectors = np.linalg.eigh(metric + amount[missing] * added @ added.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    # The symmetric root of a diagonal metric is diagonal.
    return root @ vectors.T if rank == dimension else root.T[::-1][:rank]


def _lacking_part(
    metric: np.ndarray, directions: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return unit parts of directions where a metric is below ``least``, and their shares."""
    values, vectors = np.linalg.eigh(metric)
    lacking = vectors[:, values < least]
    inside = lacking @ (lacking.T @ directions)
    share = np.einsum("im,im->m", inside, inside)
    return inside / np.sqrt(np.maximum(share, np.finfo(float).tiny)), share


def beside(components: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return components of the metric of ``moved`` that are the nearest to others (r x e).

    Components are unique up to a rotation; what is known about the curvature is known for one.
    """
    if moved is components:
        return moved
    left, _, right = np.linalg.svd(components @ moved.T)
    return left @ right @ moved
