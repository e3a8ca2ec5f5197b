"""The one solve path: conditioning, scaling and mapping back, for objectives of every form."""

import numpy as np
import pytest
from toy_data import blobs, training_set

from lnml.core.solution import Proof, Solution
from lnml.core.warm_start import WarmStart
from lnml.learning.targets import nearest_neighborhoods
from lnml.objectives.base import Form, Task
from lnml.objectives.lmnn import LMNNObjective
from lnml.solvers import path
from lnml.solvers.problem import ObjectiveProblem, resumable


class Halved:
    """Coordinates in which everything is half as large."""

    def to_conditioned(self, components):
        return 2.0 * components

    def to_original(self, components, n_rows):
        return 0.5 * components


class Recorded(Task):
    """A task that remembers how it was used, and wants to start at a multiple."""

    def __init__(self, multiple):
        super().__init__(Halved())
        self.multiple, self.resumed = multiple, []

    def best_scale(self, components):
        return self.multiple

    def resume(self, warm, components):
        self.resumed.append(components)

    def warm_start(self, found, components):
        return WarmStart(components, at_end_of_path=True)


class Recording:
    """An objective with that task."""

    form = Form.SOFTMAX
    dtype = np.dtype(np.float64)

    def __init__(self, multiple=1.0):
        self.made = Recorded(multiple)

    def prove(self, task, found, components, care=0):
        return Proof(3.0, 0.0, bound=2.0, floor=4.0)

    def task(self, targets):
        return self.made


@pytest.fixture
def starts(monkeypatch):
    """Where the minimiser is asked to start, and whether warmly."""
    seen = []

    def minimize(task, components, run):
        seen.append((components.copy(), run.warm))
        return Solution(components + 1.0, 3.0, bound=2.0, gap=0.25)

    monkeypatch.setitem(path.MINIMIZERS, Form.SOFTMAX, minimize)
    return seen


def test_conditioned_and_mapped_back(starts):
    found = path.solve(Recording(), None, np.eye(2), tol=0.1, max_iter=1)
    np.testing.assert_array_equal(starts[0][0], 2.0 * np.eye(2))
    np.testing.assert_array_equal(found.components, 0.5 * (2.0 * np.eye(2) + 1.0))
    assert (found.objective, found.bound, found.gap) == (3.0, 2.0, 0.25)
    np.testing.assert_array_equal(found.state.components, found.components)


@pytest.mark.parametrize(("multiple", "factor"), [(9.0, 3.0), (0.25, 0.5), (1.5, 1.0), (0.6, 1.0)])
def test_scaled_where_that_is_worthwhile(starts, multiple, factor):
    path.solve(Recording(multiple), None, np.eye(2), tol=0.1, max_iter=1)
    np.testing.assert_allclose(starts[0][0], 2.0 * factor * np.eye(2))


def test_a_start_may_keep_its_scale(starts):
    path.solve(Recording(9.0), None, np.eye(2), tol=0.1, max_iter=1, keep_scale=True)
    np.testing.assert_array_equal(starts[0][0], 2.0 * np.eye(2))


def test_a_warm_start_helps_where_it_was_made(starts):
    """It is neither scaled nor cold there; elsewhere it is as if it were not."""
    objective = Recording(9.0)
    warm = WarmStart(np.eye(2), at_end_of_path=True)
    path.solve(objective, None, np.eye(2), tol=0.1, max_iter=1, warm=warm)
    path.solve(objective, None, 3.0 * np.eye(2), tol=0.1, max_iter=1, warm=warm)
    assert [warm for _, warm in starts] == [True, False]
    np.testing.assert_array_equal(starts[0][0], 2.0 * np.eye(2))
    np.testing.assert_array_equal(starts[1][0], 18.0 * np.eye(2))
    assert len(objective.made.resumed) == 1


def test_every_form_has_its_minimizer():
    assert set(path.MINIMIZERS) == set(Form)


def test_no_number_as_the_objective_of_a_learner_from_outside():
    class Broken:
        fixed_row_sizes, cost_grows_with_distance = False, True

        def pair_costs(self, components, pairs):
            return np.zeros(pairs.size)

        def free_term(self, components):
            return 0.0

        def solve(self, targets, components, *, tol, state=None, monitor=None):
            return Solution(components, np.nan)

    training = training_set(*blobs(0, [5, 5], 2))
    assert training.n_target_pairs == 40
    with pytest.raises(FloatingPointError, match=r"Broken.solve returned an objective of nan"):
        resumable(Broken()).solve(None, np.eye(2), tol=0.1)


def test_no_number_as_the_objective_of_one_of_ours(monkeypatch):
    def minimize(task, components, run):
        return Solution(components, np.inf)

    monkeypatch.setitem(path.MINIMIZERS, Form.HINGES, minimize)
    training = training_set(*blobs(0, [5, 5], 2))
    problem = ObjectiveProblem(LMNNObjective(training, 0.5), 10)
    targets = nearest_neighborhoods(training, np.eye(2), 2)
    with pytest.raises(
        FloatingPointError, match=r"the solve of LMNNObjective returned an objective of inf"
    ):
        problem.solve(targets, np.eye(2), tol=0.1)
