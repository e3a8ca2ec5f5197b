"""Methods over all pairs of rows: MCML and MMC."""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import (
    LONG,
    Images,
    Matrix,
    PairScatter,
    block_distances,
    blocks,
    cholesky,
    gamma,
    is_positive,
)
from lnml.certificates.problem import Problem, Value, demand
from lnml.certificates.triplets import INDEFINITE

# Similar pairs may coincide: the objective without learning is the Euclidean one, times this.
SMALL = LONG(1e-6)


def softmax(distances: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """exp(-D) of some rows over all others, as shares (b, n); and the log of its sum (b,)."""
    distances = distances.copy()
    distances[np.arange(len(distances)), np.arange(rows.start, rows.stop)] = np.inf
    nearest = distances.min(axis=1)
    shares = np.exp(nearest[:, None] - distances)
    sums = shares.sum(axis=1)
    return shares / sums[:, None], np.log(sums) - nearest


def total(values: np.ndarray, chosen: np.ndarray) -> LONG:
    """Sum of some entries, row by row: the longest sum has as many terms as there are rows."""
    return LONG(np.where(chosen, values, 0).sum(axis=1).sum())


def mcml_objective(problem: Problem) -> Value:
    """Sum over rows of mean D_ij over targets + log sum_j exp(-D_ij) - log k_i."""
    n = problem.n_rows
    points = problem.images(problem.certificate.components)
    value = error = trivial = LONG(0)
    for part in blocks(n):
        distances, errors = block_distances(points, part)
        targets = problem.is_target(part)
        sizes = targets.sum(axis=1)
        counted = sizes > 0
        shares, logs = softmax(distances, part)
        ideal = targets[counted] / sizes[counted, None].astype(LONG)
        pulls = (ideal * distances[counted]).sum(axis=1)
        log_sizes = np.log(sizes[counted].astype(LONG))
        value += (pulls + logs[counted] - log_sizes).sum()
        # Moving each D_ij by delta_ij <= 1/2 moves log sum exp(-D_ij) by at most
        # 2 sum_j p_ij delta_ij; whatever they are, by at most their maximum.
        delta = errors[counted] + gamma(4) * (1 + distances[counted])
        averaged = 2 * (shares[counted] * delta).sum(axis=1)
        moved = np.where(delta.max(axis=1) <= 0.5, averaged, delta.max(axis=1))
        error += (moved + (ideal * delta).sum(axis=1)).sum()
        error += gamma(2 * n + 8) * (2 + pulls + np.abs(logs[counted]) + log_sizes).sum()
        trivial += (np.log(LONG(n - 1)) - log_sizes).sum()
    return Value(value, error, trivial)


def mcml_bound(problem: Problem) -> LONG:
    """Prove f(M) >= sum_i (H(q_i) - log k_i) + <G, M>, and that <G, M> is not negative.

    G = sum_i (1/k_i sum_targets v_ij v_ij^T - sum_j q_ij v_ij v_ij^T). Any distributions q_i
    will do, because log sum_j exp(-D_ij) >= H(q_i) - sum_j q_ij D_ij. These are mixtures of the
    softmax under the dual components. How exact they are does not matter: what is computed is
    taken as the definition of q, up to the factor that makes its sum exactly one.
    """
    certificate, n = problem.certificate, problem.n_rows
    shares = certificate.duals["dual_shares"].astype(LONG)
    demand((shares >= 0).all() and shares.sum() > 0, "the dual shares are not a mixture")
    duals = [problem.images(L) for L in certificate.duals["dual_components"]]
    points = problem.images(certificate.coordinates.T)
    pull, push = PairScatter(points, 2), PairScatter(points, 2 * n + 4)
    entropy = log_sizes = LONG(0)
    for part in blocks(n):
        targets = problem.is_target(part)
        sizes = targets.sum(axis=1)
        q = mixture(shares, duals, part)
        q[sizes == 0] = 0
        pull.add(part, targets / np.maximum(sizes, 1)[:, None].astype(LONG))
        push.add(part, q)
        entropy -= (q * np.log(np.where(q > 0, q, 1))).sum(axis=1).sum()
        log_sizes += np.log(np.maximum(sizes, 1).astype(LONG)).sum()
    ideal, expected = pull.total(), push.total()
    dual = Matrix(ideal.values - expected.values, ideal.error + expected.error)
    demand(is_positive(dual, certificate.slack), INDEFINITE)
    # If q_i sums to s instead of 1, H(q_i / s) = H(q_i) / s + log s.
    return entropy - log_sizes - gamma(2 * n + 8) * (entropy + log_sizes + n)


def mixture(shares: np.ndarray, duals: list[Images], rows: slice) -> np.ndarray:
    """Distributions of some rows over all others: shape (b, n)."""
    parts = (softmax(block_distances(points, rows)[0], rows)[0] for points in duals)
    mixed = sum(share * part for share, part in zip(shares, parts, strict=True))
    return np.asarray(mixed / np.sum(mixed, axis=1, keepdims=True))


def mmc_objective(problem: Problem) -> Value:
    """Sum of D over target pairs, over the squared sum of sqrt(D) over different classes."""
    value, error = _ratio(problem, problem.certificate.components)
    euclidean, _ = _ratio(problem, np.eye(problem.rows.shape[1]))
    return Value(value, error, SMALL * euclidean)


def _ratio(problem: Problem, components: np.ndarray) -> tuple[LONG, LONG]:
    """Return the ratio under components (r, d), and its error."""
    n = problem.n_rows
    points = problem.images(components)
    similar = similar_error = roots = roots_error = LONG(0)
    for part in blocks(n):
        distances, errors = block_distances(points, part)
        targets, others = problem.is_target(part), ~problem.same_class(part)
        similar += total(distances, targets)
        similar_error += total(errors, targets)
        roots += total(np.sqrt(distances), others)
        # A length is exact up to the rounding of the two images.
        reach = points.reach[part, None] + points.reach
        roots_error += points.error(points.values.shape[1] + 4) * total(reach, others)
    demand(roots > 2 * roots_error, "rows of different classes do not differ under the metric")
    value = similar / roots**2
    similar_error += gamma(3 * n + 8) * similar
    roots_error += gamma(3 * n + 8) * roots
    # 1 / (g - e)^2 <= (1 + 6 e / g) / g^2 for e <= g / 2.
    error = (similar_error / roots**2) * 4 + value * (6 * roots_error / roots + gamma(8))
    return value, error


def mmc_bound(problem: Problem) -> LONG:
    """Prove f(M) >= 1 / (4 A lambda) with lambda S - sum_il w_il v_il v_il^T >= 0.

    For any w > 0 and t > 0, sqrt(D) <= t / (4 w) + w D / t. The sum over all pairs of different
    classes, with the best t, is (sum of roots)^2 <= 4 A <sum w v v^T, M>, where A = sum 1/(4 w).
    And <sum w v v^T, M> <= lambda <S, M>. The weights are 1 / (2 sqrt(D)) under the dual
    components; any others would do, so their rounding does not matter.
    """
    certificate = problem.certificate
    points = problem.images(certificate.coordinates.T)
    duals = problem.images(certificate.duals["dual_components"])
    floor = dual_floor(problem, duals)
    pull, push = PairScatter(points), PairScatter(points)
    A = LONG(0)
    for part in blocks(problem.n_rows):
        roots = np.sqrt(block_distances(duals, part)[0])
        others = ~problem.same_class(part)
        weights = np.where(others, 1 / (2 * np.maximum(roots, floor)), 0)
        A += total(np.maximum(roots, floor) / 2, others)
        pull.add(part, problem.is_target(part).astype(LONG))
        push.add(part, weights)
    A *= 1 + gamma(3 * problem.n_rows + 12)
    similar, dissimilar = pull.total(), push.total()
    diagonal = bool(certificate.parameters["diagonal"])
    if diagonal:
        demand(
            (np.count_nonzero(certificate.coordinates, axis=0) == 1).all(),
            "coordinates of a diagonal metric must be multiples of the axes",
        )
    return (1 - gamma(8)) / (4 * A * least_multiple(similar, dissimilar, diagonal))


def dual_floor(problem: Problem, duals: Images) -> LONG:
    """Return a length to take for shorter ones, so that weights stay finite: any will do."""
    lengths, count = LONG(0), 0
    for part in blocks(problem.n_rows):
        others = ~problem.same_class(part)
        lengths += total(np.sqrt(block_distances(duals, part)[0]), others)
        count += int(others.sum())
    demand(lengths > 0, "rows of different classes do not differ under the dual components")
    return LONG(1e-8) * lengths / count


def least_multiple(similar: Matrix, dissimilar: Matrix, diagonal: bool) -> LONG:
    """Return lambda, as small as can be proved, such that lambda S - T is psd."""
    if diagonal:
        # A diagonal metric sees the diagonals alone.
        S, T = np.diag(similar.values), np.diag(dissimilar.values)
        demand((S > similar.error).all(), "similar pairs do not differ in a direction that is left")
        return LONG(((T + dissimilar.error) / (S - similar.error)).max()) * (1 + gamma(8))
    lower = cholesky(similar.values)
    demand(lower is not None, "similar pairs do not differ in a direction that is left")
    inverse = np.linalg.inv(np.asarray(lower, dtype=np.float64))
    values = np.linalg.eigvalsh(inverse @ dissimilar.values.astype(np.float64) @ inverse.T)
    # The eigenvalue is a guess in double. What counts is the proof in long double.
    for more in 2.0 ** np.arange(-51, -9):
        multiple = LONG(values[-1]) * (1 + LONG(more))
        error = multiple * similar.error + dissimilar.error
        error += gamma(4) * (multiple * np.trace(similar.values) + np.trace(dissimilar.values))
        if is_positive(Matrix(multiple * similar.values - dissimilar.values, error)):
            return multiple
    demand(False, INDEFINITE)
    return LONG(np.inf)
