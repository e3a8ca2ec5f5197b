"""scikit-learn's own checks, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lnml import ITML, LMNN, LNML, MCML, MMC, NCA


# What scikit-learn itself skips here is its array API check: it runs only with
# SCIPY_ARRAY_API=1, and none of these estimators claims array API support.
@parametrize_with_checks([LMNN(), MCML(), NCA(), LNML(), LNML(MCML()), ITML(), MMC(), LNML(MMC())])
def test_scikit_learn_check(estimator, check):
    check(estimator)
