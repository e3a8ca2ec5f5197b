"""What slopes prove that there is no room for: their sums over all triplets, at a metric."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.core.pairs import EdgeScatter, Streamed
from lnml.kernels.protocol import Kernels
from lnml.objectives.large_proof import inside
from lnml.objectives.triplet_proof import FinishedTriplets, embedding_error
from lnml.proofs.differences import Moment, entrywise
from lnml.proofs.rounding import UNIT, gamma, sum_error
from lnml.proofs.slopes import SlopesAt

# Room for a check, which computes the slopes again. It is an estimate, and no proof rests on it:
# any slopes between 0 and 1 prove a bound, and a check bounds the rounding of its own. Rounding
# moves slopes between 0 and 1, which are about half on average, in either of two computations: a
# share of 2 * 2 of their sum. If a check needs more, it refuses a bound that holds.
CHECKED = 4.0


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
    scatter : EdgeScatter
        Sum of slope * (v_ij v_ij^T - v_il v_il^T).
    off : float
        How far rounding may move a slope.
    summed : int
        Most slopes that the weight of a pair is the sum of.
    """

    components: np.ndarray
    smoothing: float
    total: float
    scatter: EdgeScatter
    off: float
    summed: int

    def weighted(self, weight: float) -> float:
        """Weight times the sum of the slopes, rounded down."""
        return max(weight * self.total * (1.0 - 4.0 * UNIT), 0.0)

    def moment(self, coordinates: np.ndarray) -> Moment:
        """Return the scatter in coordinates W (d, e)."""
        found = inside(self.scatter, coordinates)
        share = gamma(self.summed + 4) + CHECKED * self.off
        return found._replace(error=found.error + entrywise(share, found.squares))

    def duals(self, share: float) -> dict[str, np.ndarray]:
        """Return a share of the slopes as a certificate describes them."""
        return {
            "dual_components": self.components,
            "smoothing": np.array([self.smoothing]),
            "share": np.array([share]),
        }


def slope_sums(kernels: Kernels, finished: FinishedTriplets, dual: SlopesAt) -> SlopeSums:
    """Sum up the slopes of a dual point over all triplets of a finished fit.

    They are computed anew, from the rows in float64 and a metric in their coordinates. Any slopes
    between 0 and 1 prove something, so that it does not matter that these differ by rounding from
    those that the solver saw. But a check of the proof computes them once more: room is left for
    what rounding does to them, lest it fail.
    """
    task, points = finished.task, kernels.mapped(finished.points, wide=True)
    components = task.to_original(dual.components, len(dual.components))
    embedding = kernels.embed(points, components)
    working = Streamed.of(kernels.working_set(task.targets, None))
    terms = kernels.hinge(embedding, working, dual.smoothing, moment="scatter")
    assert terms.scatter is not None
    weights = np.asarray(kernels.to_host(terms.target_slopes), dtype=np.float64)
    total = float(weights.sum()) - sum_error(weights)
    total *= 1.0 - gamma(points.n_rows + 4)
    columns = kernels.columns(points)
    lengths = kernels.to_host(kernels.distances(embedding, task.targets))
    reach = 1.0 + float(np.max(lengths, initial=0.0))
    rounding = embedding_error(columns, points, components)
    off = 2.0 * finished.hinge_error(reach, rounding, components) / dual.smoothing + 4.0 * UNIT
    return SlopeSums(components, dual.smoothing, max(total, 0.0), terms.scatter, off, points.n_rows)
