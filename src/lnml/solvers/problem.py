"""Metric problems: an objective of ours with the solve path, or a learner from outside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from lnml.core.contract import MetricProblem
from lnml.core.monitor import Monitor
from lnml.core.pairs import Pattern
from lnml.core.solution import Solution
from lnml.core.warm_start import WarmStart
from lnml.objectives.base import PairObjective
from lnml.solvers.path import solve


class Costs(NamedTuple):
    """Cost of every pair of a pattern, and the state for the next step."""

    values: Any
    state: Any


class ResumableProblem(MetricProblem, Protocol):
    """A metric problem whose pair costs, too, share work with the solves around them."""

    def costs_from(self, components: np.ndarray, pairs: Pattern, state: Any) -> Costs:
        """Return pair costs, given what the step before handed over."""


class ObjectiveProblem:
    """An objective of this library as a :class:`lnml.core.contract.MetricProblem`.

    Parameters
    ----------
    objective : PairObjective
        What is asked of the metric.
    max_iter : int
        Most iterations of one solve.
    """

    def __init__(self, objective: PairObjective, max_iter: int) -> None:
        self.objective = objective
        self.max_iter = max_iter
        self.fixed_row_sizes = objective.fixed_row_sizes
        self.cost_grows_with_distance = objective.cost_grows_with_distance

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """F_ij for every pair of a pattern of same-class pairs, at a metric."""
        return self.objective.pair_costs(components, pairs).values

    def costs_from(self, components: np.ndarray, pairs: Pattern, state: WarmStart | None) -> Costs:
        """Return pair costs; a search that the last solve ended with is used where it serves."""
        known = None if state is None else state.take_search(components)
        costs = self.objective.pair_costs(components, pairs, known)
        if state is None:
            # The first solve starts at another scale, where this search would not serve.
            return Costs(costs.values, None)
        return Costs(costs.values, replace(state, search=costs.search))

    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the neighbourhoods."""
        return self.objective.free_term(components)

    def solve(
        self,
        targets: Any,
        components: np.ndarray,
        *,
        tol: float,
        state: WarmStart | None = None,
        monitor: Monitor | None = None,
        on_path: bool = False,
    ) -> Solution:
        """Minimise over the metric; see :func:`lnml.solvers.path.solve`."""
        found = solve(
            self.objective,
            targets,
            components,
            tol=tol,
            max_iter=self.max_iter,
            monitor=monitor,
            warm=state,
            on_path=on_path,
        )
        return finite(found, f"the solve of {type(self.objective).__name__}")


class OwnSolver:
    """A learner from outside, which brings its own ``solve``, made resumable.

    Its state is passed on unchanged. Its objective must be finite.

    Parameters
    ----------
    problem : MetricProblem
        What the learner offers (docs/contract.md).
    """

    def __init__(self, problem: MetricProblem) -> None:
        self.problem = problem
        self.fixed_row_sizes = problem.fixed_row_sizes
        self.cost_grows_with_distance = problem.cost_grows_with_distance
        self.pair_costs = problem.pair_costs
        self.free_term = problem.free_term

    def costs_from(self, components: np.ndarray, pairs: Pattern, state: Any) -> Costs:
        """Return pair costs and the state as it was."""
        return Costs(self.problem.pair_costs(components, pairs), state)

    def solve(
        self,
        targets: Any,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Let the learner solve; refuse an objective that is no number."""
        monitor = monitor or Monitor()
        found = self.problem.solve(targets, components, tol=tol, state=state, monitor=monitor)
        # Only the monitor knows whether the user asked to stop, or a rule did.
        found = finite(found, f"{type(self.problem).__name__}.solve")
        return replace(found, stopped=monitor.stopped)


def finite(found: Solution, source: str) -> Solution:
    """Return a solution, or say where an objective that is no number came from."""
    if not np.isfinite(found.objective):
        raise FloatingPointError(
            f"{source} returned an objective of {found.objective}: check the scale of the data, "
            f"or the problem's solver"
        )
    return found


def resumable(problem: MetricProblem) -> ResumableProblem:
    """Return a problem as the rounds of LNML use it."""
    return problem if isinstance(problem, ObjectiveProblem) else OwnSolver(problem)
