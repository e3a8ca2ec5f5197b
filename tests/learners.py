"""Every estimator of the library: a new one takes part in the shared tests by a line here."""

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

METHODS = [
    LMNN(),
    MCML(),
    NCA(),
    ITML(random_state=0),
    MMC(),
    MMC(diagonal=True),
    RelativeComparisons(),
    SupportVectorMetric(),
]
COUPLED = [
    LNML(LMNN(), k_min=1, k_av=2, k_max=3),
    LNML(MCML()),
    LNML(MMC(), k_min=5, k_av=7, k_max=9),
    LNML(RelativeComparisons(), k_min=1, k_av=2, k_max=3),
    LNML(SupportVectorMetric(), k_min=1, k_av=2, k_max=3),
]
SEARCH = LNMLCV(grid=[(3, 3, 3), (1, 3, 5)], tol=0.1)
ALL = [*METHODS, *COUPLED, SEARCH]


def short_name(estimator):
    """Name for test ids: ``LNML-MMC`` rather than all parameters."""
    name = type(estimator).__name__
    if getattr(estimator, "diagonal", False):
        name = f"diagonal-{name}"
    if isinstance(estimator, LNML):
        name = f"{name}-{short_name(estimator.estimator)}"
    return name
