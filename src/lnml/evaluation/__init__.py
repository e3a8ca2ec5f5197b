"""Compare learned metrics, test their differences, and list the rows they trust least."""

from lnml.evaluation.crossval import compare
from lnml.evaluation.ranks import critical_difference
from lnml.evaluation.results import Comparison, DataSummary, FoldResult
from lnml.evaluation.retrieval import map_at_r, r_precision, recall_at_k
from lnml.evaluation.statistics import (
    accuracy_interval,
    best_methods,
    classifier_tests,
    holm,
    mcnemar,
    pairwise_mcnemar,
    paper_scores,
    total_scores,
)
from lnml.learning.knn import predict_nearest
from lnml.learning.trust import least_trusted

__all__ = [
    "Comparison",
    "DataSummary",
    "FoldResult",
    "accuracy_interval",
    "best_methods",
    "classifier_tests",
    "compare",
    "critical_difference",
    "holm",
    "least_trusted",
    "map_at_r",
    "mcnemar",
    "pairwise_mcnemar",
    "paper_scores",
    "predict_nearest",
    "r_precision",
    "recall_at_k",
    "total_scores",
]
