"""Results of a search over candidates, in the layout of scikit-learn's searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from lnml.learning.assignment import Sizes


class CandidateFit(NamedTuple):
    """One candidate in one fold; its scores are those of all rounds, or of the last one."""

    components: np.ndarray
    scores: list[float]
    converged: bool
    fit_seconds: float
    score_seconds: float


def search_results(
    grid: list[Sizes], folds: Sequence[Sequence[CandidateFit]], max_rounds: int | None = None
) -> dict[str, Any]:
    """Return the results in the layout of scikit-learn's searches.

    Parameters
    ----------
    grid : list of Sizes
        Candidates.
    folds : sequence of sequence of CandidateFit
        By fold and candidate.
    max_rounds : int, default=None
        If given, rounds are chosen, too: of each candidate the number with the best mean
        score, and ``max_rounds`` itself where that is the last one.
    """
    curves = [_round_scores([fold[c] for fold in folds]) for c in range(len(grid))]
    # Without a choice of rounds there is one score a fold, and this is its position.
    best = [int(curve.mean(axis=0).argmax()) for curve in curves]
    scores = np.array([curve[:, at] for curve, at in zip(curves, best, strict=True)]).T
    params = [sizes._asdict() for sizes in grid]
    if max_rounds is not None:
        for candidate, curve, at in zip(params, curves, best, strict=True):
            candidate["max_rounds"] = max_rounds if at + 1 == curve.shape[1] else at + 1
    table = {
        "fit_time": np.array([[fit.fit_seconds for fit in fold] for fold in folds]),
        "score_time": np.array([[fit.score_seconds for fit in fold] for fold in folds]),
        "test_score": scores,
    }
    results = results_table(params, table)
    if max_rounds is not None:
        results["mean_round_scores"] = [curve.mean(axis=0) for curve in curves]
    return results


def results_table(params: list[dict[str, Any]], table: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return means, deviations, single scores and ranks of candidates.

    Parameters
    ----------
    params : list of dict
        Parameters of the candidates; one that lacks a parameter is masked there.
    table : dict of ndarray of shape (n_folds, n_candidates)
        Numbers by name, ``test_score`` among them. Where one is NaN, the mean is, too, and
        such candidates rank last.
    """
    results: dict[str, Any] = {"params": params}
    for name in dict.fromkeys(name for candidate in params for name in candidate):
        values = [candidate.get(name, 0) for candidate in params]
        mask = [name not in candidate for candidate in params]
        results[f"param_{name}"] = np.ma.masked_array(values, mask=mask)
    for key, numbers in table.items():
        results[f"mean_{key}"], results[f"std_{key}"] = numbers.mean(axis=0), numbers.std(axis=0)
    for number, of_fold in enumerate(table["test_score"]):
        results[f"split{number}_test_score"] = of_fold
    scores = np.nan_to_num(results["mean_test_score"], nan=-np.inf)
    ranks = rankdata(-scores, method="min")
    results["rank_test_score"] = ranks.astype(np.int32)
    return results


def _round_scores(fits: Sequence[CandidateFit]) -> np.ndarray:
    """Scores by fold and round; a fit that ended early keeps its last one."""
    most = max(len(fit.scores) for fit in fits)
    return np.array([fit.scores + fit.scores[-1:] * (most - len(fit.scores)) for fit in fits])
