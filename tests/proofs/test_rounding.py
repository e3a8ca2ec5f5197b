"""Lower bounds of eigenvalues hold, whatever the rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lnml.proofs.rounding import gamma, is_positive, least_eigenvalue, sum_error


def is_psd_exactly(matrix):
    """Whether a symmetric matrix of doubles is positive semidefinite, in rational arithmetic."""
    rows = [[Fraction(float(value)) for value in row] for row in matrix]
    while rows:
        pivot = next((k for k, row in enumerate(rows) if row[k] != 0), None)
        if pivot is None:
            return all(value == 0 for row in rows for value in row)
        if rows[pivot][pivot] < 0:
            return False
        # A zero on the diagonal of a psd matrix has a zero row; pivoting finds a contradiction.
        top = rows[pivot]
        rest = [k for k in range(len(rows)) if k != pivot]
        rows = [[rows[i][j] - top[i] * top[j] / top[pivot] for j in rest] for i in rest]
    return True


def low_rank(seed, size, rank, scale):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, rank)) * 10.0 ** rng.uniform(-scale, scale, (size, 1))
    return factor @ factor.T


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.floats(0.0, 6.0))
def test_least_eigenvalue_is_a_lower_bound(seed, size, rank, scale):
    matrix = low_rank(seed, size, rank, scale)
    matrix = (matrix + matrix.T) / 2
    bound = least_eigenvalue(matrix, np.zeros(size))
    assert bound <= 0.0 or rank >= size
    assert is_psd_exactly(matrix - np.diag(np.full(size, bound)) + 0.0)


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_least_eigenvalue_is_not_far_below(seed, size):
    matrix = low_rank(seed, size, size + 2, 0.0)
    exact = np.linalg.eigvalsh(matrix)[0]
    assert least_eigenvalue(matrix, np.zeros(size)) >= exact - 1e-12 * np.trace(matrix)
    moved = least_eigenvalue(matrix, np.full(size, 0.5))
    assert moved == pytest.approx(exact - 0.5, abs=1e-11 * np.trace(matrix))


def test_of_nothing_and_of_no_numbers():
    assert least_eigenvalue(np.zeros((0, 0)), np.zeros(0)) == np.inf
    assert least_eigenvalue(np.full((2, 2), np.nan), np.zeros(2)) == -np.inf
    assert least_eigenvalue(np.eye(2), np.array([np.inf, 0.0])) == -np.inf
    assert -1e-12 < least_eigenvalue(np.zeros((3, 3)), np.zeros(3)) <= 0.0


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.floats(0.0, 9.0))
def test_positive_means_positive(seed, size, rank, scale):
    matrix = low_rank(seed, size, rank, scale)
    matrix = (matrix + matrix.T) / 2
    matrix += np.diag(np.diag(matrix)) * np.random.default_rng(seed).choice([0.0, -1e-14, 1e-6])
    if is_positive(matrix, np.zeros(size)):
        assert is_psd_exactly(matrix)


@pytest.mark.parametrize("scale", [0.0, 3.0, 9.0])
def test_units_do_not_decide_what_is_positive(scale):
    matrix = low_rank(3, 5, 9, 0.0) + 1e-3 * np.eye(5)
    units = 10.0 ** np.random.default_rng(0).uniform(-scale, scale, 5)
    assert is_positive(matrix * units[:, None] * units, np.zeros(5))
    least = np.linalg.eigvalsh(matrix)[0]
    below = (matrix - 1.001 * least * np.eye(5)) * units[:, None] * units
    assert not is_positive(below, np.zeros(5))
    assert not is_positive(matrix, np.full(5, 1.001 * np.linalg.eigvalsh(matrix)[-1]))


def test_sums_are_within_their_error():
    values = np.random.default_rng(0).standard_normal(10_000) * 10.0 ** np.arange(10_000) ** 0.2
    exact = sum(Fraction(float(value)) for value in values)
    assert abs(float(Fraction(float(values.sum())) - exact)) <= sum_error(values)
    assert gamma(10) < 1.2e-15
    assert gamma(1e16) == np.inf
