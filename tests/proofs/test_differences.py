"""Sums over pairs stay within the errors that come with them."""

import numpy as np
import pytest

from lnml.proofs.differences import (
    Moment,
    column_moments,
    moment,
    no_moment,
    product_error,
    squared_lengths,
)
from lnml.proofs.rounding import least_eigenvalue

LONG = np.longdouble


def coded(seed, n=30, d=4, code=1e8):
    """Rows with a code in one column and nearly equal columns, and pairs of them."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows[:, 1] = rows[:, 0] + 1e-6 * rows[:, 1]
    rows[rng.random(n) < 0.3, 2] = code
    i, j = rng.integers(n, size=(2, 200))
    return rows, i, j, rng.standard_normal(200), rng


def coordinates(rng, d, e):
    """Coordinates that stretch the difference of the two nearly equal columns."""
    W = rng.standard_normal((d, e))
    W[0, 0], W[1, 0] = 1e6, -1e6
    return W


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
@pytest.mark.parametrize("seed", range(5))
def test_moment_is_within_its_error(seed, dtype):
    rows, i, j, weights, rng = coded(seed)
    W = coordinates(rng, 4, 3)
    found = moment(rows.astype(dtype), i, j, weights, W)
    z = (rows[i].astype(LONG) - rows[j]) @ W
    exact = (z * weights[:, None]).T @ z
    off = (exact - found.matrix).astype(np.float64)
    for sign in (1.0, -1.0):
        assert np.linalg.eigvalsh(np.diag(found.error) + sign * off)[0] >= -1e-12 * off.max()
    assert (np.abs(weights) @ z**2 <= found.squares * (1 + 1e-12)).all()
    # The error is small where it can be, not only large enough.
    plain = slice(1, None)
    assert (found.error[plain] <= 1e-7 * found.squares[plain]).all()


def test_an_error_in_one_direction_does_not_spoil_the_others():
    """Pairs hardly differ along the last coordinate, so that its shift is as large as it is."""
    sizes, shifts = np.array([1.0, 1.0, 1e-15]), np.array([1e-15, 1e-15, 1e-15])
    error = product_error(sizes, shifts, 0.0)
    assert (error[:2] < 1e-6).all()
    assert error[2] < 1e-20
    assert product_error(np.zeros(0), np.zeros(0), 0.0).size == 0


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
@pytest.mark.parametrize("seed", range(5))
def test_lengths_are_within_their_error(seed, dtype):
    rows, i, j, _, rng = coded(seed)
    L = coordinates(rng, 4, 3).T
    values, errors = squared_lengths(rows.astype(dtype), i, j, L)
    exact = (((rows[i].astype(LONG) - rows[j]) @ L.T.astype(LONG)) ** 2).sum(axis=1)
    assert (np.abs(values - exact) <= errors).all()
    assert (errors <= 1e-8 * np.maximum(values, 1.0)).all()


def test_column_moments_are_within_their_error():
    rows, i, j, weights, rng = coded(7)
    A = coordinates(rng, 4, 5)
    values, errors = column_moments(rows, i, j, weights, A)
    exact = weights @ ((rows[i].astype(LONG) - rows[j]) @ A) ** 2
    assert (np.abs(values - exact) <= errors).all()


def test_sums_and_multiples_keep_their_errors():
    rows, i, j, weights, rng = coded(3)
    W = coordinates(rng, 4, 3)
    first = moment(rows, i[:100], j[:100], weights[:100], W)
    second = moment(rows, i[100:], j[100:], weights[100:], W)
    both = first.times(0.3).plus(second.times(-2.0))
    assert (both.error >= 0.3 * first.error + 2.0 * second.error).all()
    np.testing.assert_allclose(both.matrix, 0.3 * first.matrix - 2.0 * second.matrix)
    nothing = no_moment(W)
    assert isinstance(nothing.plus(first), Moment)
    assert least_eigenvalue(nothing.matrix, nothing.error) <= 0.0
