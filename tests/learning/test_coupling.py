"""What a metric problem is told beforehand, and what sizes share."""

from typing import ClassVar

import numpy as np
import pytest
from toy_data import blobs

from lnml import LMNN, LNML, LNMLCV, MCML, MMC
from lnml.contract import MetricLearner, Solution, nearest_neighborhoods
from lnml.learning.assignment import Sizes

CLASS_SIZES = [12, 3, 1, 20]


class Recorder(LMNN):
    """LMNN that remembers what its problem is told."""

    told: ClassVar[list[int]] = []

    def metric_problem(self, training):
        Recorder.told.append(training.n_target_pairs)
        return super().metric_problem(training)


@pytest.fixture(autouse=True)
def forget():
    Recorder.told = []


@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 3, 5), (0, 1, 2), (5, 30, 30)])
def test_number_of_pairs(sizes):
    """Rows of a class of c rows have c - 1 partners at most."""
    expected = sum(c * min(sizes[1], c - 1) for c in CLASS_SIZES)
    assert Sizes(*sizes).n_pairs(np.array(CLASS_SIZES)) == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("sizes", [(3, 3, 3), (1, 2, 5)])
def test_lnml_tells_how_many_pairs_there_will_be(sizes):
    X, y = blobs(0, CLASS_SIZES, 3)
    k_min, k_av, k_max = sizes
    model = LNML(Recorder(), k_min=k_min, k_av=k_av, k_max=k_max, tol=0.1).fit(X, y)
    assert Recorder.told == [model.target_neighbors_.nnz]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_size_of_a_grid_has_its_own_number():
    X, y = blobs(0, [12, 20], 3)
    grid = [(3, 3, 3), (1, 2, 4), (2, 3, 4)]
    LNMLCV(Recorder(), grid=grid, cv=2, tol=0.1, max_rounds=2).fit(X, y)
    # The check of the grid sees all rows, each of the two folds half of them.
    whole, half = [96, 64], [48, 32]
    assert sorted(Recorder.told) == sorted([*whole, *half, *half, *Recorder.told[-1:]])
    assert Recorder.told[-1] in whole


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_of_its_own_tells_how_many_there_are():
    X, y = blobs(0, CLASS_SIZES, 3)
    model = Recorder(tol=0.1).fit(X, y)
    assert Recorder.told == [model.target_neighbors_.nnz]
    given = model.target_neighbors_.toarray()
    given[0] = 0.0
    Recorder(tol=0.1).fit(X, y, target_neighbors=given)
    assert Recorder.told[1] == np.count_nonzero(given)


@pytest.mark.parametrize("base", [MCML, MMC])
def test_without_a_graph_all_pairs_of_a_class_count(base, monkeypatch):
    told = []
    plain = base.metric_problem

    def recording(self, training):
        told.append(training.n_target_pairs)
        return plain(self, training)

    monkeypatch.setattr(base, "metric_problem", recording)
    X, y = blobs(0, CLASS_SIZES, 3)
    base(tol=0.1).fit(X, y)
    assert told == [sum(c * (c - 1) for c in CLASS_SIZES)]


class NeverBetter:
    """A problem from outside whose solver finds nothing better, and counts its calls as state."""

    fixed_row_sizes, cost_grows_with_distance = False, True
    seen: ClassVar[list[int | None]] = []

    def __init__(self, training):
        self.kernels, self.points = training.kernels, training.points

    def pair_costs(self, components, pairs):
        return self.kernels.distances(self.kernels.embed(self.points, components), pairs)

    def free_term(self, components):
        return 0.0

    def solve(self, targets, components, *, tol, state=None, monitor=None):
        self.seen.append(state)
        count = (state or 0) + 1
        worse = float(self.pair_costs(2.0 * components, targets).sum())
        return Solution(2.0 * components, worse, state=count)


class Outside(MetricLearner):
    """Its estimator; it has no max_iter."""

    def metric_problem(self, training):
        return NeverBetter(training)

    def default_targets(self, training, classes):
        return nearest_neighborhoods(training, np.eye(self.n_features_in_), 3)


@pytest.mark.parametrize("model", [LNML(Outside()), LNMLCV(Outside(), grid=[(3, 3, 3)], cv=2)])
def test_state_of_a_learner_from_outside_is_handed_back(model):
    """Also where neighbourhoods are assigned again at a metric whose ranking is shared."""
    NeverBetter.seen.clear()
    X, y = blobs(0, [12, 20], 3)
    model.fit(X, y)
    firsts = [place for place, state in enumerate(NeverBetter.seen) if state is None]
    for first, end in zip(firsts, [*firsts[1:], None], strict=True):
        run = NeverBetter.seen[first:end]
        assert len(run) > 1
        assert run == [None, *range(1, len(run))]


def test_a_learner_from_outside_needs_no_parameters():
    X, y = blobs(0, [12, 20], 3)
    model = Outside().fit(X, y)
    np.testing.assert_array_equal(model.components_, 2.0 * np.eye(3))
    assert model.get_params() == {}
