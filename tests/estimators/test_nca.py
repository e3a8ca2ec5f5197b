"""NCA against scikit-learn's."""

import warnings

import numpy as np
import pytest
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from lnml import LNML, NCA
from lnml.datasets import load_dataset

SMALL = ["wine", "iris", "balance_scale", "sonar", "ionosphere"]


def expected_right(X, y, components):
    """What scikit-learn maximises."""
    model = NeighborhoodComponentsAnalysis()
    model.n_iter_ = 0
    return -float(model._loss_grad_lbfgs(components.ravel(), X, y[:, None] == y, -1.0)[0])


@pytest.mark.parametrize("name", SMALL)
def test_final_value_no_worse_than_scikit_learn_from_the_same_start(name):
    data = load_dataset(name)
    X, y = data.data.astype(float), data.target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = NeighborhoodComponentsAnalysis(init="identity").fit(X, y)
        mine = NCA(init="identity").fit(X, y)
    value = expected_right(X, y, mine.components_)
    np.testing.assert_allclose(len(y) - mine.objective_, value, rtol=1e-8)
    assert value >= expected_right(X, y, theirs.components_) * (1 - 1e-6)


def test_history_never_rises():
    data = load_dataset("wine")
    model = NCA().fit(data.data, data.target)
    objectives = [record["objective"] for record in model.history_]
    assert (np.diff(objectives) <= 1e-12).all()
    assert model.converged_ and model.duality_gap_ is None
    assert objectives[-1] == pytest.approx(model.objective_)


def test_lnml_says_why_it_cannot_couple():
    data = load_dataset("iris")
    with pytest.raises(TypeError, match="not a sum of costs of target pairs"):
        LNML(NCA()).fit(data.data, data.target)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_low_rank_keeps_its_type(dtype):
    data = load_dataset("iris")
    model = NCA(n_components=2).fit(data.data.astype(dtype), data.target)
    assert model.components_.shape == (2, 4)
    assert model.components_.dtype == dtype
