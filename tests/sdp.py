"""Optima of the metric-learning problems by a conic solver, straight from the formulas."""

import cvxpy as cp
import numpy as np
from oracles import triplets


def _outer_differences(X):
    """V[i, j] = vec(v_ij v_ij^T), so that D_ij = V[i, j] @ vec(M)."""
    v = X[:, None] - X[None]
    return np.einsum("ijp,ijq->ijpq", v, v).reshape(*v.shape[:2], -1)


def _solve(objective, constraints=()):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    value = problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL, problem.status
    return float(value)


def lmnn_optimum(X, y, P, push_weight, trace=0.0):
    """Least LMNN objective over positive semidefinite M; ``trace`` is a factor of tr M."""
    return lmnn_solution(X, y, P, push_weight, trace)[0]


def lmnn_solution(X, y, P, push_weight, trace=0.0):
    """The same, and M."""
    d = X.shape[1]
    outer = _outer_differences(X)
    M = cp.Variable((d, d), PSD=True)
    m = cp.vec(M, order="C")
    i, j, l = triplets(P, y)
    pull = (1.0 - push_weight) * (P[:, :, None] * outer).sum(axis=(0, 1)) @ m
    push = push_weight * cp.sum(cp.pos(1.0 + (outer[i, j] - outer[i, l]) @ m))
    return _solve(pull + push + trace * cp.trace(M)), M.value


def itml_optimum(vectors, similar, bounds, gamma):
    """Least LogDet divergence from the identity, plus gamma times that of the slack bounds."""
    n_constraints, d = vectors.shape
    outer = np.einsum("ip,iq->ipq", vectors, vectors).reshape(n_constraints, -1)
    M = cp.Variable((d, d), PSD=True)
    xi = cp.Variable(n_constraints)
    relative = cp.multiply(1.0 / bounds, xi)
    prior = cp.trace(M) - cp.log_det(M) - d
    slack = cp.sum(relative - cp.log(relative) - 1.0)
    excess = outer @ cp.vec(M, order="C") - xi
    return _solve(prior + gamma * slack, [cp.multiply(np.where(similar, 1.0, -1.0), excess) <= 0])


def mmc_optimum(S, differences, diagonal=False):
    """Least <S, M> such that the lengths of the differences (m x d) sum to one."""
    return mmc_solution(S, differences, diagonal)[0]


def mmc_solution(S, differences, diagonal=False):
    """The same, and M with <S, M> = 1.

    Solved as the largest sum of lengths with <S, M> = 1, which is scaled well.
    """
    d = S.shape[0]
    if diagonal:
        weights = cp.Variable(d, nonneg=True)
        M = cp.diag(weights)
        similar, squares = np.diag(S) @ weights, differences**2 @ weights
    else:
        M = cp.Variable((d, d), PSD=True)
        outer = np.einsum("mp,mq->mpq", differences, differences).reshape(-1, d * d)
        similar, squares = cp.sum(cp.multiply(S, M)), outer @ cp.vec(M, order="C")
    return _solve(-cp.sum(cp.sqrt(squares)), [similar <= 1.0]) ** -2, M.value


def mcml_optimum(X, P, trace=0.0):
    """Least sum of KL divergences over positive semidefinite M; ``trace`` is a factor of tr M."""
    return mcml_solution(X, P, trace)[0]


def mcml_solution(X, P, trace=0.0):
    """The same, and M."""
    n, d = X.shape
    outer = _outer_differences(X)
    M = cp.Variable((d, d), PSD=True)
    m = cp.vec(M, order="C")
    total = 0.0
    for i in np.flatnonzero(P.sum(axis=1)):
        k = P[i].sum()
        others = np.arange(n) != i
        total += (P[i] / k) @ outer[i] @ m + cp.log_sum_exp(-outer[i, others] @ m) - np.log(k)
    return _solve(total + trace * cp.trace(M)), M.value


def frobenius_optimum(near, far, C, basis=None):
    """Least 1/2 |M|_F^2 + C * hinges over M >= 0, or over A W A^T with diagonal W >= 0.

    ``near`` and ``far`` (m x d) are the differences of the pairs that each triplet compares.
    """
    if basis is None:
        d = near.shape[1]
        M = cp.Variable((d, d), PSD=True)
        outer = (np.einsum("tp,tq->tpq", v, v).reshape(len(v), -1) for v in (far, near))
        gain = np.subtract(*outer) @ cp.vec(M, order="C")
        norm = cp.sum_squares(M)
    else:
        w = cp.Variable(basis.shape[1], nonneg=True)
        gain = ((far @ basis) ** 2 - (near @ basis) ** 2) @ w
        norm = cp.sum_squares(np.einsum("pk,qk->pqk", basis, basis).reshape(-1, w.size) @ w)
    return _solve(0.5 * norm + C * cp.sum(cp.pos(1.0 - gain)))


def frobenius_solution(near, far, C, columns):
    """Optimum and W of M = A W A^T with full W >= 0 and the columns of A (d x e).

    ``near`` and ``far`` (m x e) are differences in these columns.
    """
    W = cp.Variable((columns.shape[1],) * 2, PSD=True)
    outer = (np.einsum("tp,tq->tpq", v, v).reshape(len(v), -1) for v in (far, near))
    gain = np.subtract(*outer) @ cp.vec(W, order="C")
    norm = cp.sum_squares(columns @ W @ columns.T)
    return _solve(0.5 * norm + C * cp.sum(cp.pos(1.0 - gain))), W.value
