"""L-BFGS over a matrix."""

import numpy as np
import pytest

from lnml.solvers.lbfgs import minimize_over_components


def test_minimum_of_a_quadratic():
    target = np.arange(6.0).reshape(2, 3)
    shapes = []

    def function(components):
        shapes.append(components.shape)
        difference = components - target
        return float((difference**2).sum()), 2.0 * difference

    minimum = minimize_over_components(function, np.zeros((2, 3), dtype=np.float32), max_iter=50)
    np.testing.assert_allclose(minimum.components, target, atol=1e-8)
    assert minimum.value == pytest.approx(0.0, abs=1e-12)
    assert minimum.n_evaluations == len(shapes)
    assert set(shapes) == {(2, 3)}


@pytest.mark.parametrize("slope", [1e-145, 1e-200, 5e-324])
def test_a_slope_that_underflows_is_none(slope):
    found = minimize_over_components(
        lambda trial: (1.0 + slope * trial.sum(), np.full(trial.shape, slope)),
        np.ones((2, 2)),
        max_iter=10,
    )
    assert found.value == 1.0
    np.testing.assert_array_equal(found.components, 1.0)
