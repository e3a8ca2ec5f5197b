"""What slopes prove that there is no room for: their sums over all triplets, at a metric."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Edge, Hinge, Streamed
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels
from lnml.objectives.large_proof import inside
from lnml.objectives.triplet_proof import FinishedTriplets, embedding_error
from lnml.proofs.all_triplets import Implied, implied_sums
from lnml.proofs.differences import Moment, entrywise, moment
from lnml.proofs.rounding import UNIT, gamma, sum_error
from lnml.proofs.slopes import SlopesAt


class SlopeSums(NamedTuple):
    """Sums over the slopes of all triplets at a metric.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        The metric, in the coordinates of the data.
    smoothing : float
        Slopes are min(max(h / smoothing, 0), 1).
    total : float
        Their sum, rounded down.
    push : Moment
        Sum of slope * (z_ij z_ij^T - z_il z_il^T).
    """

    components: np.ndarray
    smoothing: float
    total: float
    push: Moment

    def weighted(self, weight: float) -> float:
        """Weight times the sum of the slopes, rounded down."""
        return max(weight * self.total * (1.0 - 4.0 * UNIT), 0.0)

    def duals(self, share: float) -> dict[str, np.ndarray]:
        """Return a share of the slopes as a certificate describes them."""
        return {
            "dual_components": self.components,
            "smoothing": np.array([self.smoothing]),
            "share": np.array([share]),
        }


def slope_sums(
    kernels: Kernels, finished: FinishedTriplets, dual: SlopesAt, coordinates: np.ndarray
) -> SlopeSums:
    """Sum up the slopes of a dual point over all triplets of a finished fit.

    They are computed anew, from the rows in float64 and a metric in their coordinates. Any slopes
    between 0 and 1 prove something, so that it does not matter that these differ by rounding from
    those that the solver saw. But a check of the proof computes them once more: room is left for
    what rounding does to them, lest it fail (docs/certificates.md).

    Parameters
    ----------
    kernels : Kernels
        The device.
    finished : FinishedTriplets
        The fit.
    dual : SlopesAt
        Where the slopes are.
    coordinates : ndarray of shape (d, e)
        W.
    """
    components = finished.task.to_original(dual.components, len(dual.components))
    if finished.large:
        found = _by_device(kernels, finished, components, dual.smoothing, coordinates)
    else:
        found = implied_sums(finished.triplets, components, dual.smoothing, coordinates)
    return SlopeSums(components, dual.smoothing, found.total, found.push)


def pull_sum(kernels: Kernels, finished: FinishedTriplets, coordinates: np.ndarray) -> Moment:
    """Sum of z_ij z_ij^T over the target pairs, in coordinates W (d, e)."""
    if finished.large:
        edge = Edge(finished.task.targets)
        return inside(kernels.edge_scatter(finished.points, [edge]), coordinates)
    rows, i, j = finished.pairs
    return moment(rows, i, j, np.ones(i.size), coordinates)


def _by_device(
    kernels: Kernels,
    finished: FinishedTriplets,
    components: np.ndarray,
    smoothing: float,
    coordinates: np.ndarray,
) -> Implied:
    """Sum up slopes at components (r, d) by one pass over the rows, and a second one for room."""
    task, points = finished.task, kernels.mapped(finished.points, wide=True)
    embedding = kernels.embed(points, components)
    lengths = kernels.to_host(kernels.distances(embedding, task.targets))
    reach = 1.0 + float(np.max(lengths, initial=0.0))
    rounding = embedding_error(kernels.columns(points), points, components)
    each = finished.hinge_error(reach, rounding, components)
    # Two distances of a margin, each computed twice.
    off = min(4.0 * each / smoothing + 4.0 * UNIT, 1.0)
    terms = _pass(kernels, points, finished, components, smoothing)
    # Slopes of margins that are larger by this amount are one wherever a slope may move.
    more = smoothing + 4.0 * each
    shorter = components / np.sqrt(1.0 + more)
    near = _pass(kernels, points, finished, shorter, smoothing / (1.0 + more))
    assert terms.scatter is not None and near.scatter is not None
    weights = np.asarray(kernels.to_host(terms.target_slopes), dtype=np.float64)
    total = float(weights.sum()) - sum_error(weights)
    total = total * (1.0 - gamma(points.n_rows + 4)) - 1.01 * off * near.slope_sum
    push, room = inside(terms.scatter, coordinates), inside(near.scatter, coordinates)
    error = push.error + entrywise(gamma(points.n_rows + 4), push.squares)
    return Implied(
        max(total, 0.0), push._replace(error=error + entrywise(1.01 * off, room.squares))
    )


def _pass(
    kernels: Kernels,
    points: Points,
    finished: FinishedTriplets,
    components: np.ndarray,
    smoothing: float,
) -> Hinge:
    """Hinges of all triplets at components (r, d), with the scatter of their slopes."""
    working = Streamed.of(kernels.working_set(finished.task.targets, None))
    return kernels.hinge(kernels.embed(points, components), working, smoothing, moment="scatter")
