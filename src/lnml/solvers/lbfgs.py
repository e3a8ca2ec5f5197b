"""SciPy's L-BFGS over a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize


class Minimum(NamedTuple):
    """Where L-BFGS stopped."""

    components: np.ndarray
    value: float
    n_evaluations: int


def minimize_over_components(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    *,
    max_iter: int,
    gradient_tol: float = 0.0,
    value_tol: float = 0.0,
    memory: int = 12,
) -> Minimum:
    """Run at most ``max_iter`` steps of L-BFGS from ``start``.

    Parameters
    ----------
    function : callable
        Maps components (r x d) to a value and its gradient (r x d), in float64.
    start : ndarray of shape (r, d)
        First point.
    max_iter : int
        Most steps.
    gradient_tol, value_tol : float
        SciPy's ``gtol`` (largest gradient entry) and ``ftol`` (relative decrease).
    memory : int
        Number of past steps the model of the curvature is made from.
    """

    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(x.reshape(start.shape))
        return value, gradient.ravel()

    result = minimize(
        flat,
        np.asarray(start, dtype=np.float64).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": memory, "ftol": value_tol, "gtol": gradient_tol},
    )
    return Minimum(result.x.reshape(start.shape), float(result.fun), int(result.nfev))
