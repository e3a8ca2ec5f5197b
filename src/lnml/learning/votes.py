"""How many neighbours vote: choose k from rows that the metric has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from lnml.learning.knn import majority, nearest_rows

CANDIDATES = (1, 3, 5, 7, 9, 15, 25)
N_FOLDS = 3


def vote_correct(
    inside: Any,
    y_inside: np.ndarray,
    outside: Any,
    y_outside: np.ndarray,
    candidates: Sequence[int] = CANDIDATES,
    *,
    device: Any = None,
) -> np.ndarray:
    """Whether the vote of the k nearest rows is right, for several k from one search.

    The rules for ties are those of :func:`lnml.learning.knn.predict_nearest`.

    Parameters
    ----------
    inside : ndarray or tensor of shape (n, r)
        Rows that vote.
    y_inside : ndarray of shape (n,)
        Their labels.
    outside : ndarray or tensor of shape (m, r)
        Rows to classify.
    y_outside : ndarray of shape (m,)
        Their labels.
    candidates : sequence of int
        Numbers of voters, from 1 to n.
    device : str, torch.device or None, default=None
        Where the search runs; None follows ``inside``.

    Returns
    -------
    correct : ndarray of bool, shape (len(candidates), m)

    Examples
    --------
    >>> import numpy as np
    >>> line, labels = np.array([[0.0], [3.0], [4.0]]), np.array(["a", "b", "b"])
    >>> vote_correct(line, labels, np.array([[1.0]]), np.array(["b"]), (1, 3))
    array([[False],
           [ True]])
    """
    classes, codes = np.unique(y_inside, return_inverse=True)
    votes = codes[nearest_rows(inside, outside, max(candidates), device)]
    predicted = [classes[majority(votes[:, :k], classes.size)] for k in candidates]
    return np.array([labels == y_outside for labels in predicted])


def choose_votes(correct: np.ndarray, candidates: Sequence[int]) -> int:
    """Position of the k to use: the smallest, unless another is clearly better.

    Another k is clearly better if its accuracy is higher by more than one standard error of the
    paired difference. Of several such the most accurate is taken, and of equals the smallest.

    If k alone is right on b rows, and the smallest k alone on c, then the difference exceeds its
    standard error if and only if b > c and (b - c)^2 > b + c. So no rounding can decide.

    Parameters
    ----------
    correct : ndarray of bool, shape (n_k, n)
        Whether the vote of each number of neighbours was right on each row.
    candidates : sequence of int, length n_k
        The numbers of neighbours, in any order.

    Returns
    -------
    position : int
        Position in ``candidates``.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0]], dtype=bool)
    >>> choose_votes(right, (1, 3, 5)), choose_votes(right[:2], (1, 3))
    (2, 0)
    """
    order = np.argsort(candidates, kind="stable")
    first, best, most = correct[order[0]], int(order[0]), int(correct[order[0]].sum())
    for position in order[1:].tolist():
        gained = int((correct[position] & ~first).sum())
        lost = int((first & ~correct[position]).sum())
        clear = gained > lost and (gained - lost) ** 2 > gained + lost
        if clear and correct[position].sum() > most:
            best, most = position, int(correct[position].sum())
    return best


def cross_validated_votes(
    fit: Callable[[np.ndarray, np.ndarray], Any],
    X: np.ndarray,
    y: np.ndarray,
    *,
    seed: int = 0,
    candidates: Sequence[int] = CANDIDATES,
) -> int:
    """Choose k by inner folds; the metric is learned anew in each.

    Rows that a metric was learned from are nearer to their class than new rows, so their own votes
    would mislead. Candidates that exceed the training rows of an inner fold are left out. If
    these are too few to learn from, the smallest candidate stays.

    Parameters
    ----------
    fit : callable
        Called with rows (n', d) and their labels (n',). Returns a fitted metric with a
        ``transform``, or None for the Euclidean metric. It must accept all n rows.
    X : ndarray of shape (n, d)
        Training rows.
    y : ndarray of shape (n,)
        Their labels.
    seed : int, default=0
        Seed of the shuffle.
    candidates : sequence of int
        Numbers of neighbours to try.

    Returns
    -------
    k : int
    """
    n_folds = int(np.clip(np.unique(y, return_counts=True)[1].min(), 2, N_FOLDS))
    found = []
    with warnings.catch_warnings():
        # Fits to all rows warn; those of a part of them would repeat it.
        warnings.simplefilter("ignore")
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        splits = list(folds.split(X, y))
        fewest = min(len(train) for train, _ in splits)
        tried = [k for k in candidates if k <= fewest]
        for train, test in splits:
            try:
                model = fit(X[train], y[train])
            except ValueError:
                # Estimators refuse what is too little; all rows together were enough.
                return min(tried)
            inside, outside = X[train], X[test]
            if model is not None:
                inside, outside = model.transform(inside), model.transform(outside)
            found.append(vote_correct(inside, y[train], outside, y[test], tried))
    return tried[choose_votes(np.hstack(found), tried)]
