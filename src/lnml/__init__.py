"""Learn a distance metric together with the neighbourhoods it is learned from."""

from lnml.estimators.lmnn import LMNN
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.mcml import MCML
from lnml.evaluation.trust import least_trusted
from lnml.memory import estimate_memory
from lnml.neighborhoods import Neighborhoods, assign_neighborhoods, similarity_graph

__all__ = [
    "LMNN",
    "LNML",
    "LNMLCV",
    "MCML",
    "Neighborhoods",
    "assign_neighborhoods",
    "estimate_memory",
    "least_trusted",
    "similarity_graph",
]

__version__ = "0.1.0.dev0"
