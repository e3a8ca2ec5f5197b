"""What a learned metric is worth, and which rows it was learned from with least trust."""

from lnml.evaluation.crossval import cross_validate, predict_nearest
from lnml.evaluation.results import Comparison, DataSummary, FoldResult
from lnml.evaluation.trust import least_trusted

__all__ = [
    "Comparison",
    "DataSummary",
    "FoldResult",
    "cross_validate",
    "least_trusted",
    "predict_nearest",
]
