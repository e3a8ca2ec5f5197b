"""Every estimator gives on every device what it gives on the CPU.

This is what `make test` runs of the estimators on torch:cpu; `make test-extras` repeats all of
their tests there.
"""

import pytest
from conftest import DEVICES
from learners import WITH_OBJECTIVE, short_name
from sklearn.base import clone
from toy_data import blobs

pytest.importorskip("torch")
OTHERS = [name for name in DEVICES if name != "cpu"]


@pytest.fixture(scope="module", autouse=True)
def every_device():
    """Name the devices here instead of running all of this on each."""


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("learner", WITH_OBJECTIVE, ids=short_name)
def test_objective_is_that_of_the_cpu(learner, name):
    X, y = blobs(2, [14, 12, 10], 3)
    here = clone(learner).set_params(device="cpu").fit(X, y)
    there = clone(learner).set_params(device=name).fit(X, y)
    assert there.converged_ and here.converged_
    assert there.objective_ == pytest.approx(here.objective_, rel=2 * learner.tol)
