"""Neighbourhoods at a metric: the fast search against the full cost matrix."""

import warnings

import numpy as np
import pytest
from devices import host
from oracles import (
    least_assignment_cost,
    lmnn_pair_costs,
    mcml_objective,
    mcml_pair_costs,
    nearest_targets,
    squared_distances,
)
from toy_data import lattice, sorted_blobs, training_set

from lnml import assign_neighborhoods
from lnml.learning.assignment import Sizes
from lnml.learning.targets import assign_at_metric, nearest_neighborhoods
from lnml.objectives.lmnn import LMNNObjective
from lnml.objectives.mcml import MCMLObjective
from lnml.solvers.problem import ObjectiveProblem, resumable

pytestmark = pytest.mark.usefixtures("device")

CLASS_SIZES = [[20, 15], [30, 1, 12, 3], [8, 8, 8]]
SIZES = [Sizes(1, 3, 5), Sizes(0, 1, 4), Sizes(2, 2, 2), Sizes(0, 4, 4), Sizes(2, 2, 40)]


def assign(costs, y, sizes, distances):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return assign_neighborhoods(costs, y, **sizes._asdict(), distances=distances)


def random_metric(seed, n_features):
    return np.random.default_rng(seed).standard_normal((n_features, n_features)) / 2


@pytest.mark.parametrize("class_sizes", CLASS_SIZES)
@pytest.mark.parametrize("k", [1, 3, 10])
def test_nearest_neighborhoods(class_sizes, k):
    X, y = sorted_blobs(0, class_sizes, 3)
    components = random_metric(0, 3)
    found = nearest_neighborhoods(training_set(X, y), components, k)
    expected = nearest_targets(squared_distances(X, components), y, k)
    np.testing.assert_array_equal(found.to_graph().toarray(), expected)


@pytest.mark.parametrize("class_sizes", CLASS_SIZES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("push_weight", [0.2, 0.9])
def test_lmnn_needs_the_nearest_partners_only(class_sizes, sizes, push_weight):
    X, y = sorted_blobs(1, class_sizes, 3)
    components = random_metric(1, 3)
    training = training_set(X, y)
    found = assign_at_metric(
        ObjectiveProblem(LMNNObjective(training, push_weight), 1), training, components, sizes
    )
    D = squared_distances(X, components)
    costs = lmnn_pair_costs(D, y, push_weight)
    expected = assign(costs, y, sizes, D)
    assert found.targets == expected
    total = (expected.to_graph().toarray() * costs).sum()
    assert found.objective == pytest.approx(total, rel=1e-9)
    assert total == pytest.approx(least_assignment_cost(costs, y, **sizes._asdict()), rel=1e-9)


@pytest.mark.parametrize("class_sizes", CLASS_SIZES)
@pytest.mark.parametrize("k", [1, 3])
def test_mcml_takes_the_nearest_partners(class_sizes, k):
    X, y = sorted_blobs(2, class_sizes, 3)
    components = random_metric(2, 3)
    training = training_set(X, y)
    found = assign_at_metric(
        ObjectiveProblem(MCMLObjective(training), 1), training, components, Sizes(k, k, k)
    )
    D = squared_distances(X, components)
    assert found.targets == assign(mcml_pair_costs(D, k), y, Sizes(k, k, k), D)
    P = found.targets.to_graph().toarray()
    assert found.objective == pytest.approx(mcml_objective(X, P, components), rel=1e-9)


@pytest.mark.parametrize("push_weight", [0.3, 0.5])
def test_ties_of_lattice_data_follow_the_rule(push_weight):
    """At the identity the costs of lattice data are exact, and so are their ties."""
    y = np.repeat([0, 1, 2], [20, 15, 9])
    for seed in range(5):
        X = lattice(seed, y.size, 2, levels=3)
        training = training_set(X, y)
        problem = ObjectiveProblem(LMNNObjective(training, push_weight), 1)
        D = squared_distances(X)
        costs = np.round(lmnn_pair_costs(D, y, push_weight), 9)
        for sizes in SIZES:
            found = assign_at_metric(problem, training, np.eye(2), sizes)
            assert found.targets == assign(costs, y, sizes, D)


def test_ties_between_rows_follow_the_order_of_the_user():
    """Rows are sorted by class inside; ties still go to the row that was given first."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        y = rng.permutation(np.repeat([0, 1, 2], [9, 8, 5]))
        X = lattice(seed, y.size, 2, levels=3)
        training = training_set(X, y)
        D = squared_distances(X)
        costs = np.round(lmnn_pair_costs(D, y, 0.5), 9)
        for sizes in SIZES:
            found = assign_at_metric(
                ObjectiveProblem(LMNNObjective(training, 0.5), 1), training, np.eye(2), sizes
            )
            assert found.targets.renumbered(training.order) == assign(costs, y, sizes, D)


class AnyCosts:
    """A problem with a given cost for every pair, which do not grow with distance."""

    fixed_row_sizes = False
    cost_grows_with_distance = False

    def __init__(self, costs):
        self.costs = costs

    def pair_costs(self, components, pairs):
        return self.costs[host(pairs).pairs()]

    def free_term(self, components):
        return 7.5


@pytest.mark.parametrize("class_sizes", CLASS_SIZES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("tied", [False, True])
def test_costs_that_do_not_grow_with_distance(class_sizes, sizes, tied):
    X, y = sorted_blobs(3, class_sizes, 2)
    rng = np.random.default_rng(3)
    costs = rng.uniform(0.0, 9.0, (y.size, y.size))
    costs = np.floor(costs) if tied else costs
    training = training_set(X, y)
    components = random_metric(3, 2)
    found = assign_at_metric(resumable(AnyCosts(costs)), training, components, sizes)
    expected = assign(costs, y, sizes, squared_distances(X, components))
    assert found.targets == expected
    total = (expected.to_graph().toarray() * costs).sum()
    assert found.objective == pytest.approx(total + 7.5, rel=1e-9)


def test_both_paths_agree_where_both_apply():
    X, y = sorted_blobs(4, [25, 20, 4], 3)
    components = random_metric(4, 3)
    training = training_set(X, y)
    problem = ObjectiveProblem(LMNNObjective(training, 0.5), 1)
    fast = assign_at_metric(problem, training, components, Sizes(1, 3, 6))
    problem.cost_grows_with_distance = False
    general = assign_at_metric(problem, training, components, Sizes(1, 3, 6))
    assert general.targets == fast.targets
    assert general.objective == pytest.approx(fast.objective, rel=1e-12)
