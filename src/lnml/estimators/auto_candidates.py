"""What :class:`lnml.AutoMetric` chooses from, and how carefully."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lnml.estimators.base import MetricLearner
from lnml.estimators.lnml import LNML
from lnml.learning.assignment import Sizes

# What a candidate is made of: the sizes of its learned neighbourhoods, or None for the base
# learner on its own; and its penalty.
Ingredients = tuple[Sizes | None, float]

# docs/generalisation.md has the measurements behind all of these.
USUAL: tuple[Ingredients, ...] = (
    (Sizes(1, 3, 5), 0.01),
    (Sizes(3, 3, 3), 0.0),
    (None, 0.1),
)
# For a learner that needs equal sizes (MCML): without a penalty such fits prove nothing.
EQUAL = Sizes(5, 5, 5)
EQUAL_SIZES: tuple[Ingredients, ...] = ((None, 0.1), (None, 0.01), (EQUAL, 0.1), (EQUAL, 0.01))
# For a learner without neighbourhoods (NCA): its objective is a share of the rows.
NO_NEIGHBOURHOODS: tuple[Ingredients, ...] = ((None, 0.01), (None, 0.001), (None, 0.1))
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


def candidates(base: Any, plan: Sequence[Ingredients], **parameters: Any) -> list[Candidate]:
    """Return the candidates for a base learner; the first one is the default.

    Parameters
    ----------
    base : estimator
        LMNN, MCML, NCA or another learner with a ``trace_penalty``.
    plan : sequence of (Sizes or None, float)
        Sizes and penalty of each. The Euclidean metric is added.
    **parameters
        Further parameters of :class:`lnml.LNML`.
    """
    name = type(base).__name__
    found = []
    for sizes, penalty in plan:
        learner = clone(base).set_params(trace_penalty=penalty)
        params = {"method": name, "trace_penalty": penalty}
        if sizes is not None:
            learner = LNML(learner, **sizes._asdict(), **parameters)
            params = {**params, "method": f"LN-{name}", **sizes._asdict()}
        found.append(Candidate(params, learner))
    return [*found, Candidate({"method": "Euclidean"}, None)]


def changed_plan(
    plan: Sequence[Ingredients],
    sizes: Sequence[Sizes] | None = None,
    penalties: Sequence[float] | None = None,
) -> list[Ingredients]:
    """Return all pairs of the given sizes and penalties; what is not given is the plan's.

    The base learner on its own is always among them, before or after the others as in the plan.
    """
    learned = [each for each, _ in plan if each is not None] if sizes is None else sizes
    tried = [rho for _, rho in plan] if penalties is None else penalties
    # Each once, in order.
    pairs: list[Ingredients] = list(dict.fromkeys(product(learned, tried)))
    plain: list[Ingredients] = list(dict.fromkeys(product([None], tried)))
    return [*plain, *pairs] if plan[0][0] is None else [*pairs, *plain]


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
