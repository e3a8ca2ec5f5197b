"""A metric learner whose parameters are chosen by cross-validation."""

import warnings

import numpy as np

from lnml import ITML
from lnml.datasets import load_dataset
from lnml.estimators.metric import MahalanobisMetric
from lnml.estimators.tuned import TunedMetric


class OneColumn(MahalanobisMetric):
    """Sees one feature only."""

    objective_, converged_, duality_gap_, history_ = 0.0, True, None, []

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.components_ = np.eye(X.shape[1])[[self.column]]
        self.n_features_in_ = X.shape[1]
        return self


def test_tuned_metric_takes_the_better_parameter():
    rng = np.random.default_rng(0)
    y = np.tile(["a", "b"], 20)
    X = np.stack([rng.standard_normal(40), (y == "b") + 0.01 * rng.standard_normal(40)], axis=1)
    model = TunedMetric(OneColumn(), {"column": [0, 1]}).fit(X, y)
    assert model.best_params_ == {"column": 1}
    np.testing.assert_array_equal(model.transform(X)[:, 0], X[:, 1])


def test_candidates_of_a_tuned_metric_may_stop_early_and_the_chosen_one_does_not():
    iris = load_dataset("iris")
    limits = {"max_iter": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Candidates that stop early are no one's business.
        model = TunedMetric(
            ITML(random_state=0), {"gamma": [1.0, 10.0]}, candidate_params=limits
        ).fit(iris.data, iris.target)
    assert model.converged_
    assert model.best_estimator_.max_iter == ITML().max_iter
    assert model.best_estimator_.n_iter_ > 1
