"""All that a metric learner from outside needs: see docs/contract.md."""

from lnml.core.contract import MetricProblem
from lnml.core.monitor import FitState, Monitor
from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Edge, Pattern
from lnml.core.solution import Solution
from lnml.estimators.base import MetricLearner
from lnml.kernels.training import TrainingSet
from lnml.learning.targets import nearest_neighborhoods

__all__ = [
    "Edge",
    "FitState",
    "MetricLearner",
    "MetricProblem",
    "Monitor",
    "Neighborhoods",
    "Pattern",
    "Solution",
    "TrainingSet",
    "nearest_neighborhoods",
]
