"""scikit-learn's own checks, for every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lnml import (
    ITML,
    LMNN,
    LNML,
    LNMLCV,
    MCML,
    MMC,
    NCA,
    RelativeComparisons,
    SupportVectorMetric,
)

ESTIMATORS = [
    LMNN(),
    MCML(),
    NCA(),
    ITML(),
    MMC(),
    RelativeComparisons(),
    SupportVectorMetric(),
    LNML(),
    LNML(MCML()),
    LNMLCV(grid=[(3, 3, 3), (1, 3, 5)], tol=0.1),
]


# What scikit-learn itself skips here is its array API check: it runs only with
# SCIPY_ARRAY_API=1, and none of these estimators claims array API support.
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
