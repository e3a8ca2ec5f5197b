"""The solver of softmax problems: its history, its bounds and low rank."""

import numpy as np
import pytest
from oracles import mcml_objective, nearest_targets, same_class, squared_distances
from toy_data import FlatSoftmax, blobs, device_targets, in_class_order, small_dataset, training_set

from lnml import MCML
from lnml.core.monitor import Monitor
from lnml.core.solution import DualPoint
from lnml.objectives.mcml import MCMLObjective
from lnml.solvers.barrier import (
    _add_barrier,
    _DualBound,
    _mixed_bound,
    _well_posed,
    solve_softmax,
)
from lnml.solvers.problem import ObjectiveProblem
from lnml.solvers.run import Run

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.sampled(3)]

DATASETS = ["balance_scale", "ionosphere", "iris", "sonar", "wine"]
ROUNDING = 1e-9


def column(history, name):
    return np.array([record[name] for record in history])


def assert_sound_history(history):
    objectives, bounds = column(history, "objective"), column(history, "bound")
    assert (np.diff(objectives) <= 0.0).all()
    assert (np.diff(bounds) >= 0.0).all()
    assert bounds[0] >= 0.0
    assert bounds[-1] <= objectives[-1]


@pytest.mark.parametrize("name", DATASETS)
def test_history_of_real_data(name):
    X, y = small_dataset(name, n_rows=100)
    model = MCML().fit(X, y)
    assert_sound_history(model.history_)
    assert model.converged_
    exact = mcml_objective(X, same_class(y) * 1.0, model.components_)
    assert model.objective_ == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert model.duality_gap_ <= 1e-3


def toy_problem(seed, k=None, max_iter=100):
    X, y = blobs(seed, [25, 20, 15], 4)
    problem = ObjectiveProblem(MCMLObjective(training_set(X, y)), max_iter)
    if k is None:
        return problem, None
    P = nearest_targets(squared_distances(X), y, k)
    return problem, device_targets(in_class_order(P, y))


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("rows_left", [1, 3])
def test_a_start_with_zero_rows_reaches_the_same_optimum(k, rows_left):
    problem, targets = toy_problem(0, k)
    start = np.zeros((4, 4))
    start[:rows_left] = np.random.default_rng(0).standard_normal((rows_left, 4))
    found = problem.solve(targets, start, tol=1e-3)
    expected = problem.solve(targets, np.eye(4), tol=1e-3)
    assert_sound_history(found.history)
    assert max(found.gap, expected.gap) <= 1e-3
    assert found.bound <= expected.objective
    assert expected.bound <= found.objective
    assert found.objective == pytest.approx(expected.objective, rel=1.01e-3)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_low_rank(n_components):
    problem, targets = toy_problem(1)
    start = np.random.default_rng(1).standard_normal((n_components, 4))
    found = problem.solve(targets, start, tol=1e-3)
    assert_sound_history(found.history)
    assert found.converged
    assert found.components.shape == (n_components, 4)
    best = problem.solve(targets, np.eye(4), tol=1e-3)
    assert found.bound <= best.objective
    assert best.bound <= found.objective


def test_warm_start():
    problem, targets = toy_problem(2, k=3)
    loose = problem.solve(targets, np.eye(4), tol=3e-2)
    tight = problem.solve(targets, loose.components, tol=1e-4, state=loose.state)
    cold = problem.solve(targets, np.eye(4), tol=1e-4)
    assert tight.gap <= 1e-4
    assert tight.objective <= loose.objective * (1.0 + ROUNDING)
    assert tight.objective == pytest.approx(cold.objective, rel=1.01e-4)


@pytest.mark.parametrize(("warm", "iterations"), [(False, 5), (True, 10)])
def test_a_warm_solve_at_rest_walks_the_whole_path_before_it_ends(warm, iterations):
    """It began at the end of a path, so standing still there proves nothing yet."""
    monitor = Monitor()
    run = Run(1e-3, 50, monitor, lambda components: components, warm)
    found = solve_softmax(FlatSoftmax(), np.eye(2), run)
    assert len(monitor.history) == iterations
    assert found.converged
    assert found.bound == 0.0 and found.gap == 1.0


@pytest.mark.parametrize("k", [None, 3])
def test_no_worse_than_the_start(k):
    """However few iterations are allowed, as the contract of a problem asks."""
    problem, targets = toy_problem(3, k)
    good = problem.solve(targets, np.eye(4), tol=1e-4)
    problem.max_iter = 1
    again = problem.solve(targets, good.components, tol=1e-6)
    assert again.objective <= good.objective * (1.0 + ROUNDING)


def test_few_iterations_are_not_convergence():
    problem, targets = toy_problem(4, max_iter=1)
    found = problem.solve(targets, np.eye(4), tol=1e-6)
    assert not found.converged
    assert len(found.history) == 1


def dual_bound():
    """A bound, and the metrics and shares that it was told to keep."""
    kept = []
    return _DualBound(lambda components, share: kept.append((components, share)), None), kept


HERE, THERE = np.eye(2), 2.0 * np.eye(2)


class TestDualBound:
    def test_a_feasible_point_proves_its_value(self):
        dual, kept = dual_bound()
        assert dual.add(DualPoint(3.0, np.diag([0.1, 2.0])), HERE)
        assert dual.bound == 3.0
        assert kept == [([HERE], 0.0)]

    def test_a_bound_never_falls(self):
        dual, kept = dual_bound()
        dual.add(DualPoint(3.0, np.eye(2)), HERE)
        assert dual.add(DualPoint(1.0, np.eye(2)), THERE)
        assert dual.bound == 3.0
        assert len(kept) == 1

    @pytest.mark.parametrize("lowest", [-0.1, -1e-12, 0.0])
    def test_an_infeasible_point_alone_proves_nothing(self, lowest):
        """Zero counts as infeasible, since it may be rounding."""
        dual, kept = dual_bound()
        assert not dual.add(DualPoint(3.0, np.diag([lowest, 2.0])), HERE)
        assert dual.bound == 0.0
        assert not kept

    def test_of_a_mixture(self):
        """Half of each makes diag(-1, 2) and the identity feasible, and no less does."""
        dual, kept = dual_bound()
        dual.add(DualPoint(1.0, np.eye(2)), HERE)
        assert not dual.add(DualPoint(3.0, np.diag([-1.0, 2.0])), THERE)
        assert dual.bound == pytest.approx(2.0, rel=1e-4)
        assert dual.bound < 2.0
        (first, second), share = kept[-1]
        assert first is THERE and second is HERE
        assert share == pytest.approx(0.5, rel=1e-4)

    @pytest.mark.parametrize("seed", range(10))
    def test_mixture_is_feasible(self, seed):
        """The bound of a point of value 0 and one of value 1 is the share of the second."""
        rng = np.random.default_rng(seed)
        A, B = rng.standard_normal((2, 4, 4))
        # Moved so that it is never feasible itself.
        matrix = A + A.T
        matrix -= (np.linalg.eigvalsh(matrix)[0] + rng.uniform(0.01, 3.0)) * np.eye(4)
        feasible = DualPoint(1.0, B @ B.T + 1e-3 * np.eye(4))
        bound, share = _mixed_bound(DualPoint(0.0, matrix), feasible)
        assert bound == pytest.approx(share)
        assert 0.0 < share <= 1.0
        mixture = (1.0 - share) * matrix + share * feasible.matrix
        assert np.linalg.eigvalsh(mixture)[0] >= -1e-12 * np.linalg.norm(mixture)
        less = (1.0 - 0.99 * share) * matrix + 0.99 * share * feasible.matrix
        assert np.linalg.eigvalsh(less)[0] < 0.0


def test_barrier_and_its_gradient():
    components = np.random.default_rng(0).standard_normal((3, 3))

    ceiling = np.diag([0.1, 0.2, 0.3])

    def value(L):
        metric = L.T @ L
        return 0.7 * (np.trace(ceiling @ metric) - np.log(np.linalg.det(metric)))

    found, gradient = _add_barrier(0.0, np.zeros((3, 3)), 0.7, components, ceiling)
    assert found == pytest.approx(value(components))
    step = 1e-6
    for index in np.ndindex(3, 3):
        moved = np.zeros((3, 3))
        moved[index] = step
        slope = (value(components + moved) - value(components - moved)) / (2 * step)
        assert gradient[index] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert _add_barrier(0.0, np.eye(2), 0.7, np.diag([1.0, 0.0]), np.eye(2))[0] == np.inf


def test_well_posed_components_have_full_rank():
    singular = np.outer([1.0, 2.0], [3.0, 4.0])
    found = _well_posed(singular)
    assert np.linalg.matrix_rank(found, tol=1e-7) == 2
    np.testing.assert_allclose(found, singular, atol=1e-4)
    regular = np.array([[2.0, 1.0], [0.0, 3.0]])
    np.testing.assert_allclose(_well_posed(regular), regular, atol=1e-12)
