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


def lmnn_optimum(X, y, P, push_weight):
    """Least LMNN objective over positive semidefinite M."""
    d = X.shape[1]
    outer = _outer_differences(X)
    M = cp.Variable((d, d), PSD=True)
    m = cp.vec(M, order="C")
    i, j, l = triplets(P, y)
    pull = (1.0 - push_weight) * (P[:, :, None] * outer).sum(axis=(0, 1)) @ m
    push = push_weight * cp.sum(cp.pos(1.0 + (outer[i, j] - outer[i, l]) @ m))
    return _solve(pull + push)


def mcml_optimum(X, P):
    """Least sum of KL divergences over positive semidefinite M."""
    n, d = X.shape
    outer = _outer_differences(X)
    M = cp.Variable((d, d), PSD=True)
    m = cp.vec(M, order="C")
    total = 0.0
    for i in np.flatnonzero(P.sum(axis=1)):
        k = P[i].sum()
        others = np.arange(n) != i
        total += (P[i] / k) @ outer[i] @ m + cp.log_sum_exp(-outer[i, others] @ m) - np.log(k)
    return _solve(total)


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
