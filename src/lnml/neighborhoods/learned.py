"""Neighbourhoods at a metric: nearest ones, and those of least cost for a problem."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lnml.kernels.protocol import Pattern, Ranked, round_ties
from lnml.neighborhoods.assignment import Sizes
from lnml.neighborhoods.graph import Neighborhoods
from lnml.objectives.contract import MetricProblem, TrainingSet


class Assignment(NamedTuple):
    """Neighbourhoods of least cost at a metric, and the objective there."""

    targets: Neighborhoods
    objective: float


def nearest_neighborhoods(training: TrainingSet, components: np.ndarray, k: int) -> Neighborhoods:
    """Return the k nearest rows of the same class; all of them in a smaller class."""
    _, columns = _same_class_nearest(training, components, k)
    return training.kernels.listed(columns)[0]


def assign_at_metric(
    problem: MetricProblem, training: TrainingSet, components: np.ndarray, sizes: Sizes
) -> Assignment:
    """Return the neighbourhoods of least cost for a metric problem, exactly."""
    ranked = rank_at_metric(problem, training, components, sizes.k_max)
    return choose_ranked(problem, training, components, ranked, sizes)


def rank_at_metric(
    problem: MetricProblem, training: TrainingSet, components: np.ndarray, k_max: int
) -> Ranked:
    """Return the ``k_max`` cheapest partners of every row.

    Where costs grow with distance these are the nearest, and no other pair
    needs a cost.
    """
    if not problem.cost_grows_with_distance:
        return _rank_all_pairs(problem, training, components, k_max)
    distances, columns = _same_class_nearest(training, components, k_max)
    pairs, position = training.kernels.listed(columns)
    costs = round_ties(problem.pair_costs(components, pairs))
    return training.kernels.ranked(columns, distances, costs, position)


def choose_ranked(
    problem: MetricProblem,
    training: TrainingSet,
    components: np.ndarray,
    ranked: Ranked,
    sizes: Sizes,
) -> Assignment:
    """Return the neighbourhoods of least cost among ranked partners, ``k_max`` of them or more."""
    ranked = Ranked(*(part[:, : sizes.k_max] for part in ranked))
    targets, total = training.kernels.choose(ranked, *sizes, training.order)
    return Assignment(targets, total + problem.free_term(components))


def _same_class_nearest(
    training: TrainingSet, components: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances and columns of the k nearest rows of the same class.

    Under the identity the data are used as they are, so that exact ties of the
    data stay exact.
    """
    embedding = training.kernels.embed(training.points, components)
    return training.kernels.nearest(embedding, k, same_class=True)


def _rank_all_pairs(
    problem: MetricProblem, training: TrainingSet, components: np.ndarray, k_max: int
) -> Ranked:
    """Cheapest partners among all of the same class, one class at a time."""
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
    return Ranked(*(kernels.array(part) for part in ranked))
