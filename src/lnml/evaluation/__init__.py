"""Compare learned metrics, test their differences, and list the rows they trust least."""

from lnml.evaluation.crossval import compare
from lnml.evaluation.groups import tied_groups
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
from lnml.evaluation.weights import ColumnWeights, column_weights
from lnml.learning.knn import predict_nearest
from lnml.learning.trust import least_trusted

__all__ = [
    "ColumnWeights",
    "Comparison",
    "DataSummary",
    "FoldResult",
    "accuracy_interval",
    "best_methods",
    "classifier_tests",
    "column_weights",
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
    "tied_groups",
    "total_scores",
]
