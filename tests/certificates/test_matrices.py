"""Sums, signs and determinants of matrices, against rational numbers."""

from fractions import Fraction

import numpy as np
import oracles
from hypothesis import given
from hypothesis import strategies as st

from lnml.certificates.arithmetic import LONG
from lnml.certificates.images import block_distances, images
from lnml.certificates.matrices import Matrix, Scatter, edge_scatter, is_positive, log_determinant


def exact_pivots(matrix):
    """Pivots of Gaussian elimination in rational numbers."""
    rows = [[Fraction(int(value)) for value in row] for row in matrix]
    pivots = []
    for k in range(len(rows)):
        pivots.append(rows[k][k])
        if pivots[-1] == 0:
            return pivots
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[:] = [a - factor * b for a, b in zip(row, rows[k], strict=True)]
    return pivots


@given(seed=st.integers(0, 1000), size=st.integers(1, 6))
def test_only_positive_matrices_are_called_so(seed, size):
    """Integers close to a singular matrix: B B^T of low rank, and -1, 0 or 1 on the diagonal."""
    rng = np.random.default_rng(seed)
    B = rng.integers(-(2**14), 2**14, (size, max(size - 1, 1)))
    matrix = B @ B.T + np.diag(rng.integers(-1, 2, size))
    # Units do not matter: rows and columns times powers of two.
    scale = LONG(2) ** rng.integers(-30, 30, size)
    exact = Matrix(matrix.astype(LONG) * scale[:, None] * scale, np.zeros((size, size), LONG))
    proved = is_positive(exact)
    if proved:
        assert min(exact_pivots(matrix)) > 0


def test_an_error_or_a_slack_moves_the_border():
    identity = np.eye(3, dtype=LONG)
    nothing = np.zeros((3, 3), dtype=LONG)
    assert is_positive(Matrix(identity, LONG(0.99) * identity))
    assert not is_positive(Matrix(identity, LONG(1.01) * identity))
    assert is_positive(Matrix(-identity, nothing), slack=1.01)
    assert not is_positive(Matrix(-identity, nothing), slack=0.99)
    # Errors of 0.34 in all entries of a 3 x 3 matrix have a norm of 1.02.
    assert is_positive(Matrix(identity, np.full((3, 3), LONG(0.33))))
    assert not is_positive(Matrix(identity, np.full((3, 3), LONG(0.34))))


def exact_rows(rows):
    return [[Fraction(float(value)) for value in row] for row in rows]


def nasty(rng, n=7, d=3):
    """Rows with a huge value that all share, one outlier, and a column that is nearly another."""
    rows = rng.standard_normal((n, d))
    rows[:, 0] += 1e9
    rows[:, 1] = rows[:, 0] + 1e-6 * rows[:, 1]
    rows[rng.integers(n), 2] = 1e12
    return rows


@given(seed=st.integers(0, 1000))
def test_distances_and_scatter_are_within_their_errors(seed):
    """In rational numbers; coordinates of which some cancel what rows share."""
    rng = np.random.default_rng(seed)
    rows, W = nasty(rng), rng.standard_normal((3, 2)) * 10.0 ** rng.integers(-6, 7, 2)
    W[1, 0] = -W[0, 0]
    points = images(rows, W)
    x, w = exact_rows(rows), exact_rows(W)
    z = [[sum(a * w[c][k] for c, a in enumerate(row)) for k in range(2)] for row in x]
    edges = np.array([(i, j) for i in range(7) for j in range(i)])
    weights = rng.standard_normal(len(edges))
    v = [[a - b for a, b in zip(z[i], z[j], strict=True)] for i, j in edges]
    distances, errors = block_distances(points, slice(0, 7))
    for (i, j), each in zip(edges, v, strict=True):
        off = Fraction(*distances[i, j].as_integer_ratio()) - sum(a * a for a in each)
        assert abs(off) <= Fraction(*errors[i, j].as_integer_ratio())
        assert errors[i, j] <= 1e-17 * distances[i, j]
    found = edge_scatter(points, edges, weights.astype(LONG))
    for k in range(2):
        for l in range(2):
            total = sum(Fraction(a) * e[k] * e[l] for a, e in zip(weights, v, strict=True))
            off = Fraction(*found.values[k, l].as_integer_ratio()) - total
            assert abs(off) <= Fraction(*found.errors[k, l].as_integer_ratio())


def test_sums_over_rows_agree_with_those_over_edges():
    rng = np.random.default_rng(0)
    n = 200
    rows, W = rng.standard_normal((n, 4)) + 1e3, rng.standard_normal((4, 3))
    weights = np.triu(np.where(rng.random((n, n)) < 0.3, rng.random((n, n)), 0.0), 1)
    edges, points = np.argwhere(weights), images(rows, W)
    direct = edge_scatter(points, edges, weights[tuple(edges.T)].astype(LONG))
    scatter = Scatter(points)
    for low in range(0, n, 50):
        part = slice(low, low + 50)
        scatter.add_upper(part, weights[part, low:].astype(LONG))
    total = scatter.total()
    assert (np.abs(total.values - direct.values) <= total.errors + direct.errors).all()
    size = np.sqrt(np.outer(np.diag(direct.values), np.diag(direct.values)))
    assert (total.errors + direct.errors <= 1e-15 * size).all()
    double = oracles.pull_scatter(rows, weights)
    np.testing.assert_allclose(W.T @ double @ W, direct.values.astype(float), rtol=1e-9)


@given(seed=st.integers(0, 1000), size=st.integers(1, 5))
def test_determinants_are_within_their_errors(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-999, 1000, (size, size))
    units = 2.0 ** rng.integers(-40, 40, size)
    exact = np.prod([float(pivot) for pivot in exact_pivots(matrix)])
    found = log_determinant(matrix * units)
    if exact == 0.0 or found is None:
        return
    wanted = np.log(np.abs(exact)) + np.log(units).sum()
    assert abs(float(found.log) - wanted) <= float(found.error) + 1e-12 * (1 + abs(wanted))
