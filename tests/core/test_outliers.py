"""The usual range of a column, against the median of its steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lnml.core.outliers import usual_range


def by_columns(rows):
    """Do the same for one column after the other."""
    steps = [step[step > 0.0] for step in np.diff(np.sort(rows, axis=0), axis=0).T]
    return np.array([np.median(step) * step.size if step.size else 0.0 for step in steps])


@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_column_alone(n, d, n_values, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_values, (n, d)) * rng.uniform(0.0, 2.0, d)
    np.testing.assert_array_equal(usual_range(rows), by_columns(rows))


@pytest.mark.parametrize("code", [-999.0, 1e9])
def test_a_code_does_not_count(code):
    column = np.arange(20.0)
    column[::3] = code
    kept = np.delete(column, np.s_[::3])
    assert usual_range(column[:, None])[0] <= 2.0 * np.ptp(kept)


def test_nothing_to_see():
    assert usual_range(np.zeros((0, 3))).tolist() == [0.0, 0.0, 0.0]
    assert usual_range(np.ones((5, 2))).tolist() == [0.0, 0.0]
    assert usual_range(np.ones((5, 0))).shape == (0,)
