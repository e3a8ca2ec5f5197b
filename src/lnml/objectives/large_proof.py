"""The bound of a large LMNN fit: one pass over the rows, and a matrix of their columns."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Edge, EdgeScatter, Pattern
from lnml.core.solution import Proof
from lnml.kernels.training import TrainingSet
from lnml.objectives.conditioning import for_proof
from lnml.objectives.trace import Ridge
from lnml.objectives.triplet_proof import FinishedTriplets
from lnml.proofs.differences import Moment
from lnml.proofs.hinges import Bound, limited_bound, slope_total
from lnml.proofs.rounding import UNIT, gamma, least_eigenvalue
from lnml.proofs.slopes import Slopes

# Shares of the slopes that are tried, one after the other.
TRIALS = 3
# A first share is this much below the one that the solver saw.
CAUTION = 1e-5


def prove_large(
    training: TrainingSet,
    finished: FinishedTriplets,
    slopes: Slopes,
    push_weight: float,
    ridge: Ridge,
) -> Proof:
    """Return what slopes prove about LMNN.

    A share t of them is feasible if (1 - mu) S + t * push has no negative eigenvalue, S with
    its ridge. Only that matrix is computed, for a share that the solver found to be feasible.
    """
    kernels, points = training.kernels, training.points
    conditioning = for_proof(
        kernels, points, finished.task.coordinates, Edge(finished.task.targets)
    )
    coordinates = conditioning.matrix
    pull_weight = 1.0 - push_weight
    total = slope_total(slopes, push_weight)
    share = min(finished.task.dual_bound / total, 1.0) * (1.0 - CAUTION) if total > 0.0 else 0.0
    own = slopes.per_target(finished.pairs.i.size)
    rows, impostors, summed = slopes.impostor_pairs(finished.pairs.i)
    counts = np.bincount(rows, minlength=points.n_rows)
    pushed = Pattern(np.concatenate([[0], np.cumsum(counts)]), impostors.astype(np.int32))
    best = Bound(0.0, 0.0)
    for _ in range(TRIALS):
        weights = pull_weight + share * push_weight * own
        edges = [
            Edge(finished.task.targets, weights),
            Edge(kernels.pattern(pushed), summed, -share * push_weight),
        ]
        found = inside(kernels.edge_scatter(points, edges), coordinates)
        found = found.plus(ridge.moment(coordinates).times(pull_weight))
        least = least_eigenvalue(found.matrix, found.error)
        if least >= 0.0:
            best = Bound(share * total * (1.0 - 4.0 * UNIT), share)
            break
        best = max(best, limited_bound(found, share, total), key=lambda bound: bound.value)
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
        duals=slopes.scaled(best.share).duals(),
    )


def inside(scatter: EdgeScatter, coordinates: np.ndarray) -> Moment:
    """Return a sum over pairs in coordinates W (d, e), with its error.

    A symmetric matrix with entries up to E lies below the diagonal of its row sums.
    """
    sizes = np.abs(coordinates)
    left, right = scatter.left @ sizes, scatter.right @ sizes
    moved = np.outer(left, right) + np.outer(right, left)
    moved += gamma(2 * len(sizes) + 12) * (sizes.T @ np.abs(scatter.matrix) @ sizes)
    matrix = coordinates.T @ scatter.matrix @ coordinates
    squares = (np.sqrt(scatter.squares) @ sizes) ** 2
    # Weights were sums and multiples of slopes.
    error = 1.01 * moved.sum(axis=1) + gamma(16) * squares
    return Moment(matrix, squares, error)
