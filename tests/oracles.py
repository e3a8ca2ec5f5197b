"""Dense, slow versions of what the library computes, written from the formulas of the paper.

Nothing here imports the library. Matrices are n x n, pairs (i, j) are entries, and
P[i, j] = 1 says that j is a target neighbour of i.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.special import logsumexp, softmax


def squared_distances(X, components=None):
    """D_ij = |L x_i - L x_j|^2 in float64, from differences."""
    X = np.asarray(X, dtype=np.float64)
    differences = X[:, None] - X[None]
    if components is not None:
        differences = differences @ np.asarray(components, dtype=np.float64).T
    return (differences**2).sum(axis=-1)


def same_class(y):
    """Mask of the pairs of two different rows of one class."""
    y = np.asarray(y)
    return (y[:, None] == y) & ~np.eye(y.size, dtype=bool)


def other_class(y):
    """Mask of the pairs of rows of different class."""
    y = np.asarray(y)
    return y[:, None] != y


def brute_force_nearest(D, allowed, k):
    """The k allowed columns of each row by distance, then index; -1 and inf fill up."""
    distances = np.full((D.shape[0], k), np.inf)
    indices = np.full((D.shape[0], k), -1)
    for i, row in enumerate(D):
        columns = np.flatnonzero(allowed[i])
        best = columns[np.lexsort((columns, row[columns]))][:k]
        indices[i, : best.size] = best
        distances[i, : best.size] = row[best]
    return distances, indices


def nearest_targets(D, y, k):
    """P of the k nearest rows of the same class."""
    P = np.zeros(D.shape)
    _, indices = brute_force_nearest(D, same_class(y), k)
    for i, row in enumerate(indices):
        P[i, row[row >= 0]] = 1.0
    return P


def triplets(P, y):
    """Arrays i, j, l: all target pairs (i, j) with all rows l of another class."""
    impostor = other_class(y)
    found = [
        (i, j, l) for i, j in zip(*np.nonzero(P), strict=True) for l in np.flatnonzero(impostor[i])
    ]
    return np.array(found, dtype=int).reshape(-1, 3).T


def lmnn_pair_costs(D, y, push_weight):
    """F_ij = (1 - mu) D_ij + mu sum over l of [1 + D_ij - D_il]+, for all pairs i, j."""
    impostor = other_class(y)
    F = (1.0 - push_weight) * D
    for i in range(D.shape[0]):
        hinge = np.maximum(0.0, 1.0 + D[i][:, None] - D[i, impostor[i]])
        F[i] += push_weight * hinge.sum(axis=1)
    return F


def lmnn_objective(X, y, P, components, push_weight):
    """Sum of the costs of the target pairs."""
    D = squared_distances(X, components)
    return float((P * lmnn_pair_costs(D, y, push_weight)).sum())


def pull_scatter(X, P):
    """S = the sum of P_ij v_ij v_ij^T."""
    differences = X[:, None] - X[None]
    return np.einsum("ij,ijp,ijq->pq", P, differences, differences)


def smoothed_hinge(h, gamma, previous):
    """Max over a in [0, 1] of a h - gamma / 2 (a - previous)^2, and where it is attained."""
    if gamma == 0.0:
        return np.maximum(h, 0.0), (h > 0.0).astype(float)
    a = np.clip(previous + h / gamma, 0.0, 1.0)
    return a * h - 0.5 * gamma * (a - previous) ** 2, a


def log_normalizers(D):
    """Log of the sum over j != i of exp(-D_ij)."""
    return logsumexp(-D - np.where(np.eye(D.shape[0]), np.inf, 0.0), axis=1)


def neighbor_probabilities(D):
    """p(j | i), proportional to exp(-D_ij), zero at j = i."""
    return softmax(-D - np.where(np.eye(D.shape[0]), np.inf, 0.0), axis=1)


def mcml_pair_costs(D, k):
    """F_ij = (D_ij + log Z_i - log k) / k for rows with k targets each."""
    return (D + log_normalizers(D)[:, None] - np.log(k)) / k


def mcml_objective(X, P, components):
    """Sum over rows of KL(p0 | p), p0 uniform over the row's targets."""
    D = squared_distances(X, components)
    log_p = -D - log_normalizers(D)[:, None]
    total = 0.0
    for i in np.flatnonzero(P.sum(axis=1)):
        p0 = P[i] / P[i].sum()
        chosen = p0 > 0
        total += float((p0[chosen] * (np.log(p0[chosen]) - log_p[i, chosen])).sum())
    return total


def itml_objective(M, vectors, similar, bounds, gamma):
    """LogDet divergence from the identity, plus gamma times that of violated distances."""
    D = np.einsum("ip,pq,iq->i", vectors, M, vectors)
    ratio = np.where(similar, np.maximum(D / bounds, 1.0), np.minimum(D / bounds, 1.0))
    prior = np.trace(M) - np.linalg.slogdet(M)[1] - M.shape[0]
    return float(prior + gamma * (ratio - np.log(ratio) - 1.0).sum())


def itml_dual(multipliers, vectors, similar, bounds, gamma):
    """The Lagrange dual at multipliers >= 0, a lower bound of the objective."""
    signed = np.where(similar, multipliers, -multipliers)
    inverse = np.eye(vectors.shape[1]) + (signed[:, None] * vectors).T @ vectors
    sign, log_det = np.linalg.slogdet(inverse)
    assert sign > 0 and np.linalg.eigvalsh(inverse)[0] > 0
    return float(log_det + gamma * np.log(1.0 - signed * bounds / gamma).sum())


def root_sum(D, y):
    """Sum of sqrt(D_il) over all pairs of different class, both orders."""
    return float(np.sqrt(D)[other_class(y)].sum())


def mmc_ratio(X, y, P, components):
    """Sum of D over the target pairs, at the multiple of the metric with a root sum of one."""
    D = squared_distances(X, components)
    return float((P * D).sum()) / root_sum(D, y) ** 2


def laplacian(W):
    """Combinatorial Laplacian of the graph with weights W + W^T."""
    W = W + W.T
    return np.diag(W.sum(axis=1)) - W


def assignment_limits(y, k_min, k_av, k_max):
    """Floor and cap of every row and the common budget, where small classes give what they can."""
    available = same_class(y).sum(axis=1)
    floor, cap = np.minimum(k_min, available), np.minimum(k_max, available)
    return floor, cap, int(np.minimum(k_av, available).sum())


def least_assignment_cost(costs, y, k_min, k_av, k_max):
    """Optimum of the paper's linear programme over 0 <= P <= 1, by HiGHS."""
    costs = np.asarray(costs, dtype=float)
    rows, columns = np.nonzero(same_class(y))
    floor, cap, budget = assignment_limits(y, k_min, k_av, k_max)
    if budget == 0:
        return 0.0
    one_row = csr_matrix(
        (np.ones(rows.size), (rows, np.arange(rows.size))), shape=(len(y), rows.size)
    )
    result = linprog(
        costs[rows, columns],
        A_ub=csr_matrix(np.vstack([one_row.toarray(), -one_row.toarray()])),
        b_ub=np.concatenate([cap, -floor]),
        A_eq=np.ones((1, rows.size)),
        b_eq=[budget],
        bounds=(0.0, 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return float(result.fun)


def central_differences(function, x, step=1e-5):
    """Gradient of a scalar function of a matrix."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[index] = step
        gradient[index] = (function(x + moved) - function(x - moved)) / (2.0 * step)
    return gradient
