"""ITML: trace, log-determinant and slack of bounds on distances.

The dual value is log det A + gamma sum_i log s_i, with the tightness s_i and
A = I + gamma sum_i (1 - s_i) v_i v_i^T / b_i. At the optimum A is the inverse of M = L^T L, so
L A L^T is close to the identity and its Cholesky factor loses no digits. Its determinant is that
of A M.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import (
    EPS,
    LONG,
    Images,
    cholesky,
    cholesky_error,
    edge_scatter,
    gamma,
    images,
)
from lnml.certificates.problem import Problem, Value, demand


def itml_objective(problem: Problem) -> Value:
    """Return tr M - log det M - d + gamma * sum over pairs not kept of phi(p / b)."""
    _check_pairs(problem)
    L = problem.certificate.components.astype(LONG)
    d = L.shape[1]
    log_det, log_det_error = log_determinant(problem.certificate.components)
    trace = (L**2).sum()
    slack, slack_error = _slack(problem, _lengths(problem, L))
    value = trace - 2 * log_det - d + slack
    error = 2 * log_det_error + slack_error
    error += gamma(L.size + 8) * (trace + 2 * np.abs(log_det) + d + slack)
    trivial, _ = _slack(problem, _lengths(problem, np.eye(d, dtype=LONG)))
    return Value(value, error, trivial)


def itml_bound(problem: Problem) -> LONG:
    """Prove f >= log det A + gamma sum_i log s_i.

    The Lagrangian of the bounds has this minimum if s_i <= 1 for similar pairs, s_i >= 1 for
    others and A is positive definite (docs/itml.md).
    """
    duals, components = problem.certificate.duals, problem.certificate.components
    tightness, similar = duals["tightness"].astype(LONG), duals["similar"]
    demand(
        ((tightness > 0) & np.where(similar, tightness <= 1, tightness >= 1)).all(),
        "a tightness is on the wrong side of 1",
    )
    weight = LONG(problem.certificate.parameters["gamma"])
    weights = weight * (1 - tightness) / duals["bounds"].astype(LONG)
    pairs = edge_scatter(problem.rows, duals["pairs"], weights, components.T, weight_steps=4)
    L = components.astype(LONG)
    values = L @ L.T + pairs.values
    # The matrix |L| |L|^T has at most this norm.
    error = pairs.error + gamma(len(L) + 4) * ((L**2).sum() + np.abs(np.trace(values)))
    lower = cholesky(values)
    demand(lower is not None, "the dual matrix is not proved to be positive definite")
    product = _least_log_determinant(np.asarray(lower), error + cholesky_error(values))
    log_det, log_det_error = log_determinant(components)
    logs = np.log(tightness)
    error = 2 * log_det_error + gamma(len(logs) + 8) * (
        np.abs(product) + 2 * np.abs(log_det) + weight * np.abs(logs).sum()
    )
    return product - 2 * log_det + weight * logs.sum() - error


def log_determinant(matrix: np.ndarray) -> tuple[LONG, LONG]:
    """Return log |det| of a square matrix that is exact, and its error, by Gaussian elimination."""
    upper = matrix.astype(LONG)
    size = len(upper)
    lower = np.zeros((size, size), dtype=LONG)
    for k in range(size):
        best = k + int(np.argmax(np.abs(upper[k:, k])))
        for array in (upper, lower):
            array[[k, best]] = array[[best, k]]
        demand(upper[k, k] != 0, "the metric has no determinant: it is singular")
        lower[k, k] = 1
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :, k:] -= np.outer(lower[k + 1 :, k], upper[k, k:])
        upper[k + 1 :, k] = 0
    # What was factorised is the matrix plus E with |E| <= gamma |lower| |upper|. The logarithm
    # moves by at most 2 sqrt(size) |matrix^-1 E|, if that norm is at most 1/2.
    moved = gamma(size + 2) * np.linalg.norm(
        np.abs(lower).astype(np.float64) @ np.abs(upper).astype(np.float64)
    )
    share = 2 * moved * _inverse_norm(matrix)
    demand(share <= 0.5, "the determinant of the metric cannot be computed: it is almost singular")
    logs = np.log(np.abs(np.diag(upper)))
    error = 2 * np.sqrt(LONG(size)) * share + gamma(size + 4) * np.abs(logs).sum()
    return LONG(logs.sum()), LONG(error)


def _least_log_determinant(lower: np.ndarray, error: LONG) -> LONG:
    """Return a lower bound of log det B for all B that differ from R R^T by at most the error.

    B >= R R^T - e I, so det B >= det(R R^T) prod_i (1 - e m_i) with the eigenvalues m_i of the
    inverse of R R^T. Their sum is |R^-1|^2, and log(1 - x) >= -2 x for x <= 1/2.
    """
    lost = error * _inverse_norm(lower.astype(np.float64)) ** 2 * (1 + LONG(1e-9))
    demand(lost <= 0.5, "the dual matrix is not proved to be positive definite")
    logs = np.log(np.diag(lower))
    return 2 * (logs.sum() - lost - gamma(len(logs) + 4) * np.abs(logs).sum())


def _inverse_norm(matrix: np.ndarray) -> LONG:
    """Return a bound of the Frobenius norm of the inverse.

    If |I - K B| <= 1/2 for a guess K, the inverse is (I - (I - K B))^-1 K: its norm is at most
    2 |K|. All of this is in double, to which B may have been rounded; that is allowed for.
    """
    try:
        guess = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        guess = np.full(matrix.shape, np.inf)
    size = np.linalg.norm(guess)
    rest = np.linalg.norm(np.eye(len(matrix)) - guess @ matrix)
    rounding = 2 * (len(matrix) + 2) * np.finfo(np.float64).eps * size * np.linalg.norm(matrix)
    demand(rest + rounding <= 0.5, "a matrix of the proof is almost singular")
    return LONG(2 * size)


def _check_pairs(problem: Problem) -> None:
    duals = problem.certificate.duals
    problem.check_rows("pairs", duals["pairs"])
    if problem.certificate.components.shape[0] != problem.certificate.components.shape[1]:
        raise ValueError("components of itml must be square: a metric of low rank has no bound")
    demand((duals["bounds"] > 0).all(), "a bound on a distance is not positive")
    first, second = duals["pairs"].T
    demand(
        ((problem.codes[first] == problem.codes[second]) == duals["similar"]).all(),
        "a similar pair has two classes, or another pair has one: these are not the labels of "
        "the fit",
    )


def _lengths(problem: Problem, L: np.ndarray) -> Images:
    first, second = problem.certificate.duals["pairs"].T
    return images(problem.rows[first] - problem.rows[second], L.T)


def _slack(problem: Problem, mapped: Images) -> tuple[LONG, LONG]:
    """Gamma times the sum over pairs that are not kept of x - log x - 1, x = p / b."""
    duals = problem.certificate.duals
    weight = LONG(problem.certificate.parameters["gamma"])
    bounds = duals["bounds"].astype(LONG)
    ratios = (mapped.values**2).sum(axis=1) / bounds
    errors = mapped.error(mapped.values.shape[1] + 4) * mapped.reach**2 / bounds
    demand((ratios > 2 * errors).all(), "the points of a pair do not differ under the metric")
    violated = np.where(duals["similar"], ratios > 1, ratios < 1)
    costs = np.where(violated, ratios - np.log(ratios) - 1, 0)
    # The derivative of x - log x - 1 is 1 - 1/x, and x is exact up to half of it.
    moved = errors * (1 + 2 / ratios) + 4 * EPS * (1 + ratios + np.abs(np.log(ratios)))
    near = violated | (np.abs(ratios - 1) <= errors)
    error = weight * np.where(near, moved, 0).sum() + gamma(len(costs) + 4) * weight * costs.sum()
    return weight * costs.sum(), error * 2
