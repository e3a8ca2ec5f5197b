"""Every estimator of the library: a new line of the registry takes part in the shared tests."""

from lnml import LMNN, LNML, LNMLCV, MMC, AutoMetric, AveragedMetric
from lnml.contract import MetricLearner
from lnml.registry import LEARNERS

# Parameters that a learner needs beside its defaults, as a second entry of its own.
VARIANTS = [MMC(diagonal=True)]
# Sizes of neighbourhoods, where others than (1, 2, 3) suit a learner.
SIZES = {"MCML": (3, 3, 3), "MMC": (5, 7, 9)}


def coupled(estimator):
    """LNML around a learner."""
    k_min, k_av, k_max = SIZES.get(type(estimator).__name__, (1, 2, 3))
    return LNML(estimator, k_min=k_min, k_av=k_av, k_max=k_max)


METHODS = [*(entry.make(0) for entry in LEARNERS), *VARIANTS]
COUPLED = [
    coupled(entry.make(0)) for entry in LEARNERS if issubclass(entry.estimator_class, MetricLearner)
]
SEARCH = LNMLCV(grid=[(3, 3, 3), (1, 3, 5)], tol=0.1)
# Loose fits and few of them: what the shared tests look at does not depend on that.
AVERAGED = AveragedMetric(
    LNML(LMNN(trace_penalty=0.01), k_min=1, k_av=2, k_max=3, max_rounds=2, tol=0.1), n_subsamples=2
)
AUTO = AutoMetric(trace_penalties=[0.01], sizes=[(1, 2, 3)], n_subsamples=2, max_rounds=2, tol=0.1)
MEANS = [AVERAGED, AUTO]
# A mean of metrics is the optimum of no problem.
WITH_OBJECTIVE = [*METHODS, *COUPLED, SEARCH]
ALL = [*WITH_OBJECTIVE, *MEANS]


def short_name(estimator):
    """Name for test ids: ``LNML-MMC`` rather than all parameters."""
    name = type(estimator).__name__
    if getattr(estimator, "diagonal", False):
        name = f"diagonal-{name}"
    if isinstance(estimator, LNML):
        name = f"{name}-{short_name(estimator.estimator)}"
    return name
