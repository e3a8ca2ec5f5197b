"""Neighbourhoods at a metric: nearest ones, and those of least cost for a problem."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Partners, Pattern, Ranked, round_ties
from lnml.kernels.training import TrainingSet
from lnml.learning.assignment import Sizes
from lnml.solvers.problem import ResumableProblem


class Assignment(NamedTuple):
    """Neighbourhoods of least cost at a metric, the objective there, and the problem's state."""

    targets: Neighborhoods
    objective: float
    state: Any = None


class Ranking(NamedTuple):
    """The cheapest partners of every row at a metric, and the state of the problem then.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        The metric.
    partners : Partners or Ranked
        Partners by distance; or, on the host, by cost where that does not grow with distance.
    costs : pair values or None
        Costs of the partners by distance.
    state : Any
        The state.
    """

    components: np.ndarray
    partners: Partners | Ranked
    costs: Any
    state: Any

    def made_at(self, components: np.ndarray) -> bool:
        """Whether it was made at this very metric."""
        return np.array_equal(self.components, components)


def nearest_neighborhoods(training: TrainingSet, components: np.ndarray, k: int) -> Neighborhoods:
    """Return the k nearest rows of the same class; all of them in a smaller class.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import TrainingSet, nearest_neighborhoods
    >>> from lnml.kernels import get_kernels
    >>> X, codes = np.array([[0.0], [1.0], [3.0], [9.0]]), np.array([0, 0, 0, 1])
    >>> training = TrainingSet.from_labels(X, codes, get_kernels())
    >>> nearest_neighborhoods(training, np.eye(1), 1)
    Neighborhoods(4 rows, 3 pairs, 0 to 1 a row)
    """
    return _same_class_nearest(training, components, k).pairs


def assign_at_metric(
    problem: ResumableProblem,
    training: TrainingSet,
    components: np.ndarray,
    sizes: Sizes,
    state: Any = None,
) -> Assignment:
    """Return the neighbourhoods of least cost for a metric problem, exactly."""
    ranking = rank_at_metric(problem, training, components, sizes.k_max, state)
    return choose_ranked(problem, training, ranking, sizes)


def rank_at_metric(
    problem: ResumableProblem,
    training: TrainingSet,
    components: np.ndarray,
    k_max: int,
    state: Any = None,
    near: Pattern | None = None,
) -> Ranking:
    """Return the ``k_max`` cheapest partners of every row.

    Where costs grow with distance these are the nearest, and no other pair
    needs a cost. They may be found faster if ``near`` are those at another metric.
    """
    if not problem.cost_grows_with_distance:
        ranked = _rank_all_pairs(problem, training, components, k_max)
        return Ranking(components, ranked, None, state)
    partners = _same_class_nearest(training, components, k_max, near)
    costs = problem.costs_from(components, partners.pairs, state)
    return Ranking(components, partners, costs.values, costs.state)


def choose_ranked(
    problem: ResumableProblem, training: TrainingSet, ranking: Ranking, sizes: Sizes
) -> Assignment:
    """Return the neighbourhoods of least cost among ranked partners, ``k_max`` of them or more."""
    kernels, partners = training.kernels, ranking.partners
    if isinstance(partners, Ranked):
        # Imported here: numba takes a second to import, and most fits need none of this.
        from lnml.kernels.cpu.assignment import choose

        first = Ranked(*(part[:, : sizes.k_max] for part in partners))
        chosen, total = choose(first, *sizes, training.order)
        targets = kernels.pattern(chosen)
    else:
        targets, total = kernels.choose(partners, ranking.costs, *sizes, training.order)
    objective = total + problem.free_term(ranking.components)
    return Assignment(targets, objective, ranking.state)


def _same_class_nearest(
    training: TrainingSet, components: np.ndarray, k: int, near: Pattern | None = None
) -> Partners:
    """Return the k nearest rows of the same class.

    Under the identity the data are used as they are, so that exact ties of the
    data stay exact.
    """
    embedding = training.kernels.embed(training.points, components)
    return training.kernels.partners(embedding, k, near)


def _rank_all_pairs(
    problem: ResumableProblem, training: TrainingSet, components: np.ndarray, k_max: int
) -> Ranked:
    """Cheapest partners among all of the same class, one class at a time, on the host."""
    n, kernels = training.points.n_rows, training.kernels
    embedding = kernels.embed(training.points, components)
    ranked = Ranked(np.full((n, k_max), -1), *(np.full((n, k_max), np.inf) for _ in range(2)))
    start = training.points.class_start
    for low, high in pairwise(start):
        size, kept = high - low, min(k_max, high - low - 1)
        if kept < 1:
            continue
        members = np.arange(low, high)
        others = np.tile(members, (size, 1))[~np.eye(size, dtype=bool)].reshape(size, size - 1)
        counts = np.zeros(n, dtype=np.int64)
        counts[members] = size - 1
        indptr = np.concatenate([[0], np.cumsum(counts)])
        pairs = kernels.pattern(Pattern(indptr, others.ravel().astype(np.int32)))
        costs, distances = (
            round_ties(kernels.to_host(values)).reshape(size, size - 1)
            for values in (
                problem.pair_costs(components, pairs),
                kernels.distances(embedding, pairs),
            )
        )
        order = np.lexsort((distances, costs), axis=-1)[:, :kept]
        ranked.columns[members, :kept] = np.take_along_axis(others, order, axis=1)
        ranked.costs[members, :kept] = np.take_along_axis(costs, order, axis=1)
        ranked.distances[members, :kept] = np.take_along_axis(distances, order, axis=1)
    return ranked
