"""The one way from an objective to a solution: condition, scale, minimise, certify, map back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lnml.core.monitor import Monitor
from lnml.core.solution import Proof, Solution
from lnml.core.warm_start import WarmStart
from lnml.objectives.base import Form, Objective
from lnml.solvers.barrier import solve_softmax
from lnml.solvers.bregman import solve_logdet
from lnml.solvers.multipliers import solve_hinge
from lnml.solvers.ratio import solve_ratio
from lnml.solvers.run import Run
from lnml.solvers.smooth import solve_smooth

# Each minimises a task to a tolerance and certifies what it found, in the task's coordinates. The
# top of its file says what its tasks must have.
Minimizer = Callable[[Any, np.ndarray, Run], Solution]
MINIMIZERS: dict[Form, Minimizer] = {
    Form.HINGES: solve_hinge,
    Form.SOFTMAX: solve_softmax,
    Form.RATIO: solve_ratio,
    Form.LOGDET: solve_logdet,
    Form.SMOOTH: solve_smooth,
}


def solve(
    objective: Objective,
    targets: Any,
    components: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    warm: WarmStart | None = None,
    keep_scale: bool = False,
) -> Solution:
    """Minimise an objective over metrics.

    Parameters
    ----------
    objective : Objective
        What is asked of the metric.
    targets : Pattern or None
        Target pairs; None where the objective needs none.
    components : ndarray of shape (r, d)
        Start, in the coordinates of the data.
    tol : float
        Largest relative duality gap, or what the method's stopping rule makes of it.
    max_iter : int
        Most iterations.
    monitor : Monitor, optional
        Receives one record per iteration.
    warm : WarmStart, optional
        What the solve of a similar problem handed over.
    keep_scale : bool, default=False
        Start from the components as they are; a warm start always does.
    """
    monitor = monitor or Monitor()
    if warm is not None and not warm.helps_at(components):
        warm = None
    task = objective.task(targets)
    start = task.to_conditioned(components)
    if warm is not None:
        task.resume(warm, components)
    elif not keep_scale:
        start = start * np.sqrt(worthwhile(task.best_scale(start)))

    def to_original(found: np.ndarray) -> np.ndarray:
        return task.to_original(found, components.shape[0])

    run = Run(tol, max_iter, monitor, to_original, warm is not None)
    found = MINIMIZERS[objective.form](task, start, run)
    learned = to_original(found.components)
    solution = replace(
        found,
        components=learned,
        history=monitor.history,
        stopped=monitor.stopped,
        state=task.warm_start(found.components, learned),
    )
    return certified(solution, objective.prove(task, found.components, learned), tol)


def certified(solution: Solution, proof: Proof, tol: float) -> Solution:
    """Return a solution with the objective and the bound that were proved for it."""
    if proof.bound is None:
        return replace(solution, objective=proof.objective, proof=proof)
    bound = min(proof.bound, proof.objective)
    scale = max(proof.objective, proof.floor)
    gap = (proof.objective - bound) / scale if scale > 0.0 else 0.0
    print('solver', solution.objective, solution.gap, 'proof',proof.objective, gap, proof.error/max(proof.objective,1e-300), proof.slack)
    return replace(
        solution, objective=proof.objective, bound=bound, gap=gap, proof=proof
    )


def worthwhile(multiple: float) -> float:
    """Return a multiple of the start that is far from 1, else 1.

    Multiples are estimates. A start that has about the right scale is kept as it
    is, so that a good one (a warm start) is never made worse.
    """
    return multiple if not 0.5 < multiple < 2.0 else 1.0
