"""LogDet problems with slack: Bregman projections, finished by Newton steps.

A sweep projects the metric onto one constraint after another, then rebuilds it
from the dual variables, so that nothing drifts. Where the constraints contradict
each other strongly sweeps become slow; Newton steps on the same problem then
close the duality gap. The derivation is in docs/itml.md.
"""

from __future__ import annotations

import numpy as np

from lnml.core.monitor import Record
from lnml.core.solution import Solution
from lnml.objectives.logdet import Constraints, LogDetTask, Metric, Projected
from lnml.solvers.run import Run
from lnml.solvers.stopping import relative_gap

# Sweeps before the first Newton step; a small gamma needs fewer than that.
SWEEPS = 10
# Halvings of a step that leaves the cone, or gains nothing; more would be no step at all.
HALVINGS = 40
CONJUGATE_GRADIENTS = 100
# Share of the decrease promised by its slope that a Newton step must bring.
SUFFICIENT = 1e-4
# Largest logarithm of a factor by which one Newton step may change a squared distance.
LARGEST_RATE = 4.0
# Curvature assumed where the model has less: the square of a growth rate costs that much.
LEAST_STIFFNESS = 0.3
ROUNDING = 1e-13


def solve_logdet(task: LogDetTask, components: np.ndarray, run: Run) -> Solution:
    """Minimise LogDet(M, I) plus gamma times the slack to a relative duality gap of ``run.tol``.

    An iteration is a sweep or, later, a Newton step. The first metric is the
    identity, whatever the start.
    """
    dual = task.dual
    best, bound = dual.metric, dual.bound
    gap, converged = np.inf, False
    for iteration in range(1, run.max_iter + 1):
        before = best.objective
        if iteration <= SWEEPS:
            dual = sweep(task, dual)
            best = min(best, dual.metric, key=_objective)
            bound = max(bound, dual.bound)
        else:
            best, proved = newton_step(task, best)
            bound = max(bound, proved)
        # Above the objective there is only rounding.
        bound = min(bound, best.objective)
        gap = relative_gap(best.objective, bound, task.unit)
        converged = gap <= run.tol
        record = Record(
            iteration=iteration,
            objective=best.objective,
            bound=bound,
            gap=gap,
            n_active=int(np.count_nonzero(best.violated)),
        )
        if run.report(best.factor, record) or converged:
            break
        if iteration > SWEEPS and best.objective >= before:
            break  # rounding: no step finds a better metric
    return Solution(best.factor, best.objective, bound, gap, converged)


def sweep(task: LogDetTask, dual: Projected) -> Projected:
    """Project onto every constraint in turn; the bound does not fall."""
    # Imported here: numba takes a second to import, and ITML alone needs this.
    from lnml.kernels.cpu.logdet import project_in_turn

    tightness = dual.tightness.copy()
    project_in_turn(dual.metric.images, task.constraints.similar, task.gamma, tightness)
    for _ in range(HALVINGS):
        try:
            return task.projected(tightness)
        except np.linalg.LinAlgError:
            tightness = 0.5 * (tightness + dual.tightness)
    return dual


def newton_step(task: LogDetTask, metric: Metric) -> tuple[Metric, float]:
    """Return a better metric, if there is one, and the bound proved on the way.

    The metric moves to F^T exp(t S) F, where S solves the Newton equation in
    the coordinates z = F w; to first order the dual variables follow.
    """
    gamma, size = task.gamma, metric.factor.shape[0]
    images, distances = metric.images[metric.violated], metric.distances[metric.violated]
    slopes = gamma * (1.0 - 1.0 / distances)
    gradient = metric.factor @ metric.factor.T - np.eye(size) + (images.T * slopes) @ images
    direction = _newton_direction(gradient, images, gamma / distances**2)
    best, bound = metric, -np.inf
    try:
        dual = task.projected(_tightness_after(task.constraints, metric, direction))
        best, bound = min(best, dual.metric, key=_objective), dual.bound
    except np.linalg.LinAlgError:
        pass  # too far from the optimum for a proof
    decrease = -float((gradient * direction).sum())
    rates, axes = np.linalg.eigh(direction)
    length = min(1.0, LARGEST_RATE / max(np.abs(rates).max(), LARGEST_RATE))
    for _ in range(HALVINGS):
        factor = (axes * np.exp(0.5 * length * rates)) @ (axes.T @ metric.factor)
        moved = task.metric(factor, metric.log_det + length * float(rates.sum()))
        slack = ROUNDING * metric.objective - SUFFICIENT * length * decrease
        if moved.objective <= metric.objective + slack:
            return min(best, moved, key=_objective), bound
        length *= 0.5
    return best, bound


def _newton_direction(
    gradient: np.ndarray, images: np.ndarray, curvature: np.ndarray
) -> np.ndarray:
    """Solve (P S + S P) / 2 + sum of c_i (z_i^T S z_i) z_i z_i^T = -gradient.

    By conjugate gradients in the eigenvectors of P, the identity plus the
    gradient, with eigenvalues raised to a least stiffness.
    """
    values, vectors = np.linalg.eigh(gradient)
    stiffness = np.maximum(1.0 + values, LEAST_STIFFNESS)
    stiffness = 0.5 * (stiffness[:, None] + stiffness)
    images = images @ vectors
    solution = np.zeros_like(gradient)
    residual = -np.diag(values)
    search = scaled = residual / stiffness
    square = start = float((residual * scaled).sum())
    # The nearer the optimum, the more digits: that keeps Newton's quadratic convergence.
    enough = 0.01 * min(1.0, start) * start
    for _ in range(CONJUGATE_GRADIENTS):
        if square <= enough:
            break
        along = curvature * ((images @ search) * images).sum(axis=1)
        product = stiffness * search + (images.T * along) @ images
        step = square / float((search * product).sum())
        solution = solution + step * search
        residual = residual - step * product
        scaled = residual / stiffness
        previous, square = square, float((residual * scaled).sum())
        search = scaled + (square / previous) * search
    return vectors @ solution @ vectors.T


def _tightness_after(constraints: Constraints, metric: Metric, direction: np.ndarray) -> np.ndarray:
    """1 / q to first order after a full Newton step, for constraints not kept."""
    images, distances = metric.images, metric.distances
    change = ((images @ direction) * images).sum(axis=1) / distances
    tightness = np.where(metric.violated, (1.0 - change) / distances, 1.0)
    least = np.where(constraints.similar, np.minimum(1.0 / distances, 1.0) * ROUNDING, 1.0)
    return np.clip(tightness, least, np.where(constraints.similar, 1.0, np.inf))


def _objective(metric: Metric) -> float:
    return metric.objective
