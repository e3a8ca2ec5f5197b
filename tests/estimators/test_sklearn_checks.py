"""scikit-learn's own checks, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lnml import LMNN, LNML, MCML


# What scikit-learn itself skips here is its array API check, which needs an
# extra package and applies to estimators that declare array API support only.
@parametrize_with_checks([LMNN(), MCML(), LNML(), LNML(MCML())])
def test_scikit_learn_check(estimator, check):
    check(estimator)
