"""Methods over all pairs of rows: MCML and MMC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lnml.certificates.arithmetic import LONG, TINY, blocks, gamma, power_of_two
from lnml.certificates.images import Images, block_distances
from lnml.certificates.matrices import Matrix, Scatter, cholesky, is_positive
from lnml.certificates.problem import Problem, Value, demand
from lnml.certificates.trace import trace_value, with_trace
from lnml.certificates.triplets import INDEFINITE

# Similar pairs may coincide: the objective without learning is the Euclidean one, times this.
SMALL = LONG(1e-6)
# Shares may sum to one up to this.
ROUNDED = LONG(1e-12)
# A root shorter than this share of the typical one is lengthened in a dual point.
LEAST_ROOT = LONG(1e-8)
NO_PULL = "similar pairs do not differ in a direction that is left"


class Softmax(NamedTuple):
    """Shares exp(-D_ij) / Z_i of all rows j in the neighbourhood of a row i.

    Attributes
    ----------
    points : Images
        Rows under the components of D.
    nearest, sums : ndarrays of shape (n,)
        Least D_ij of each row, and the sum over j of exp(nearest - D_ij).
    """

    points: Images
    nearest: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, points: Images) -> Softmax:
        """Go through all pairs once."""
        nearest, sums = (np.zeros(len(points.high), dtype=LONG) for _ in range(2))
        for part in blocks(len(nearest)):
            distances = without_self(block_distances(points, part)[0], part)
            nearest[part], sums[part] = distances.min(axis=1), softmax_sums(distances)
        return cls(points, nearest, sums)

    def both_ways(self, rows: slice, columns: slice) -> tuple[np.ndarray, np.ndarray]:
        """Shares of columns for the rows, and of the rows for columns: both (b, m)."""
        distances = block_distances(self.points, rows, columns)[0]
        # No row is nearer than the nearest one, but for the row itself.
        there, back = (
            np.exp(np.minimum(nearest - distances, 0)) / sums
            for nearest, sums in (
                (self.nearest[rows, None], self.sums[rows, None]),
                (self.nearest[columns], self.sums[columns]),
            )
        )
        return there, back


def without_self(distances: np.ndarray, rows: slice) -> np.ndarray:
    """Distances of some rows to all, with infinity in place of that to itself."""
    distances = distances.copy()
    distances[np.arange(len(distances)), np.arange(rows.start, rows.stop)] = np.inf
    return distances


def softmax_sums(distances: np.ndarray) -> np.ndarray:
    """Sum of exp(nearest - D) in every row."""
    return np.asarray(np.exp(distances.min(axis=1, keepdims=True) - distances).sum(axis=1))


def total(values: np.ndarray, chosen: np.ndarray) -> LONG:
    """Weighted sum of some entries, row by row: no sum has more terms than there are rows."""
    return LONG((values * chosen).sum(axis=1).sum())


def upper(n_rows: int) -> list[tuple[slice, slice]]:
    """Blocks of rows, each with all columns from its first row on."""
    return [(part, slice(part.start, n_rows)) for part in blocks(n_rows)]


def above(weights: np.ndarray) -> np.ndarray:
    """Weights of pairs (i, j), i < j, of such a block; zero for others."""
    return np.triu(weights, 1)


def mcml_objective(problem: Problem) -> Value:
    """Sum over rows of mean D_ij over targets + log sum_j exp(-D_ij) - log k_i, + t tr M."""
    n, L = problem.n_rows, problem.certificate.components
    points = problem.images(L)
    value = trace_value(problem, L)
    error, trivial = gamma(L.size + 4) * value, LONG(0)
    for part in blocks(n):
        distances, errors = block_distances(points, part)
        targets = problem.is_target(part)
        sizes = targets.sum(axis=1)
        counted = sizes > 0
        apart = without_self(distances, part)
        nearest, sums = apart.min(axis=1), softmax_sums(apart)
        shares, logs = np.exp(nearest[:, None] - apart) / sums[:, None], np.log(sums) - nearest
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

    G = t I + sum_i (1/k_i sum_targets v_ij v_ij^T - sum_j q_ij v_ij v_ij^T). Any distributions
    q_i will do, because log sum_j exp(-D_ij) >= H(q_i) - sum_j q_ij D_ij. These are mixtures of
    the softmax under the dual components; what their shares lack of one is uniform over the
    targets. How exact they are does not matter: what is computed is taken as the definition of
    q, up to the factor that makes its sum exactly one.
    """
    certificate, n = problem.certificate, problem.n_rows
    shares = certificate.duals["dual_shares"].astype(LONG)
    total_share = shares.sum()
    demand((shares >= 0).all() and total_share <= 1 + ROUNDED, "the dual shares are not a mixture")
    shares = shares / np.maximum(total_share, 1)
    rest = np.maximum(1 - total_share, 0)
    duals = [Softmax.of(problem.images(L)) for L in certificate.duals["dual_components"]]
    sizes = np.bincount(problem.targets[:, 0], minlength=n)
    # Rows without targets do not count.
    counts = (sizes > 0).astype(LONG)
    inverse = counts / np.maximum(sizes, 1)
    scatter = Scatter(problem.images(certificate.coordinates.T), 2 * n + 8)
    entropy, log_sizes = LONG(0), np.log(np.maximum(sizes, 1).astype(LONG)).sum()
    for rows, columns in upper(n):
        there, back = mixture(shares, duals, rows, columns)
        ideal = problem.is_target(rows, columns) * inverse[rows, None]
        ideal_back = problem.is_target(columns, rows).T * inverse[columns]
        there = above(there * counts[rows, None] + rest * ideal)
        back = above(back * counts[columns] + rest * ideal_back)
        ideal = above(ideal + ideal_back)
        scatter.add_upper(rows, ideal - there - back, ideal + there + back)
        for q in (there, back):
            entropy -= (q * np.log(np.where(q > 0, q, 1))).sum(axis=1).sum()
    demand(is_positive(with_trace(problem, scatter.total()), certificate.slack), INDEFINITE)
    # If q_i sums to s instead of 1, H(q_i / s) = H(q_i) / s + log s.
    return entropy - log_sizes - gamma(2 * n + 16) * (entropy + log_sizes + n)


def mixture(
    shares: np.ndarray, duals: list[Softmax], rows: slice, columns: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Mixtures of shares, both ways: shape (b, m)."""
    parts = [dual.both_ways(rows, columns) for dual in duals]
    there, back = (sum(s * p[way] for s, p in zip(shares, parts, strict=True)) for way in (0, 1))
    return np.asarray(there), np.asarray(back)


def mmc_objective(problem: Problem) -> Value:
    """Sum of D over target pairs + t tr M, over the squared sum of sqrt(D) of other classes."""
    value, error = _ratio(problem, problem.certificate.components)
    euclidean, _ = _ratio(problem, np.eye(problem.rows.shape[1]))
    return Value(value, error, SMALL * euclidean)


def _ratio(problem: Problem, components: np.ndarray) -> tuple[LONG, LONG]:
    """Return the ratio under components (r, d), and its error."""
    n = problem.n_rows
    points = problem.images(components)
    similar = similar_error = roots = roots_error = LONG(0)
    for rows, columns in upper(n):
        distances, errors = block_distances(points, rows, columns)
        targets, others = similar_pairs(problem, rows, columns), other_pairs(problem, rows, columns)
        similar += total(distances, targets)
        similar_error += total(errors, targets)
        lengths = np.sqrt(distances)
        roots += total(lengths, others)
        # The root moves by at most the root of the error, and by error / length.
        moved = np.minimum(np.sqrt(errors), errors / np.where(lengths > 0, lengths, TINY))
        roots_error += total(moved, others)
    similar += trace_value(problem, components)
    demand(roots > 2 * roots_error, "rows of different classes do not differ under the metric")
    value = similar / roots**2
    similar_error += gamma(3 * n + components.size + 8) * similar
    roots_error += gamma(3 * n + 8) * roots
    # 1 / (g - e)^2 <= (1 + 6 e / g) / g^2 for e <= g / 2.
    error = (similar_error / roots**2) * 4 + value * (6 * roots_error / roots + gamma(8))
    return value, error


def similar_pairs(problem: Problem, rows: slice, columns: slice) -> np.ndarray:
    """How often each pair i < j is a target pair, in one order or the other."""
    both = problem.is_target(rows, columns).astype(LONG) + problem.is_target(columns, rows).T
    return above(both)


def other_pairs(problem: Problem, rows: slice, columns: slice) -> np.ndarray:
    """Two for pairs i < j of different classes, since both orders count; zero for others."""
    return above(2 * (~problem.same_class(rows, columns)).astype(LONG))


def mmc_bound(problem: Problem) -> LONG:
    """Prove f(M) >= 1 / (4 A lambda) with lambda (S + t I) - sum_il w_il v_il v_il^T >= 0.

    For any w > 0 and t > 0, sqrt(D) <= t / (4 w) + w D / t. The sum over all pairs of different
    classes, with the best t, is (sum of roots)^2 <= 4 A <sum w v v^T, M>, where A = sum 1/(4 w).
    And <sum w v v^T, M> <= lambda <S + t I, M>. The weights are 1 / (2 sqrt(D)) under the dual
    components; any others would do, so their rounding does not matter.
    """
    certificate = problem.certificate
    points = problem.images(certificate.coordinates.T)
    duals = problem.images(certificate.duals["dual_components"])
    floor = dual_floor(problem, duals)
    pull, push = Scatter(points), Scatter(points, 1)
    A = LONG(0)
    for rows, columns in upper(problem.n_rows):
        roots = np.maximum(np.sqrt(block_distances(duals, rows, columns)[0]), floor)
        others = other_pairs(problem, rows, columns)
        A += total(roots / 2, others)
        pull.add_upper(rows, similar_pairs(problem, rows, columns))
        push.add_upper(rows, others / (2 * roots))
    A *= 1 + gamma(3 * problem.n_rows + 12)
    similar, dissimilar = with_trace(problem, pull.total()), push.total()
    diagonal = bool(certificate.parameters["diagonal"])
    if diagonal:
        demand(
            (np.count_nonzero(certificate.coordinates, axis=0) == 1).all(),
            "coordinates of a diagonal metric must be multiples of the axes",
        )
    return (1 - gamma(8)) / (4 * A * least_multiple(similar, dissimilar, diagonal))


def dual_floor(problem: Problem, duals: Images) -> LONG:
    """Return a length to take for shorter ones, so that weights stay finite: any will do."""
    squares = count = LONG(0)
    for rows, columns in upper(problem.n_rows):
        others = other_pairs(problem, rows, columns)
        squares += total(block_distances(duals, rows, columns)[0], others)
        count += others.sum()
    demand(squares > 0, "rows of different classes do not differ under the dual components")
    return LEAST_ROOT * np.sqrt(squares / count)


def least_multiple(similar: Matrix, dissimilar: Matrix, diagonal: bool) -> LONG:
    """Return lambda, as small as can be proved, such that lambda S - T is psd."""
    if diagonal:
        # A diagonal metric sees the diagonals alone.
        S, T = np.diag(similar.values), np.diag(dissimilar.values)
        S, T = S - np.diag(similar.errors), T + np.diag(dissimilar.errors)
        demand((S > 0).all(), NO_PULL)
        return LONG((T / S).max()) * (1 + gamma(8))
    demand((np.diag(similar.values) > 0).all(), NO_PULL)
    scale = 1 / power_of_two(np.sqrt(np.diag(similar.values)))
    similar, dissimilar = similar.scaled(scale), dissimilar.scaled(scale)
    lower = cholesky(similar.values)
    demand(lower is not None, NO_PULL)
    inverse = np.linalg.inv(np.asarray(lower, dtype=np.float64))
    matrix = inverse @ dissimilar.values.astype(np.float64) @ inverse.T
    demand(np.isfinite(matrix).all(), INDEFINITE)
    values = np.linalg.eigvalsh(matrix)
    # The eigenvalue is a guess in double. What counts is the proof in long double.
    for more in 2.0 ** np.arange(-51, -9):
        multiple = LONG(values[-1]) * (1 + LONG(more))
        if is_positive(similar.times(multiple).plus(dissimilar.times(LONG(-1)))):
            return multiple
    demand(False, INDEFINITE)
    return LONG(np.inf)
