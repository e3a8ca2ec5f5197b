"""What a learned metric is worth, and which rows it was learned from with least trust."""

from lnml.evaluation.crossval import compare
from lnml.evaluation.nearest import predict_nearest
from lnml.evaluation.results import Comparison, DataSummary, FoldResult
from lnml.evaluation.trust import least_trusted

__all__ = [
    "Comparison",
    "DataSummary",
    "FoldResult",
    "compare",
    "least_trusted",
    "predict_nearest",
]
