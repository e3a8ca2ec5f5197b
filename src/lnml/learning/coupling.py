"""A metric learner and its data, coupled with the learning of neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from lnml.core.contract import MetricProblem
from lnml.core.monitor import Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Partners
from lnml.core.solution import Solution
from lnml.kernels.training import TrainingSet
from lnml.learning.alternation import alternate
from lnml.learning.assignment import Sizes
from lnml.learning.targets import (
    Assignment,
    Ranking,
    choose_ranked,
    rank_at_metric,
)
from lnml.solvers.problem import ResumableProblem, resumable


class Coupling:
    """What LNML needs of its data and metric learner, for any neighbourhood sizes.

    Parameters
    ----------
    name : str
        Name of the metric learner.
    make_problem : callable
        Its ``metric_problem``.
    training : TrainingSet
        The data, on the device.
    start : ndarray of shape (r, d)
        Components of M0.
    """

    def __init__(
        self,
        name: str,
        make_problem: Callable[[TrainingSet], MetricProblem],
        training: TrainingSet,
        start: np.ndarray,
    ) -> None:
        self.name = name
        self.training = training
        self.start = start
        self._make_problem = make_problem
        self._problems: dict[int, ResumableProblem] = {}
        self._shared: Ranking | None = None

    def problem(self, sizes: Sizes) -> ResumableProblem:
        """Return the metric problem for neighbourhoods of these sizes.

        It is told how many pairs there will be, which the sizes decide.
        """
        count = sizes.n_pairs(self.training.points.class_sizes)
        if count not in self._problems:
            told = replace(self.training, n_target_pairs=count)
            self._problems[count] = resumable(self._make_problem(told))
        return self._problems[count]

    def check(self, sizes: Sizes) -> None:
        """Refuse sizes that differ between rows where the problem needs fixed ones."""
        if self.problem(sizes).fixed_row_sizes and not sizes.k_min == sizes.k_av == sizes.k_max:
            raise ValueError(
                f"{self.name} needs k_min = k_av = k_max: its objective divides by the size "
                f"of each neighbourhood, so sizes cannot be traded between rows; got "
                f"k_min={sizes.k_min}, k_av={sizes.k_av}, k_max={sizes.k_max}"
            )

    def share_ranking(self, start: np.ndarray, grid: list[Sizes], state: Any = None) -> None:
        """Rank partners once for all fits from this start with sizes of a grid.

        A problem with fixed row sizes may let costs depend on the size
        (docs/contract.md), so it has nothing to share here.
        """
        problem, most = self.problem(grid[0]), max(sizes.k_max for sizes in grid)
        if not problem.fixed_row_sizes:
            ranking = rank_at_metric(problem, self.training, start, most, state)
            # Each fit makes its own searches; keeping this one would only take memory.
            self._shared = ranking._replace(state=None)

    def learn(
        self,
        sizes: Sizes,
        start: np.ndarray,
        *,
        tol: float,
        max_rounds: int,
        monitor: Monitor,
    ) -> Solution:
        """Learn metric and neighbourhoods; see :func:`lnml.learning.alternation.alternate`."""
        problem, training, near = self.problem(sizes), self.training, None

        def assign(components: np.ndarray, state: Any) -> Assignment:
            nonlocal near
            if self._shared is not None and self._shared.made_at(components):
                ranking = self._shared._replace(state=state)
            else:
                ranking = rank_at_metric(problem, training, components, sizes.k_max, state, near)
            if isinstance(ranking.partners, Partners):
                near = ranking.partners.pairs
            return choose_ranked(problem, training, ranking, sizes)

        return alternate(problem, assign, start, tol=tol, max_rounds=max_rounds, monitor=monitor)

    def first_targets(self, sizes: Sizes) -> Neighborhoods:
        """Return the neighbourhoods of least cost at the start, which the first round is given."""
        problem, training = self.problem(sizes), self.training
        ranking = rank_at_metric(problem, training, self.start, sizes.k_max)
        return choose_ranked(problem, training, ranking, sizes).targets

    def target_costs(self, sizes: Sizes, found: Solution) -> sparse.csr_array:
        """Cost of every learned target pair at the learned metric, in the user's row numbers."""
        kernels, targets = self.training.kernels, found.targets
        assert targets is not None, "rounds always end with neighbourhoods"
        costs = self.problem(sizes).costs_from(found.components, targets, found.state)
        rows, columns = (self.training.order[part] for part in targets.to_host().pairs())
        n = self.training.order.size
        graph = sparse.csr_array((kernels.to_host(costs.values), (rows, columns)), shape=(n, n))
        graph.sort_indices()
        return graph


def name_with_neighborhoods(model: Any) -> str:
    """Return what to fit instead of a model that has no neighbourhoods, such as LNML(MCML())."""
    couples = hasattr(model, "metric_problem") and not model.not_coupled_because
    return f"LNML({type(model).__name__ if couples else 'LMNN'}())"
