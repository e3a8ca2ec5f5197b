"""Learn a distance metric together with the neighbourhoods it is learned from."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lnml.registry import LEARNERS
from lnml.version import __version__ as __version__

# begin: written by docs/figures/make_tables.py
if TYPE_CHECKING:
    from lnml.core.neighborhoods import Neighborhoods
    from lnml.estimators.auto import AutoMetric
    from lnml.estimators.averaged import AveragedMetric
    from lnml.estimators.itml import ITML
    from lnml.estimators.lmnn import LMNN
    from lnml.estimators.lnml import LNML
    from lnml.estimators.lnml_cv import LNMLCV
    from lnml.estimators.mcml import MCML
    from lnml.estimators.mmc import MMC
    from lnml.estimators.nca import NCA
    from lnml.estimators.relative_comparisons import RelativeComparisons
    from lnml.estimators.support_vector import SupportVectorMetric
    from lnml.estimators.trace_path import TracePath, trace_path
    from lnml.learning.assignment import assign_neighborhoods
    from lnml.learning.similarity import similarity_graph
    from lnml.learning.trust import least_trusted
    from lnml.memory import estimate_memory

__all__ = [
    "ITML",
    "LMNN",
    "LNML",
    "LNMLCV",
    "MCML",
    "MMC",
    "NCA",
    "AutoMetric",
    "AveragedMetric",
    "Neighborhoods",
    "RelativeComparisons",
    "SupportVectorMetric",
    "TracePath",
    "assign_neighborhoods",
    "estimate_memory",
    "least_trusted",
    "similarity_graph",
    "trace_path",
]
# end: docs/figures/make_tables.py

_MODULES = {entry.class_name: f"lnml.estimators.{entry.module}" for entry in LEARNERS} | {
    "AutoMetric": "lnml.estimators.auto",
    "AveragedMetric": "lnml.estimators.averaged",
    "LNML": "lnml.estimators.lnml",
    "LNMLCV": "lnml.estimators.lnml_cv",
    "Neighborhoods": "lnml.core.neighborhoods",
    "assign_neighborhoods": "lnml.learning.assignment",
    "estimate_memory": "lnml.memory",
    "least_trusted": "lnml.learning.trust",
    "similarity_graph": "lnml.learning.similarity",
    "TracePath": "lnml.estimators.trace_path",
    "trace_path": "lnml.estimators.trace_path",
}


if not TYPE_CHECKING:
    # scikit-learn and Numba take seconds to import; `lnml --help` needs neither.
    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'lnml' has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
