"""Learn a distance metric together with the neighbourhoods it is learned from."""

from lnml.estimators.itml import ITML
from lnml.estimators.lmnn import LMNN
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.mcml import MCML
from lnml.estimators.mmc import MMC
from lnml.estimators.nca import NCA
from lnml.estimators.relative_comparisons import RelativeComparisons
from lnml.estimators.support_vector import SupportVectorMetric
from lnml.evaluation.trust import least_trusted
from lnml.memory import estimate_memory
from lnml.neighborhoods import Neighborhoods, assign_neighborhoods, similarity_graph

__all__ = [
    "ITML",
    "LMNN",
    "LNML",
    "LNMLCV",
    "MCML",
    "MMC",
    "NCA",
    "Neighborhoods",
    "RelativeComparisons",
    "SupportVectorMetric",
    "assign_neighborhoods",
    "estimate_memory",
    "least_trusted",
    "similarity_graph",
]

__version__ = "0.1.0.dev0"
