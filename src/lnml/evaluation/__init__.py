"""Compare metrics by what they are for: nearest-neighbour classification."""

from lnml.evaluation.crossval import FoldResult, cross_validate, predict_nearest

__all__ = ["FoldResult", "cross_validate", "predict_nearest"]
