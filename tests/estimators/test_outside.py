"""Learners from outside: plain parameters, NumPy's numbers, and fits that do not converge."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from toy_data import blobs

from lnml import LNML, AutoMetric, AveragedMetric
from lnml.contract import MetricLearner, Solution, nearest_neighborhoods


class PairSums:
    """The sum of squared distances of target pairs, which is 'solved' by staying put."""

    fixed_row_sizes = False
    cost_grows_with_distance = True

    def __init__(self, training, converged):
        self.kernels, self.points, self.converged = training.kernels, training.points, converged

    def pair_costs(self, components, pairs):
        return self.kernels.distances(self.kernels.embed(self.points, components), pairs)

    def free_term(self, components):
        return 0.0

    def solve(self, targets, components, *, tol, state=None, monitor=None):
        objective = np.float64(self.pair_costs(components, targets).sum())
        return Solution(components, objective, gap=np.float64(0.5), converged=self.converged)


class Plain(MetricLearner):
    """It has no parameter of the library's own: no tol, no max_iter."""

    def __init__(self, *, converged=False):
        self.converged = converged

    def metric_problem(self, training):
        return PairSums(training, np.bool_(self.converged))

    def default_targets(self, training, classes):
        return nearest_neighborhoods(training, np.eye(training.points.n_features), 3)


class WithTolerance(Plain):
    def __init__(self, *, tol=1e-3, trace_penalty=0.0):
        self.tol = tol
        self.trace_penalty = trace_penalty
        self.converged = False


ROWS = blobs(0, [20, 18, 16], 3)


def test_fitted_values_are_pythons():
    model = Plain(converged=True).fit(*ROWS)
    assert model.converged_ is True
    assert type(model.duality_gap_) is float and type(model.objective_) is float


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Plain(), r"Plain stopped at a limit of its own .*: its metric may be far"),
        (WithTolerance(), r"WithTolerance stopped at a limit of its own .*: accept a larger tol"),
        (LNML(Plain()), r"LNML stopped at a limit of its own .*: accept a larger tol"),
        (LNML(Plain(), max_rounds=1), r"LNML stopped at max_rounds=1 .*: raise max_rounds, or"),
    ],
    ids=["alone", "with tol", "in LNML", "in one round"],
)
def test_a_fit_that_does_not_converge_warns_of_what_can_be_changed(model, message):
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(*ROWS)
    assert "max_iter" not in str(caught[0].message)
    assert model.converged_ is False


def test_in_an_average():
    with pytest.warns(ConvergenceWarning, match="4 of the 4 fits did not meet"):
        model = AveragedMetric(Plain()).fit(*ROWS)
    assert model.converged_ is False


def test_auto_metric_needs_the_parameters_that_it_sets():
    with pytest.raises(TypeError, match=r"AutoMetric cannot use Plain: .* trace_penalty and a tol"):
        AutoMetric(Plain()).fit(*ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert AutoMetric(WithTolerance()).fit(*ROWS).components_.shape == (3, 3)
