"""How long a comparison will take, guessed from fits to a few rows."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from lnml.evaluation.problem import FoldData, Problem, stratified_sample
from lnml.evaluation.warmup import warm_up
from lnml.learning.knn import predict_nearest
from lnml.learning.votes import N_FOLDS

# Fits see twice as many rows each time, until one but the first takes as long as this.
FIRST_ROWS = 500
LONG_ENOUGH = 1.5
# Time grows with some power of the rows: sums over all pairs are the worst there is.
LEAST_POWER, LARGEST_POWER = 1.0, 2.0
# Test rows whose nearest rows are searched.
QUERIES = 256


class Guess(NamedTuple):
    """Seconds of one fold of a method (NaN if unknown), from fits to so many rows at most."""

    seconds: float
    rows: int


def guess_fold(
    name: str,
    method: Any,
    data: FoldData,
    *,
    k: int | Literal["auto"] = 1,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Guess:
    """Guess the seconds of one fold of a method.

    Parameters
    ----------
    name : str
        Name of the method in the problem.
    method : estimator or None
        It is cloned; None is the Euclidean metric.
    data : FoldData
        The fold.
    k : int or "auto", default=1
        Neighbours that vote; the choice of a number takes more fits.
    seed : int, default=0
        Seed of the samples.
    clock : callable
        Gives the time in seconds.
    """
    inside, outside = data.matrices(name)
    known = data.problem.labels[data.train]
    goal = data.problem.learned_rows(name, known.size)
    few = outside[:QUERIES]
    # The first search of a process loads compiled code.
    predict_nearest(inside[:2], known[:2], few[:1], 1)
    start = clock()
    predict_nearest(inside, known, few, 1)
    voting = (clock() - start) * len(outside) / len(few)
    if method is None:
        return Guess(voting, 0)
    try:
        seconds, power, rows = _grown(method, inside, known, goal, seed, clock)
    except Exception:
        # Few rows may be too few. The comparison itself says if all are.
        return Guess(math.nan, 0)
    if k == "auto":
        seconds *= 1.0 + N_FOLDS * (1.0 - 1.0 / N_FOLDS) ** power
    return Guess(seconds + voting, rows)


def _grown(
    method: Any,
    inside: np.ndarray,
    known: np.ndarray,
    goal: int,
    seed: int,
    clock: Callable[[], float],
) -> tuple[float, float, int]:
    """Fit more and more rows; seconds for the goal, the power they grow with, rows at the end."""
    warm_up(method, inside)
    power, before, rows = LARGEST_POWER, None, min(FIRST_ROWS, goal)
    while True:
        some = stratified_sample(known, rows, seed)
        start = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(method).fit(inside[some], known[some])
        took = max(clock() - start, 1e-6)
        if before is not None:
            power = math.log(took / before[0]) / math.log(rows / before[1])
            power = min(max(power, LEAST_POWER), LARGEST_POWER)
        # One fit does not say how time grows: it may be long because it has many steps.
        if rows >= goal or (before is not None and took >= LONG_ENOUGH):
            return took * (goal / rows) ** power, power, rows
        before, rows = (took, rows), min(2 * rows, goal)


def forecast(
    problem: Problem,
    methods: Mapping[str, Any],
    missing: Mapping[str, int],
    *,
    n_jobs: int = 1,
    k: int | Literal["auto"] = 1,
    seed: int = 0,
) -> str:
    """Return a sentence on the time that a comparison will take.

    Parameters
    ----------
    problem : Problem
        The table and its folds.
    methods : mapping of str to estimator or None
        By name.
    missing : mapping of str to int
        Folds of each that are still to be run.
    n_jobs : int, default=1
        Folds that run at the same time.
    k : int or "auto", default=1
        Neighbours that vote.
    seed : int, default=0
        Seed of the samples.
    """
    data = FoldData(problem, 0)
    todo = {name: method for name, method in methods.items() if missing[name]}
    guesses = {
        name: guess_fold(name, method, data, k=k, seed=seed) for name, method in todo.items()
    }
    seconds = {name: missing[name] * guess.seconds / n_jobs for name, guess in guesses.items()}
    known = {name: value for name, value in seconds.items() if not math.isnan(value)}
    longest = sorted(known, key=lambda name: -known[name])
    shares = ", ".join(f"{name} {in_words(known[name])}" for name in longest)
    rows = max((guess.rows for guess in guesses.values()), default=0)
    unknown = [name for name in seconds if name not in known]
    without = f" (without {', '.join(unknown)}: not known)" if unknown else ""
    return (
        f"this will take about {in_words(sum(known.values()))}{without}, the pictures apart: "
        f"{shares}; guessed from fits to at most {rows:,} rows, it may be wrong by a factor of two "
        f"or three"
    )


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> in_words(0.2), in_words(50), in_words(1800), in_words(9000)
    ('1 s', '50 s', '30 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
