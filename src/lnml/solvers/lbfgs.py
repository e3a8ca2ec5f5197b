"""SciPy's L-BFGS over a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

# A slope below this is none.
NO_SLOPE = 1e-140
# Length of the first trial step, relative to the start.
FIRST_STEP = 0.01


class Descent(NamedTuple):
    """Where L-BFGS stopped, and whether one of its tolerances made it stop."""

    components: np.ndarray
    value: float
    n_evaluations: int
    converged: bool


def minimize_over_components(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    *,
    max_iter: int,
    gradient_tol: float = 0.0,
    value_tol: float = 0.0,
    memory: int = 12,
    on_step: Callable[[np.ndarray, float], bool] | None = None,
) -> Descent:
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
    on_step : callable, optional
        Receives components and value after every step; True ends the search.
    """
    # SciPy's first step has length one and its tolerances assume values near one,
    # so it is given unknowns and values in units of their start.
    unit = FIRST_STEP * float(np.linalg.norm(start)) or 1.0
    value_unit = 0.0

    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal value_unit
        value, gradient = function(unit * x.reshape(start.shape))
        value_unit = value_unit or abs(value) or 1.0
        slope = gradient.ravel() * (unit / value_unit)
        # SciPy squares it, and would divide zero by zero.
        return value / value_unit, np.where(np.abs(slope) < NO_SLOPE, 0.0, slope)

    def after_step(intermediate_result: OptimizeResult) -> None:
        components = unit * intermediate_result.x.reshape(start.shape)
        if on_step and on_step(components, value_unit * float(intermediate_result.fun)):
            raise StopIteration

    result = minimize(
        flat,
        np.asarray(start, dtype=np.float64).ravel() / unit,
        jac=True,
        method="L-BFGS-B",
        callback=after_step if on_step else None,
        options={"maxiter": max_iter, "maxcor": memory, "ftol": value_tol, "gtol": gradient_tol},
    )
    components = unit * result.x.reshape(start.shape)
    return Descent(
        components, value_unit * float(result.fun), int(result.nfev), bool(result.status == 0)
    )
