"""What :class:`lnml.AutoMetric` chooses from, and how carefully."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lnml.estimators.base import MetricLearner
from lnml.estimators.lnml import LNML
from lnml.learning.assignment import Sizes

# docs/generalisation.md has the measurements behind all of these.
PENALTIES = (0.01, 0.1, 0.0)
FLEXIBLE_SIZES = (Sizes(1, 3, 5), Sizes(3, 3, 3))
# For a learner that needs equal sizes (MCML): without a penalty such fits prove nothing.
FIXED_PENALTIES = (0.1, 0.01)
FIXED_SIZES = (Sizes(5, 5, 5),)
# For a learner without neighbourhoods (NCA): its objective is a share of the rows.
SOFT_PENALTIES = (0.01, 0.001, 0.1)
# A candidate replaces the default if it is better by more than so many standard errors.
CAREFUL = 1.0


class Candidate(NamedTuple):
    """One of the metrics to choose from.

    Attributes
    ----------
    params : dict
        How ``best_params_`` and ``cv_results_`` name it.
    estimator : estimator or None
        What is fitted to each subsample; None for the Euclidean metric.
    """

    params: dict[str, Any]
    estimator: Any

    @property
    def name(self) -> str:
        """The candidate in words."""
        params = dict(self.params)
        text = params.pop("method")
        if "k_min" in params:
            sizes = [params.pop(f"k_{which}") for which in ("min", "av", "max")]
            fixed = sizes[0] == sizes[2]
            text += f" with {sizes[0]}" + ("" if fixed else f" to {sizes[2]}") + " neighbours"
        if params.get("trace_penalty"):
            text += f", trace_penalty={params['trace_penalty']:g}"
        return text


def candidates(
    base: Any,
    penalties: Sequence[float],
    sizes: Sequence[Sizes],
    *,
    plain_first: bool,
    **parameters: Any,
) -> list[Candidate]:
    """Return the candidates for a base learner; the first one is the default.

    Parameters
    ----------
    base : estimator
        LMNN, MCML, NCA or another learner with a ``trace_penalty``.
    penalties : sequence of float
        Penalties to try.
    sizes : sequence of Sizes
        Sizes of learned neighbourhoods; none for a learner that has none.
    plain_first : bool
        Whether the learner on its own comes first.
    **parameters
        Further parameters of :class:`lnml.LNML`.
    """
    name = type(base).__name__
    plain, learned = [], []
    for penalty in penalties:
        learner = clone(base).set_params(trace_penalty=penalty)
        plain.append(Candidate({"method": name, "trace_penalty": penalty}, learner))
        for each in sizes:
            params = {"method": f"LN-{name}", "trace_penalty": penalty, **each._asdict()}
            learned.append(Candidate(params, LNML(learner, **each._asdict(), **parameters)))
    ordered = [*plain, *learned] if plain_first else [*learned, *plain]
    return [*ordered, Candidate({"method": "Euclidean"}, None)]


def can_be_coupled(base: Any) -> bool:
    """Whether LNML can learn neighbourhoods for a base learner."""
    return isinstance(base, MetricLearner) and not base.not_coupled_because


class Choice(NamedTuple):
    """Which candidate is taken, and why.

    Attributes
    ----------
    best : int
        Position of the candidate.
    gains, errors : ndarrays of shape (n_candidates,)
        Share of the rows left out on which each is right more often than the default, and
        its standard error.
    reason : str
        A sentence.
    """

    best: int
    gains: np.ndarray
    errors: np.ndarray
    reason: str


def choose(names: Sequence[str], correct: Sequence[np.ndarray | None]) -> Choice:
    """Take the default, the first, unless another is better by more than noise.

    If the default could not be fitted, the next one that could stands for it.

    Parameters
    ----------
    names : sequence of str
        The candidates.
    correct : sequence of ndarray of bool, shape (m,), or None
        Whether each is right on the rows left out, or on the first of them; None if it could
        not be fitted. One of them was.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.array([[1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1]], dtype=bool)
    >>> choose(["this", "that"], right).best, choose(["this", "that"], right[:, :3]).best
    (1, 0)
    """
    first = first_fitted(correct)
    default = correct[first]
    assert default is not None
    why = "the default" if first == 0 else "the first that could be fitted"
    gains, errors = (np.full(len(correct), np.nan) for _ in range(2))
    for number, right in enumerate(correct):
        if right is not None and right.size:
            difference = right.astype(np.float64) - default[: right.size]
            gains[number] = difference.mean()
            errors[number] = difference.std() / np.sqrt(right.size)
    if default.size == 0:
        return Choice(first, gains, errors, f"{names[first]}, {why}: no rows could be left out")
    clear = np.flatnonzero((gains > 0.0) & (gains > CAREFUL * errors))
    if clear.size:
        best = int(clear[gains[clear].argmax()])
        better = f"{100 * gains[best]:.1f} ± {100 * errors[best]:.1f} points"
        reason = (
            f"{names[best]}: on rows left out its nearest neighbours are right more often than "
            f"those of {why} ({names[first]}), by {better}"
        )
        return Choice(best, gains, errors, reason)
    rivals = np.where(np.arange(len(gains)) != first, gains, np.nan)
    if np.isnan(rivals).all():
        return Choice(first, gains, errors, f"{names[first]}, {why}: no other was fitted")
    best = int(np.nanargmax(rivals))
    reason = (
        f"{names[first]}, {why}: no other candidate is better by more than noise (the best is "
        f"{names[best]}, by {100 * gains[best]:+.1f} ± {100 * errors[best]:.1f} points)"
    )
    return Choice(first, gains, errors, reason)


def first_fitted(correct: Sequence[np.ndarray | None]) -> int:
    """Position of the first candidate that could be fitted: what others are compared with."""
    return next(number for number, right in enumerate(correct) if right is not None)
