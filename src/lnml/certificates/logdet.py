"""ITML: trace, log-determinant and slack of bounds on distances.

The dual value is log det A + gamma sum_i log s_i, with the tightness s_i and
A = I + gamma sum_i (1 - s_i) v_i v_i^T / b_i. The certificate holds a factor F such that
F A F^T is close to the identity: its Cholesky factor loses no digits.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import EPS, LONG, gamma
from lnml.certificates.images import pair_distances
from lnml.certificates.matrices import (
    Determinant,
    Matrix,
    edge_scatter,
    least_log_determinant,
    log_determinant,
)
from lnml.certificates.problem import NotProvedError, Problem, Value, demand


def itml_objective(problem: Problem) -> Value:
    """Return tr M - log det M - d + gamma * sum over pairs not kept of phi(p / b)."""
    _check_pairs(problem)
    L = problem.certificate.components.astype(LONG)
    d = L.shape[1]
    log_det, log_det_error = _determinant(L)
    trace = (L**2).sum()
    slack, slack_error = _slack(problem, L)
    value = trace - 2 * log_det - d + slack
    error = 2 * log_det_error + slack_error
    error += gamma(L.size + 8) * (trace + 2 * np.abs(log_det) + d + slack)
    gamma_, pairs = problem.certificate.parameters["gamma"], problem.certificate.duals["pairs"]
    return Value(value, error, LONG(gamma_) * len(pairs))


def itml_bound(problem: Problem) -> LONG:
    """Prove f >= log det A + gamma sum_i log s_i.

    The Lagrangian of the bounds has this minimum if s_i <= 1 for similar pairs, s_i >= 1 for
    others and A is positive definite (docs/itml.md).
    """
    duals = problem.certificate.duals
    tightness, similar = duals["tightness"].astype(LONG), duals["similar"]
    demand(
        ((tightness > 0) & np.where(similar, tightness <= 1, tightness >= 1)).all(),
        "a tightness is on the wrong side of 1",
    )
    weight = LONG(problem.certificate.parameters["gamma"])
    weights = weight * (1 - tightness) / duals["bounds"].astype(LONG)
    F = duals["factor"].astype(LONG)
    pairs = edge_scatter(problem.images(F), duals["pairs"], weights, 4)
    square = Matrix(F @ F.T, gamma(len(F) + 4) * (np.abs(F) @ np.abs(F).T))
    product = least_log_determinant(square.plus(pairs))
    if product is None:
        raise NotProvedError("the dual matrix is not proved to be positive definite")
    # log det A = log det F A F^T - 2 log |det F|.
    log_det, log_det_error = _determinant(F)
    logs = np.log(tightness)
    error = 2 * log_det_error + gamma(len(logs) + 8) * (
        np.abs(product) + 2 * np.abs(log_det) + weight * np.abs(logs).sum()
    )
    return product - 2 * log_det + weight * logs.sum() - error


def _determinant(matrix: np.ndarray) -> Determinant:
    """Return log |det|, or say why there is none."""
    found = log_determinant(matrix)
    if found is None:
        raise NotProvedError("the metric or a dual factor has no determinant: it is singular")
    demand(np.isfinite(found.error), "a determinant cannot be computed: almost singular")
    return found


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


def _slack(problem: Problem, L: np.ndarray) -> tuple[LONG, LONG]:
    """Gamma times the sum over pairs that are not kept of x - log x - 1, x = p / b."""
    duals = problem.certificate.duals
    weight = LONG(problem.certificate.parameters["gamma"])
    bounds = duals["bounds"].astype(LONG)
    lengths, errors = pair_distances(problem.images(L), *duals["pairs"].T)
    ratios, errors = lengths / bounds, errors / bounds + gamma(4) * lengths / bounds
    differ = duals["similar"] | (ratios > 2 * errors)
    demand(differ.all(), "the points of a pair do not differ under the metric")
    # A similar pair may coincide: it is kept whatever rounding does.
    ratios = np.maximum(ratios, np.where(duals["similar"], LONG(0.5), 0))
    violated = np.where(duals["similar"], ratios > 1, ratios < 1)
    costs = np.where(violated, ratios - np.log(ratios) - 1, 0)
    # The derivative of x - log x - 1 is 1 - 1/x, and x is exact up to half of it.
    moved = errors * (1 + 2 / ratios) + 4 * EPS * (1 + ratios + np.abs(np.log(ratios)))
    near = violated | (np.abs(ratios - 1) <= errors)
    error = weight * np.where(near, moved, 0).sum() + gamma(len(costs) + 4) * weight * costs.sum()
    return weight * costs.sum(), error * 2
