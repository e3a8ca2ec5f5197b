"""Results of a search over candidates, in the layout of scikit-learn's searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from lnml.neighborhoods.assignment import Sizes


class CandidateFit(NamedTuple):
    """One candidate in one fold."""

    components: np.ndarray
    score: float
    converged: bool
    fit_seconds: float
    score_seconds: float


def search_results(grid: list[Sizes], folds: Sequence[Sequence[CandidateFit]]) -> dict[str, Any]:
    """Return the results in the layout of scikit-learn's searches."""
    table = {
        "fit_time": np.array([[fit.fit_seconds for fit in fold] for fold in folds]),
        "score_time": np.array([[fit.score_seconds for fit in fold] for fold in folds]),
        "test_score": np.array([[fit.score for fit in fold] for fold in folds]),
    }
    results: dict[str, Any] = {"params": [sizes._asdict() for sizes in grid]}
    for name in Sizes._fields:
        values = [getattr(sizes, name) for sizes in grid]
        results[f"param_{name}"] = np.ma.masked_array(values, mask=False)
    for key, numbers in table.items():
        results[f"mean_{key}"], results[f"std_{key}"] = numbers.mean(axis=0), numbers.std(axis=0)
    for number, scores in enumerate(table["test_score"]):
        results[f"split{number}_test_score"] = scores
    ranks = rankdata(-results["mean_test_score"], method="min")
    results["rank_test_score"] = ranks.astype(np.int32)
    return results
