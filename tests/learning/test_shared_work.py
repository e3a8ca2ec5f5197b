"""How many full searches and evaluations a fit takes: what is shared stays shared."""

import numpy as np
import pytest
from sklearn.preprocessing import scale

from lnml import LMNN, LNML, MCML
from lnml.core.labels import classes_by_appearance
from lnml.datasets import load_dataset
from lnml.kernels.cpu import CPUKernels
from lnml.objectives import mcml

# Searches and evaluations of the hinge that fits of 4,000 rows of Letter take. Those of LNML were
# 20 and 333, 28 and 319 when each round began a new model of the curvature (commit 33de81d).
KNOWN = [
    (LMNN(), 4, 57),
    (LNML(tol=1e-2, max_rounds=10), 13, 171),
    (LNML(k_min=1, k_av=3, k_max=5, tol=1e-2, max_rounds=10), 25, 173),
]


@pytest.fixture
def calls(monkeypatch):
    """Number of calls of two kernels, by name."""
    counts = dict.fromkeys(("within", "hinge"), 0)

    def counted(name):
        kernel = getattr(CPUKernels, name)

        def call(self, *args, **kwargs):
            found = kernel(self, *args, **kwargs)
            # A search that was known already is no new one.
            counts[name] += found is not kwargs.get("known", self)
            return found

        return call

    for name in counts:
        monkeypatch.setattr(CPUKernels, name, counted(name))
    return counts


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "searches", "evaluations"), KNOWN, ids=["LMNN", "333", "135"]
)
def test_letter(calls, estimator, searches, evaluations):
    letter = load_dataset("letter")
    X, codes = letter.data[:4000], classes_by_appearance(letter.target[:4000]).codes
    estimator.fit(X, np.asarray(codes))
    assert 0 < calls["within"] <= searches
    # A few more or less with other versions of BLAS and SciPy.
    assert 0 < calls["hinge"] <= 1.1 * evaluations


# Passes over all pairs that LNML(MCML()) took on standardised columns when each round began a new
# model of the curvature (commit 57ed609: 490, 1,043 and 420), and the most it may take now.
SOFTMAX = [("iris", 300), ("wine", 650), ("balance_scale", 300)]


@pytest.mark.parametrize(("name", "most"), SOFTMAX)
def test_softmax(monkeypatch, name, most):
    """Rounds share the curvature, and only the last one is proved."""
    counts = {"passes": 0, "proofs": 0}
    softmax, prove = CPUKernels.softmax, mcml.prove_mcml

    def passes(self, *args, **kwargs):
        counts["passes"] += 1
        return softmax(self, *args, **kwargs)

    def proofs(training, task, components, care, ridge):
        counts["proofs"] += care == 0
        return prove(training, task, components, care, ridge)

    monkeypatch.setattr(CPUKernels, "softmax", passes)
    monkeypatch.setattr(mcml, "prove_mcml", proofs)
    data = load_dataset(name)
    model = LNML(MCML()).fit(scale(data.data), data.target)
    assert model.converged_ and model.duality_gap_ <= 1e-3
    assert counts["proofs"] <= 2
    assert 0 < counts["passes"] <= most
