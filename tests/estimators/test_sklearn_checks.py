"""scikit-learn's own checks, for every estimator."""

from learners import COUPLED, MEANS, METHODS, SEARCH
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

# The checks are about the interface, so loose fits and two of the couplings do. They set
# n_components=2 wherever there is such a parameter, which a diagonal metric refuses.
ESTIMATORS = [
    clone(learner).set_params(tol=0.1)
    for learner in [*METHODS, *COUPLED[:2], SEARCH]
    if not getattr(learner, "diagonal", False)
] + MEANS


# What scikit-learn itself skips here is its array API check: it runs only with
# SCIPY_ARRAY_API=1, and none of these estimators claims array API support.
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
