"""Methods with hinges over triplets (i, j, l): LMNN, and those with a Frobenius norm.

For slopes a in [0, 1], max(0, h) >= a h. So the hinges of a metric M are at least
sum_t a_t (1 + D_ij - D_il), which is linear in M.
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np

from lnml.certificates.arithmetic import BLOCK, EPS, LONG, blocks, gamma
from lnml.certificates.coordinates import without
from lnml.certificates.images import STEPS, Images, block_distances
from lnml.certificates.matrices import Matrix, Scatter, edge_scatter, is_positive
from lnml.certificates.problem import Problem, Value, are_distinct, demand
from lnml.certificates.trace import trace_value, with_trace

INDEFINITE = (
    "the dual matrix is not proved to be positive semidefinite: the dual variables do not prove "
    "the bound"
)


def hinge_objective(problem: Problem, pull: LONG, push: LONG) -> Value:
    """Sum over targets of pull * D_ij + push * sum over l of max(0, 1 + D_ij - D_il)."""
    points = problem.images(problem.certificate.components)
    targets = problem.targets_of()
    value = error = LONG(0)
    n_triplets, longest = 0, 0
    for part in blocks(problem.n_rows):
        distances, errors = block_distances(points, part)
        others = ~problem.same_class(part)
        for i, other, D, E in zip(
            range(part.start, part.stop), others, distances, errors, strict=True
        ):
            near, near_error = D[targets[i]], E[targets[i]]
            margins = 1 + near[:, None] - D[other]
            margin_errors = near_error[:, None] + E[other] + gamma(2) * (1 + near[:, None])
            value += pull * near.sum() + push * np.maximum(margins, 0).sum()
            # The hinge moves by no more than its margin, and not at all if that stays below 0.
            moved = np.where(margins + margin_errors > 0, margin_errors, 0)
            error += pull * near_error.sum() + push * moved.sum()
            n_triplets += margins.size
            longest = max(longest, margins.size)
    # All terms are positive: a sum is exact up to the number of its terms.
    error += gamma(longest + problem.n_rows + 4) * value
    return Value(value, error * (1 + gamma(longest)), push * n_triplets)


class Slopes(NamedTuple):
    """Slopes as weights of pairs: sum_t a_t (v_ij v_ij^T - v_il v_il^T) = sum_e w_e v_e v_e^T.

    Attributes
    ----------
    total : longdouble
        Sum of the slopes, not rounded up.
    edges : ndarray of int, shape (m, 2)
        Target pairs (i, j), then pairs (i, l).
    weights : ndarray of shape (m,)
        The sum of the slopes of a target pair; minus that of a pair (i, l).
    n_targets : int
        Number of target pairs.
    steps : int
        Operations that made a weight.
    """

    total: LONG
    edges: np.ndarray
    weights: np.ndarray
    n_targets: int
    steps: int


def checked_slopes(problem: Problem) -> Slopes:
    """Check that the slopes are in [0, 1], one for each of some different triplets."""
    duals, n = problem.certificate.duals, problem.n_rows
    (which, impostors), slopes = duals["triplets"].T, duals["slopes"]
    problem.check_rows("triplets", impostors)
    if which.size and (which.min() < 0 or which.max() >= len(problem.targets)):
        raise ValueError(f"triplets names a target that is not there: {len(problem.targets)} are")
    demand(((slopes >= 0) & (slopes <= 1)).all(), "a slope is not between 0 and 1")
    demand(are_distinct(which * n + impostors), "a triplet is named twice")
    anchors = problem.targets[which, 0]
    demand(
        (problem.codes[anchors] != problem.codes[impostors]).all(),
        "an impostor has the class of its row: these are not the labels of the fit",
    )
    near = np.zeros(len(problem.targets), dtype=LONG)
    np.add.at(near, which, slopes.astype(LONG))
    keys, place = np.unique(anchors * n + impostors, return_inverse=True)
    far = np.zeros(len(keys), dtype=LONG)
    np.add.at(far, place, slopes.astype(LONG))
    steps = max(
        int(np.bincount(which, minlength=1).max()), int(np.bincount(place, minlength=1).max())
    )
    return Slopes(
        # fsum rounds once, to double.
        total=LONG(fsum(slopes)) * (1 - LONG(np.finfo(np.float64).eps)),
        edges=np.vstack([problem.targets, np.column_stack([keys // n, keys % n])]),
        weights=np.concatenate([near, -far]),
        n_targets=len(near),
        steps=steps,
    )


def slope_scatter(problem: Problem, points: Images, pull: LONG, push: LONG) -> tuple[Matrix, LONG]:
    """Scatter of the target pairs times pull, plus that of the slopes times push; and their sum.

    The scatter of the slopes is sum_t a_t (z_ij z_ij^T - z_il z_il^T).
    """
    if "smoothing" in problem.certificate.duals:
        return implied_scatter(problem, points, pull, push)
    slopes = checked_slopes(problem)
    weights = push * slopes.weights
    if pull > 0:
        weights[: slopes.n_targets] += pull
    # Both are positive: a weight of a target pair does not cancel.
    return edge_scatter(points, slopes.edges, weights, slopes.steps + 4), slopes.total


def implied_scatter(
    problem: Problem, points: Images, pull: LONG, push: LONG
) -> tuple[Matrix, LONG]:
    """Return the same for slopes share * min(max(h / smoothing, 0), 1) at a metric.

    They are what is computed here, numbers between 0 and 1: their own rounding proves nothing
    wrong. Row by row, so that there are never many of them.
    """
    duals, n = problem.certificate.duals, problem.n_rows
    (smoothing,), (share,) = duals["smoothing"].astype(LONG), duals["share"].astype(LONG)
    demand(smoothing > 0, "the smoothing of the slopes is not positive")
    demand(0 <= share <= 1, "the share of the slopes is not between 0 and 1")
    at, targets = problem.images(duals["dual_components"]), problem.targets_of()
    scatter, total = Scatter(points, n + 8), LONG(0)
    for part in blocks(n):
        distances, _ = block_distances(at, part)
        others = ~problem.same_class(part)
        for i, other, D in zip(range(part.start, part.stop), others, distances, strict=True):
            if not targets[i].size:
                continue
            margins = 1 + D[targets[i], None] - D[other]
            slopes = share * np.clip(margins / smoothing, 0, 1)
            demand(((slopes >= 0) & (slopes <= 1)).all(), "a slope is not between 0 and 1")
            near, far = slopes.sum(axis=1), slopes.sum(axis=0)
            used = far > 0
            scatter.add(i, targets[i], pull + push * near)
            scatter.add(i, np.flatnonzero(other)[used], -push * far[used])
            total += near.sum()
    return scatter.total(), total * (1 - gamma(3 * n))


def lmnn_objective(problem: Problem) -> Value:
    """(1 - mu) (D_ij + t tr M) + mu * hinges, over the target pairs."""
    mu = LONG(problem.certificate.parameters["push_weight"])
    found, L = hinge_objective(problem, 1 - mu, mu), problem.certificate.components
    trace = (1 - mu) * trace_value(problem, L)
    error = found.error + gamma(L.size + 4) * trace + gamma(2) * found.value
    return Value(found.value + trace, error, found.trivial)


def lmnn_bound(problem: Problem) -> LONG:
    """Prove f(M) >= mu sum(a) + <G, M>, and that <G, M> is not negative.

    G = (1 - mu) (sum_ij v_ij v_ij^T + t I) + mu sum_t a_t (v_ij v_ij^T - v_il v_il^T).
    """
    certificate = problem.certificate
    mu = LONG(certificate.parameters["push_weight"])
    points = problem.images(certificate.coordinates.T)
    dual, total = slope_scatter(problem, points, 1 - mu, mu)
    dual = with_trace(problem, dual, 1 - mu)
    # With M = W A W^T, <G, M> = <W^T G W, A> >= -slack trace(A).
    demand(is_positive(dual, certificate.slack), INDEFINITE)
    return rounded_down(mu * total)


def frobenius_objective(problem: Problem) -> Value:
    """1/2 |M|_F^2 + C * hinges, where |M|_F = |L L^T|_F."""
    C = LONG(problem.certificate.parameters["C"])
    hinges = hinge_objective(problem, LONG(0), C)
    L = problem.certificate.components.astype(LONG)
    norm = ((L @ L.T) ** 2).sum() / 2
    # Squares of sums of d terms, then a sum of r^2 terms.
    size = ((np.abs(L) @ np.abs(L).T) ** 2).sum() / 2
    error = gamma(2 * L.shape[1] + L.shape[0] ** 2 + 4) * size
    return Value(hinges.value + norm, hinges.error + error, hinges.trivial)


def frobenius_bound(problem: Problem) -> LONG:
    """Prove f(M) >= C sum(a) - 1/2 |Y|^2 for the dominator Y.

    Let B = C sum_t a_t (v_il v_il^T - v_ij v_ij^T) and Y >= B. Then for every metric M
    f(M) >= C sum(a) + 1/2 |M|^2 - <B, M>   (slopes)
         >= C sum(a) + 1/2 |M|^2 - <Y, M>   (<Y - B, M> >= 0, since Y - B and M are both psd)
         >= C sum(a) - 1/2 |Y|^2            (1/2 |M - Y|^2 >= 0, for any symmetric Y).

    With directions U that are left out, let P be the projection on what is orthogonal to them.
    Rows do not differ along U, so PBP = B, and PYP has no larger norm than Y: it is enough that
    PYP >= B, which says that (PW)^T Y (PW) >= W^T B W.
    """
    certificate = problem.certificate
    C, W = LONG(certificate.parameters["C"]), certificate.coordinates
    Y = certificate.duals["dominator"]
    demand((Y == Y.T).all(), "the dominator is not symmetric")
    points = problem.images(W.T)
    minus_B, total = slope_scatter(problem, points, LONG(0), C)
    (W, off), Y = without(problem.left_out, W.astype(LONG)), Y.astype(LONG)
    above = W.T @ Y @ W
    sizes = np.abs(W).T @ np.abs(Y) @ np.abs(W)
    # (W + E)^T Y (W + E) differs by no more than |Y| times what the lengths of columns give.
    long = np.sqrt((W**2).sum(axis=0)) + off
    moved = np.sqrt((Y**2).sum()) * (np.outer(long, off) + np.outer(off, long))
    error = gamma(2 * len(Y) + 4) * sizes + (1 + gamma(4 * Y.size)) * moved
    inside = Matrix((above + above.T) / 2, error)
    demand(is_positive(inside.plus(minus_B), certificate.slack), INDEFINITE)
    norm = (Y**2).sum() / 2 * (1 + gamma(Y.size))
    return rounded_down(C * total) - norm * (1 + 2 * EPS)


def weighted_basis_bound(problem: Problem) -> LONG:
    """Prove f >= C sum(a) - 1/2 u^T Q u for M = A diag(w) A^T, Q = (A^T A)^2 entrywise.

    Let b_k = a_k^T B a_k with B as for frobenius, u >= 0 and Q u >= b. Then for all w >= 0
    <B, M> - 1/2 |M|^2 = b^T w - 1/2 w^T Q w
                      <= u^T Q w - 1/2 w^T Q w  (Q u >= b and w >= 0)
                      <= 1/2 u^T Q u            (1/2 (w - u)^T Q (w - u) >= 0, as Q is psd).
    """
    certificate = problem.certificate
    C = LONG(certificate.parameters["C"])
    A, u = certificate.duals["basis"], certificate.duals["weights"].astype(LONG)
    demand((u >= 0).all(), "a dual weight is negative")
    b, b_error, total = column_gains(problem, problem.images(A.T), C)
    gram, sizes = (part.T.astype(LONG) @ part.astype(LONG) for part in (A, np.abs(A)))
    steps = 2 * len(A) + len(u) + 8
    Qu, Qu_error = gram**2 @ u, gamma(steps) * (sizes**2 @ u)
    demand((Qu - Qu_error >= b + b_error).all(), "the dual weights do not dominate the hinges")
    norm = (u @ (Qu + Qu_error)) / 2 * (1 + gamma(len(u) + 4))
    return LONG(rounded_down(C * total) - norm)


def column_gains(problem: Problem, points: Images, C: LONG) -> tuple[np.ndarray, np.ndarray, LONG]:
    """b_k = C sum_t a_t ((a_k^T v_il)^2 - (a_k^T v_ij)^2), its error, and the sum of the slopes.

    ``points`` are the images of the rows along the columns a_k.
    """
    if "smoothing" in problem.certificate.duals:
        dual, total = implied_scatter(problem, points, LONG(0), C)
        return -np.diag(dual.values), np.diag(dual.errors), total
    slopes = checked_slopes(problem)
    b, squares = np.zeros((2, points.high.shape[1]), dtype=LONG)
    weights, parts = C * slopes.weights, blocks(len(slopes.edges))
    for part in parts:
        along = points.between(*slopes.edges[part].T) ** 2
        b -= weights[part] @ along
        squares += np.abs(weights[part]) @ along
    share = gamma(BLOCK + len(parts) + slopes.steps + 4 * STEPS)
    return b, share * points.sizes(squares, np.abs(weights).sum()) ** 2, slopes.total


def rounded_down(value: LONG) -> LONG:
    """Lower a positive number by more than the rounding of a few operations."""
    return value * (1 - 4 * EPS)
