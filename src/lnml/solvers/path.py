"""The one way from an objective to a solution: condition, scale, minimise, certify, map back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lnml.certificates.coordinates import SAMPLE, has_huge_values, hidden
from lnml.core.monitor import Monitor
from lnml.core.points import Embedding
from lnml.core.solution import Proof, Solution
from lnml.core.trail import MOST_PAIRS, Trail
from lnml.core.warm_start import WarmStart
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, Objective
from lnml.objectives.conditioning import LinearCoordinates
from lnml.solvers.barrier import follow_softmax, solve_softmax
from lnml.solvers.bregman import solve_logdet
from lnml.solvers.multipliers import follow_hinge, solve_hinge
from lnml.solvers.ratio import follow_ratio, solve_ratio
from lnml.solvers.run import Run
from lnml.solvers.smooth import solve_smooth

# A proof is made again with more care if rounding may have moved the objective by this share,
# or if it falls short of what the solver saw, and if that takes no more multiplications.
ROUGH = 1e-10
MOST_WORK = (3e10, 2e8, 0.0)
# Duals that say what the problem is; a bound of zero needs no others.
PROBLEM = ("targets", "pairs", "similar", "bounds")
# How often a solve goes on where less was proved than its solver saw.
ATTEMPTS = 3
# A proved gap of this many times the tolerance will not be closed by more iterations.
HOPELESS = 10.0
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
# The same for the next problem of a path; only convex problems have one.
FOLLOWERS: dict[Form, Minimizer] = {
    Form.HINGES: follow_hinge,
    Form.SOFTMAX: follow_softmax,
    Form.RATIO: follow_ratio,
}
# Pairs of a trail that rounds of LNML keep; those of hinges only while they are solved loosely.
ROUND_PAIRS = {Form.SOFTMAX: 40, Form.HINGES: 20}


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
    on_path: bool = False,
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
    on_path : bool, default=False
        Whether a problem that differs by a little comes next: the state is made for it. That of
        a softmax objective always is.
    """
    monitor = monitor or Monitor()
    if warm is not None and not warm.helps_at(components):
        warm = None
    task = objective.task(targets)
    start, trail = task.to_conditioned(components), None
    most_pairs = MOST_PAIRS if on_path else _round_pairs(objective, task, monitor)
    if warm is not None:
        task.resume(warm, components)
        trail = warm.take_trail(components) if most_pairs else None
        trail = None if trail is None else trail.inside(task.coordinates)
        start = start if trail is None else trail.components
    elif not keep_scale:
        start = scaled_start(task, start)

    def to_original(found: np.ndarray) -> np.ndarray:
        learned = task.to_original(found, components.shape[0])
        # As it will be returned: what is said about a metric is said about these numbers.
        return learned.astype(objective.dtype).astype(np.float64)

    run = Run(tol, max_iter, monitor, to_original, warm is not None, trail)
    minimize = (MINIMIZERS if trail is None else FOLLOWERS)[objective.form]
    for _ in range(ATTEMPTS):
        found = minimize(task, start, run)
        learned = to_original(found.components)
        solution = replace(
            found,
            components=learned,
            history=monitor.history,
            stopped=monitor.stopped,
            state=_state(task, found.components, learned, trail, most_pairs),
            prove=partial(_prove, objective, task, found.components, learned),
        )
        if monitor.rule is not None or not np.isfinite(found.objective):
            return solution  # a loose round, which the next one replaces, or no number at all
        solution = certified(solution, tol)
        left = max_iter - len(monitor.history)
        if solution.converged or not found.converged or monitor.stopped or left < 1:
            break
        if solution.gap is None or solution.gap > HOPELESS * tol:
            break
        # What can be proved falls short of what the solver saw: go on, and aim further.
        start = found.components
        run = replace(run, tol=0.5 * run.tol * tol / solution.gap, max_iter=left, warm=True)
    return solution


def _round_pairs(objective: Objective, task: Any, monitor: Monitor) -> int:
    """Return how many pairs of a trail a round of LNML takes and leaves; 0 for no trail."""
    if objective.form is Form.HINGES and (monitor.rule is None or not task.keeps_curvature):
        # What a tight bound needs, multipliers and softer hinges tell better than curvature.
        return 0
    return ROUND_PAIRS.get(objective.form, 0)


def _state(
    task: Any, found: np.ndarray, learned: np.ndarray, trail: Trail | None, most_pairs: int
) -> WarmStart | None:
    """Return what the next solve can use; with a trail, unless it has no pairs.

    Only linear coordinates can take a trail from one problem to another.
    """
    state: WarmStart | None = task.warm_start(found, learned)
    if not most_pairs or not isinstance(task.coordinates, LinearCoordinates):
        return state
    trail = task.trail(found, most_pairs=most_pairs) if trail is None else trail
    return replace(state or WarmStart(learned), trail=trail.outside(task.coordinates))


def _prove(
    objective: Objective,
    task: Any,
    found: np.ndarray,
    learned: np.ndarray,
    components: np.ndarray,
    care: int,
) -> Proof:
    """Prove what a task knows about components; those it found, or others."""
    if components is not learned:
        found = task.to_conditioned(components)
    proof = objective.prove(task, found, components, care)
    if proof.bound is not None and not np.isfinite(proof.bound):
        proof = _without_bound(proof)
    training = getattr(objective, "training", None)
    if training is None or proof.coordinates is None or not proof.bound:
        return proof
    n_features, n_coordinates = proof.coordinates.shape
    if n_coordinates == n_features or proof.parameters.get("diagonal"):
        return proof
    if not _hidden(training, proof.coordinates):
        return proof
    # Rows differ, or may differ, where nothing was learned: only a bound of zero holds there.
    return _without_bound(proof)


def _hidden(training: TrainingSet, coordinates: np.ndarray) -> bool:
    """Whether rows differ, or may differ, where the coordinates leave directions out."""
    kernels, points = training.kernels, training.points
    if not kernels.remote:
        return hidden(coordinates, np.asarray(kernels.to_host(points.data), dtype=np.float64))
    columns = kernels.columns(points)
    differ = columns.highest > columns.lowest
    if coordinates.shape[1] >= differ.sum():
        return False
    numbers = np.arange(0, points.n_rows, max(points.n_rows // SAMPLE, 1))
    some = kernels.rows(Embedding.of(points), numbers)
    largest = np.maximum(-columns.lowest, columns.highest)
    return has_huge_values(largest[differ], some[:, differ])


def _without_bound(proof: Proof) -> Proof:
    """Return a proof of the objective alone: no objective is negative, and that is all."""
    kept = {name: dual for name, dual in proof.duals.items() if name in PROBLEM}
    return replace(proof, bound=0.0, slack=0.0, limit=np.inf, duals=kept)


def _gap(proof: Proof) -> float:
    """Largest gap that what was proved leaves open, relative to the objective or its floor."""
    if proof.bound is None:
        return 0.0
    scale = max(proof.objective, proof.floor)
    excess = max(proof.objective + proof.error - proof.bound, 0.0)
    # No objective is negative, so that a gap of one needs no proof.
    return float(min(excess / scale, 1.0)) if scale > 0.0 else 0.0


def certified(solution: Solution, tol: float) -> Solution:
    """Return a solution with the objective and the bound that are proved for it."""
    if solution.prove is None or solution.proof is not None:
        return solution
    for care, most in enumerate(MOST_WORK):
        proof = solution.prove(solution.components, care)
        rough = proof.error > ROUGH * abs(proof.objective)
        short = solution.gap is not None and solution.gap <= tol < _gap(proof)
        if not (rough or short) or proof.work > most:
            break
    if proof.bound is None:
        return replace(solution, objective=proof.objective, proof=proof)
    bound, gap = min(proof.bound, proof.objective), _gap(proof)
    # A metric of low rank has converged by another rule, if the solver's own gap is large.
    by_gap = solution.gap is not None and solution.gap <= tol
    full_rank = solution.components.shape[0] == solution.components.shape[1]
    return replace(
        solution,
        objective=float(proof.objective),
        bound=float(bound),
        gap=gap,
        converged=gap <= tol or (solution.converged and not by_gap),
        short=gap > tol and solution.converged and full_rank,
        proof=proof,
    )


def scaled_start(task: Any, start: np.ndarray) -> np.ndarray:
    """Return the components that a solve begins at, in the coordinates of the task."""
    start = task.promising(start)
    return start * np.sqrt(worthwhile(task.best_scale(start)))


def worthwhile(multiple: float) -> float:
    """Return a multiple of the start that is far from 1, else 1.

    Multiples are estimates. A start that has about the right scale is kept as it
    is, so that a good one (a warm start) is never made worse.
    """
    return multiple if not 0.5 < multiple < 2.0 else 1.0
