"""Names of classes do not matter: renaming them changes no bit of a fit."""

import numpy as np
import pytest
from learners import ALL, short_name
from sklearn.base import clone
from toy_data import small_dataset

from lnml import LMNN, LNMLCV

pytestmark = [
    pytest.mark.usefixtures("device"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

ESTIMATORS = [*ALL, LMNN(init="lda", n_components=2), LNMLCV(grid=[(3, 3, 3)], n_jobs=1, tol=0.1)]


def renamed(y):
    """Other names, in the opposite order."""
    names = np.unique(y)
    return np.array([f"z{position:02d}" for position in range(names.size)])[
        names.size - 1 - np.searchsorted(names, y)
    ]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=short_name)
def test_renaming_changes_no_bit(estimator):
    X, y = small_dataset("wine", n_rows=90)
    # Classes in an order that no sorting of either name gives.
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order], y[order]
    first = clone(estimator).fit(X, y)
    second = clone(estimator).fit(X, renamed(y))
    assert np.asarray(first.components_).tobytes() == np.asarray(second.components_).tobytes()
    assert first.objective_ == second.objective_
    assert first.n_iter_ == second.n_iter_
    assert second.classes_.tolist() == sorted(set(renamed(y)))
