"""Learn a distance metric together with the neighbourhoods it is learned from."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "ITML": "lnml.estimators.itml",
    "LMNN": "lnml.estimators.lmnn",
    "LNML": "lnml.estimators.lnml",
    "LNMLCV": "lnml.estimators.lnml_cv",
    "MCML": "lnml.estimators.mcml",
    "MMC": "lnml.estimators.mmc",
    "NCA": "lnml.estimators.nca",
    "Neighborhoods": "lnml.neighborhoods",
    "RelativeComparisons": "lnml.estimators.relative_comparisons",
    "SupportVectorMetric": "lnml.estimators.support_vector",
    "assign_neighborhoods": "lnml.neighborhoods",
    "estimate_memory": "lnml.memory",
    "least_trusted": "lnml.evaluation.trust",
    "similarity_graph": "lnml.neighborhoods",
}


# scikit-learn and Numba take seconds to import; `lnml --help` needs neither.
def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'lnml' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
