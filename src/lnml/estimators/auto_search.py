"""The comparison of candidates for :class:`lnml.AutoMetric`: fits to subsamples, and a choice."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from lnml.core.chance import own_generator
from lnml.core.monitor import Monitor
from lnml.core.warn import warn_user
from lnml.estimators.auto_candidates import Candidate, Choice, choose, first_fitted
from lnml.estimators.cv_results import results_table
from lnml.estimators.subsamples import SubsampleFit, fit_subsamples
from lnml.estimators.validation import TrainingRows
from lnml.kernels.dask_rows import brought
from lnml.kernels.tensors import is_dask
from lnml.learning.averages import balanced_subsamples
from lnml.learning.votes import CANDIDATES as VOTES
from lnml.learning.votes import choose_votes

# Rows that are brought from a cluster, if the user names no number: an accuracy is then known to
# 0.2 or 0.3 points, and a fit to them takes minutes at most.
CLUSTER_ROWS = 20_000


class CandidateSearch:
    """Fits of candidates to subsamples, judged by the rows left out.

    A candidate that is no better than the default on the first half of the subsamples is not
    fitted to the others: it would have to be clearly better on all of them.

    Candidates are compared on a sample of the rows where that was asked for, and always where
    Dask has the rows. The sample depends on the labels and the seed, and on nothing else: not on
    chunks, nor on workers.

    Parameters
    ----------
    rows : TrainingRows
        The data; a Dask array is settled (:func:`lnml.kernels.dask_rows.settled`).
    n_subsamples, n_neighbors, search_rows, n_jobs, random_state
        As in :class:`lnml.AutoMetric`, checked.

    Attributes
    ----------
    sample : TrainingRows
        The rows that candidates are compared on; those of Dask were brought here.
    subsamples : list of ndarray of int
        Row numbers of each subsample.
    choice : Choice
        What was chosen, after :meth:`run`.
    """

    choice: Choice
    grid: list[Candidate]

    def __init__(
        self,
        rows: TrainingRows,
        *,
        n_subsamples: int,
        n_neighbors: Any,
        search_rows: int | None,
        n_jobs: int | None,
        random_state: Any,
    ) -> None:
        self.n_jobs, self.count = n_jobs, n_subsamples
        self.X, self.codes, self.labels = rows.X, rows.codes, rows.labels[rows.codes]
        self.rng = own_generator(random_state)
        n = self.codes.size
        if search_rows is None:
            search_rows = CLUSTER_ROWS if is_dask(rows.X) else n
        self.sampled = np.arange(n)
        if search_rows < n:
            self.sampled = balanced_subsamples(self.codes, 1, search_rows / n, self.rng)[0]
        self.is_sample = self.sampled.size < n
        self.sample = rows
        if self.is_sample or is_dask(rows.X):
            here = brought(rows.X, self.sampled)
            self.sample = rows._replace(X=here, codes=self.codes[self.sampled])
        self.subsamples = self._split(self.sampled)
        self.votes = self._vote_numbers(n_neighbors)
        self.fits: dict[int, list[SubsampleFit]] = {}
        # Why the first of those that could not be fitted could not.
        self.failure = ""
        # By candidate: whether the votes are right on all rows left out, and a row of the table.
        self.correct: list[np.ndarray | None] = []
        self.table: list[dict[str, list[float]]] = []

    def _split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return subsamples of some rows, as positions among them."""
        codes = np.unique(self.codes[rows], return_inverse=True)[1].reshape(-1)
        return balanced_subsamples(codes, self.count, 1.0 - 1.0 / self.count, self.rng)

    def _vote_numbers(self, given: Any) -> tuple[int, ...]:
        """Return the numbers of voters; candidates are compared by the first."""
        fewest = min(part.size for part in self.subsamples)
        if given == "auto":
            return tuple(k for k in VOTES if k <= fewest)
        if given > fewest:
            raise ValueError(
                f"n_neighbors={given} exceeds the {fewest} rows of a subsample: choose fewer"
            )
        return (int(given),)

    def run(self, grid: list[Candidate], monitor: Monitor) -> list[SubsampleFit]:
        """Compare candidates, the default first; return the fits of the one that is chosen.

        The Euclidean metric has none.
        """
        self.grid = grid
        X, labels = self.sample.X, self.labels[self.sampled]
        for number, candidate in enumerate(grid):
            fits = self._fitted(candidate.estimator, X, labels)
            self._judge(number, fits)
            stop = monitor.step(self._record(number, fits), partial(_first_metric, fits, X))
            if stop and self.fits:
                break
        if self.correct[0] is None:
            warn_user(f"the default candidate could not be fitted: {self.failure}")
        estimator = self.grid[self.choice.best].estimator
        if estimator is None:
            return []
        if not self.is_sample:
            return self.fits[self.choice.best]
        self.subsamples = self._split(np.arange(self.labels.size))
        if is_dask(self.X):
            # These may take hours.
            estimator = clone(estimator).set_params(verbose=monitor.verbose)
        return fit_subsamples(estimator, self.X, self.labels, self.subsamples, n_jobs=self.n_jobs)

    def _fitted(self, estimator: Any, X: Any, labels: np.ndarray) -> list[SubsampleFit]:
        """Return the fits of a candidate: all, the first half, or none if it cannot be fitted."""

        def fits(parts: list[np.ndarray]) -> list[SubsampleFit]:
            return fit_subsamples(estimator, X, labels, parts, self.votes, self.n_jobs)

        half = self.count // 2
        try:
            if not self.fits:
                return fits(self.subsamples)
            first = fits(self.subsamples[:half])
            if not self._is_ahead(first):
                return first
            return first + fits(self.subsamples[half:])
        except ValueError as error:
            # Such as a penalty that leaves no metric. The Euclidean one always works.
            self.failure = self.failure or str(error)
            return []

    def _is_ahead(self, fits: list[SubsampleFit]) -> bool:
        """Whether some fits are right more often than those of the default."""
        default = self.correct[first_fitted(self.correct)]
        assert default is not None
        right = np.hstack([fit.correct[0] for fit in fits])
        return int(right.sum()) > int(default[0, : right.size].sum())

    def _judge(self, number: int, fits: list[SubsampleFit]) -> None:
        """Take a candidate into account; keep its fits only if it may be chosen."""
        self.correct.append(np.hstack([fit.correct for fit in fits]) if fits else None)
        missing = [np.nan] * (self.count - len(fits))
        self.table.append(
            {
                "test_score": [_mean(fit.correct[0]) for fit in fits] + missing,
                "fit_time": [fit.seconds for fit in fits] + missing,
                "gap": [np.nan if fit.gap is None else fit.gap for fit in fits] + missing,
            }
        )
        if not fits and not self.fits:
            return
        right = [None if correct is None else correct[0] for correct in self.correct]
        self.choice = choose([each.name for each in self.grid[: len(right)]], right)
        self.fits[number] = fits
        kept = (first_fitted(right), self.choice.best)
        self.fits = {k: v for k, v in self.fits.items() if k in kept}

    def _record(self, number: int, fits: list[SubsampleFit]) -> dict[str, Any]:
        """Return a line of ``history_``."""
        gaps = [fit.gap for fit in fits if fit.gap is not None]
        return {
            "candidate": number,
            "params": self.grid[number].params,
            "score": _mean(np.hstack([fit.correct[0] for fit in fits])) if fits else np.nan,
            "gap": max(gaps) if gaps else None,
        }

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes about the choice."""
        index = self.choice.best
        params = [each.params for each in self.grid[: len(self.table)]]
        table = {key: np.array([row[key] for row in self.table]).T for key in self.table[0]}
        results = results_table(params, table)
        results |= {"gain": self.choice.gains, "gain_error": self.choice.errors}
        correct = self.correct[index]
        assert correct is not None, "what could not be fitted is not chosen"
        vote = choose_votes(correct, self.votes) if correct.shape[1] else 0
        return {
            "cv_results_": results,
            "best_index_": index,
            "best_params_": params[index],
            "best_score_": _mean(correct[0]),
            "reason_": self.choice.reason + self._where(),
            "search_sample_": self.sampled if self.is_sample else None,
            "n_neighbors_": self.votes[vote],
        }

    def _where(self) -> str:
        """Say what candidates were compared on, if that was not all."""
        if not self.is_sample:
            return ""
        return (
            f"; compared on {self.sampled.size:,} of the {self.labels.size:,} rows, a sample of "
            f"every class that random_state has drawn"
        )


def _mean(values: np.ndarray) -> float:
    """Mean of some values; NaN of none."""
    return float(values.mean()) if values.size else float("nan")


def _first_metric(fits: list[SubsampleFit], X: Any) -> np.ndarray:
    """Metric that a callback sees: that of the first subsample."""
    return fits[0].components.copy() if fits else np.eye(X.shape[1])
