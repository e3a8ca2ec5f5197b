"""The bound of a large LMNN fit: one pass over the rows, and a matrix of their columns."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Edge, EdgeScatter, MixedSlopes
from lnml.core.solution import Proof
from lnml.kernels.training import TrainingSet
from lnml.objectives.conditioning import for_proof
from lnml.objectives.trace import Ridge
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.proofs.differences import Moment, entrywise
from lnml.proofs.hinges import Bound, limited_bound
from lnml.proofs.rounding import UNIT, gamma, least_eigenvalue

# Shares of the slopes that are tried, one after the other.
TRIALS = 3
# A first share is this much below the one that the solver saw.
CAUTION = 1e-5


def prove_large(
    training: TrainingSet,
    finished: FinishedTriplets,
    slopes: MixedSlopes,
    push_weight: float,
    ridge: Ridge,
) -> Proof:
    """Return what slopes prove about LMNN.

    A share t of them is feasible if (1 - mu) S + t * push has no negative eigenvalue, S with
    its ridge. Only that matrix is computed, for a share that the solver found to be feasible.
    """
    kernels, points, targets = training.kernels, training.points, finished.task.targets
    conditioning = for_proof(kernels, points, finished.task.coordinates, Edge(targets))
    coordinates = conditioning.matrix
    pull_weight, pushed = 1.0 - push_weight, kernels.pattern(slopes.pairs)
    # No slope is negative, so that rounding is a share of their sum.
    total = slopes.total * (1.0 - gamma(slopes.slopes.shape[0] + 8))
    total = max(push_weight * total * (1.0 - 4.0 * UNIT), 0.0)
    share = min(finished.task.dual_bound / total, 1.0) * (1.0 - CAUTION) if total > 0.0 else 0.0
    best = Bound(0.0, 0.0)
    for _ in range(TRIALS):
        edges = [
            Edge(targets, pull_weight + share * push_weight * slopes.targets),
            Edge(pushed, slopes.impostors, -share * push_weight),
        ]
        found = inside(kernels.edge_scatter(points, edges), coordinates, slopes.most)
        found = found.plus(ridge.moment(coordinates).times(pull_weight))
        least = least_eigenvalue(found.matrix, found.error)
        if least > 0.0:
            best = Bound(share * total * (1.0 - 4.0 * UNIT), share)
            break
        best = max(best, limited_bound(found, share, total), key=lambda bound: bound.value)
        if least == 0.0:
            # A matrix of zeros: a check, with its own rounding, needs some slack.
            break
        share *= (1.0 - CAUTION) * pull_weight / (pull_weight - 2.0 * least)
    return Proof(
        finished.objective,
        0.0,
        best.value,
        method="lmnn",
        parameters={"push_weight": push_weight, **ridge.parameters},
        coordinates=coordinates,
        slack=best.slack,
        limit=best.limit,
        duals={
            "triplets": kernels.to_host(slopes.triplets),
            "slopes": kernels.to_host(best.share * slopes.slopes),
        },
    )


def inside(scatter: EdgeScatter, coordinates: np.ndarray, summed: int = 0) -> Moment:
    """Return a sum over pairs in coordinates W (d, e), with its error.

    A symmetric matrix with entries up to E lies below the diagonal of its row sums. No weight is
    the sum of more than ``summed`` others.
    """
    sizes = np.abs(coordinates)
    left, right = scatter.left @ sizes, scatter.right @ sizes
    moved = np.outer(left, right) + np.outer(right, left)
    moved += gamma(2 * len(sizes) + 12) * (sizes.T @ np.abs(scatter.matrix) @ sizes)
    matrix = coordinates.T @ scatter.matrix @ coordinates
    squares = (np.sqrt(scatter.squares) @ sizes) ** 2
    # Weights were sums and multiples of slopes.
    error = 1.01 * moved.sum(axis=1) + entrywise(gamma(16 + summed), squares)
    return Moment(matrix, squares, error)
