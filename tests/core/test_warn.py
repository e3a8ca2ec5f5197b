"""Warnings point at the line that called the library."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from toy_data import blobs

from lnml import ITML, LMNN, LNML, MMC, assign_neighborhoods


def fits():
    """Calls that warn, each from another depth of the library."""
    X, y = blobs(0, [12, 2, 15], 3)
    few = np.repeat(np.eye(4), 3, axis=0)
    copies, labels = np.zeros((8, 2)), np.arange(8) % 2
    copies[4:] = 1.0
    return {
        "max_iter": (LMNN(max_iter=1, tol=1e-9, n_neighbors=1).fit, X, y, ConvergenceWarning),
        "max_rounds": (LNML(max_rounds=1, k_min=1, k_av=1, k_max=1).fit, X, y, ConvergenceWarning),
        "small classes": (LMNN().fit, X, y, UserWarning),
        "collapse": (MMC().fit, few, np.repeat(np.arange(4), 3), UserWarning),
        "impossible": (ITML(random_state=0, bounds=(1, 2)).fit, copies, labels, UserWarning),
    }


@pytest.mark.parametrize("name", fits())
def test_a_fit(name):
    fit, X, y, category = fits()[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        fit(X, y)
    found = [w for w in caught if issubclass(w.category, category)]
    assert found
    assert {(w.filename, w.lineno) for w in found} == {(__file__, line)}


def test_a_function():
    with pytest.warns(UserWarning, match="too small") as caught:
        assign_neighborhoods(np.zeros((3, 3)), ["a", "a", "b"])
    assert caught[0].filename == __file__
