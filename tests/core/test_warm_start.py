"""What one solve hands to the next says what it was made for, and serves for nothing else."""

import numpy as np
import pytest
from devices import host
from oracles import lmnn_objective, lmnn_pair_costs, nearest_targets, squared_distances
from toy_data import device_targets, sorted_blobs, training_set

from lnml.core.pairs import Pattern, Search
from lnml.core.warm_start import WarmStart
from lnml.objectives.lmnn import LMNNObjective
from lnml.solvers.problem import ObjectiveProblem

pytestmark = pytest.mark.usefixtures("device")

NOBODY = Pattern(np.zeros(4, dtype=np.int64), np.zeros(0, dtype=np.int32))


def search(components, radius=1.0):
    return Search(components, np.full(3, radius), NOBODY)


def test_a_search_is_known_by_the_values_of_its_metric():
    components = np.random.default_rng(0).standard_normal((2, 3))
    found = search(components)
    assert found.made_at(components.copy())
    other = components.copy()
    other[1, 2] = np.nextafter(other[1, 2], np.inf)
    assert not found.made_at(other)
    assert not found.made_at(components[:1])


def test_a_search_is_handed_over_once_and_to_its_metric_alone():
    warm = WarmStart(np.eye(2), search=search(np.eye(2)))
    assert warm.take_search(np.eye(2)) is not None
    assert warm.take_search(np.eye(2)) is None
    warm = WarmStart(np.eye(2), search=search(np.eye(2)))
    assert warm.take_search(2.0 * np.eye(2)) is None


def toy():
    X, y = sorted_blobs(3, [20, 25, 15], 4, separation=0.5)
    P = nearest_targets(squared_distances(X), y, 3)
    problem = ObjectiveProblem(LMNNObjective(training_set(X, y), 0.5), 100)
    return X, y, P, problem, device_targets(P)


def test_costs_after_a_solve_at_another_metric_are_right():
    """The search of the solve must not serve there: it lacks impostors of a smaller metric."""
    X, y, P, problem, pairs = toy()
    found = problem.solve(pairs, np.eye(4), tol=1e-3)
    assert found.state.search is not None
    # Not a multiple, and small: many more impostors are within reach.
    other = 0.3 * np.random.default_rng(1).standard_normal((4, 4))
    costs = host(problem.costs_from(other, pairs, found.state).values)
    expected = lmnn_pair_costs(squared_distances(X, other), y, 0.5)[np.nonzero(P)]
    np.testing.assert_allclose(costs, expected, rtol=1e-9)


def test_a_solve_from_another_metric_does_not_use_the_search():
    X, y, P, problem, pairs = toy()
    found = problem.solve(pairs, np.eye(4), tol=1e-3)
    other = 0.3 * np.random.default_rng(1).standard_normal((4, 4))
    again = problem.solve(pairs, other, tol=0.5, state=found.state)
    exact = lmnn_objective(X, y, P, again.components, 0.5)
    assert again.objective == pytest.approx(exact, rel=1e-9)


def test_a_copy_of_the_metric_keeps_the_search(monkeypatch):
    """Values decide, not objects: a harmless copy costs no search."""
    _, _, _, problem, pairs = toy()
    found = problem.solve(pairs, np.eye(4), tol=1e-3)
    kernels = type(problem.objective.training.kernels)
    searches, served = [], []
    within = kernels.within

    def counted(self, *args, known=None, **kwargs):
        found = within(self, *args, known=known, **kwargs)
        (served if found is known else searches).append(found)
        return found

    monkeypatch.setattr(kernels, "within", counted)
    costs = problem.costs_from(found.components.copy(), pairs, found.state)
    assert served and not searches
    served.clear()
    again = problem.solve(pairs, found.components.copy(), tol=0.5, state=costs.state)
    assert served and not searches
    assert again.objective == pytest.approx(found.objective, rel=1e-9)
