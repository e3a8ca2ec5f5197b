"""One fit to a whole data set, for the pictures of a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from lnml.estimators.lmnn import LMNN
from lnml.estimators.lnml import LNML
from lnml.evaluation.portraits import Portrait, Suspect
from lnml.evaluation.problem import stratified_sample
from lnml.learning.knn import nearest_rows
from lnml.learning.trust import least_trusted, mean_costs

# Sizes that vary tell most about the rows.
K_MIN, K_AV, K_MAX = 1, 3, 5
NAME = f"LN-LMNN ({K_MIN}, {K_AV}, {K_MAX})"
# With more numbers than this a fit to the end takes minutes, and the pictures look the same:
# such fits are solved to a gap of 1 % only, in at most ten rounds.
MANY = 200_000
HASTE = {"tol": 1e-2, "max_rounds": 10}
# More columns than this are replaced by as many principal components: a fit to thousands of
# columns takes minutes, and the pictures show two dimensions.
MOST_COLUMNS = 300
# Before its first record a fit takes about a second for so many numbers, where classes overlap.
NUMBERS_A_SECOND = 20_000
FEWEST_ROWS = 200
# Coordinates below this share of the largest are noise of the arithmetic.
ROUNDING = 1e-9
# Later rounds bend the metric around wrong labels, which then look right (docs/trust.md).
ROUNDS_FOR_SUSPECTS = 2


def portray(
    X: np.ndarray,
    y: np.ndarray,
    *,
    seed: int = 0,
    fitted_rows: int = 5000,
    shown_rows: int = 1000,
    n_suspects: int = 10,
    device: str | None = None,
    seconds: float | None = None,
) -> Portrait:
    """Fit LMNN and LN-LMNN and collect what the pictures show.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Prepared data.
    y : ndarray of shape (n,)
        Class labels.
    seed : int, default=0
        Seed of the samples.
    fitted_rows, shown_rows : int
        Most rows to fit, and to show. Larger data are sampled, with classes in
        proportion.
    n_suspects : int, default=10
        How many of the least trusted rows to list.
    device : str, default=None
        Where the fits run.
    seconds : float, default=None
        About how long the fits may take together. They see fewer rows if time is short, and
        what they have reached at the end is shown.
    """
    if seconds is not None:
        fitted_rows = min(fitted_rows, _rows_within(seconds, X.shape[1]))
    fitted = stratified_sample(y, fitted_rows, seed)
    inside, labels = _narrow(X[fitted]), y[fitted]
    fixed = LMNN(device=device)
    learned = LNML(LMNN(), k_min=K_MIN, k_av=K_AV, k_max=K_MAX, device=device)
    if inside.size > MANY:
        fixed.set_params(tol=HASTE["tol"])
        learned.set_params(**HASTE)
    suspicious = clone(learned).set_params(max_rounds=ROUNDS_FOR_SUSPECTS)
    with warnings.catch_warnings():
        # The pictures show how far a fit came, and small classes need no warning here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        for model in (fixed, learned, suspicious):
            if seconds is not None:
                model.set_params(callback=_stop_after(seconds / 3))
            model.fit(inside, labels)
    shown = stratified_sample(labels, shown_rows, seed)
    return Portrait(
        method=NAME,
        n_rows=fitted.size,
        rows=fitted[shown],
        labels=labels[shown].astype(str),
        before=_two_components(inside)[shown],
        after=_two_components(learned.transform(inside))[shown],
        edges_before=_edges(fixed.target_neighbors_, shown),
        edges_after=_edges(learned.target_neighbors_, shown),
        neighbor_counts=_counts(learned.n_target_neighbors_, labels),
        suspects=_suspects(suspicious, inside, labels, fitted, n_suspects),
        histories={"LMNN": _history(fixed), NAME: _history(learned)},
    )


def _narrow(X: np.ndarray) -> np.ndarray:
    """Return rows (n, d) with few columns; their distances stay, if there are few rows, too."""
    most = min(len(X), MOST_COLUMNS)
    return X if X.shape[1] <= most else PCA(most, svd_solver="full").fit_transform(X)


def _rows_within(seconds: float, n_columns: int) -> int:
    """Return how many rows can be fitted in a time, also where classes overlap."""
    return max(FEWEST_ROWS, int(NUMBERS_A_SECOND * seconds / min(n_columns, MOST_COLUMNS)))


def _stop_after(seconds: float) -> Callable[[Any], bool]:
    """Return a callback that ends a fit when its time is over.

    The clock starts with the first call: the first fit of a process also loads compiled code.
    """
    ends: list[float] = []

    def stop(state: Any) -> bool:
        if not ends:
            ends.append(time.perf_counter() + seconds)
        return time.perf_counter() > ends[0]

    return stop


def _two_components(X: np.ndarray) -> np.ndarray:
    """Leading principal components, shape (n, 2); zeros where there is only one.

    A second one that is rounding only is none: a picture would draw it as large as the first.
    """
    components = PCA(min(2, *X.shape), svd_solver="full").fit_transform(X)
    sizes = np.abs(components).max(axis=0)
    components[:, sizes <= ROUNDING * sizes[0]] = 0.0
    return np.pad(components, ((0, 0), (0, 2 - components.shape[1])))


def _edges(graph: Any, shown: np.ndarray) -> np.ndarray:
    """Target pairs among the rows shown, as positions in ``shown``."""
    part = graph[shown][:, shown].tocoo()
    return np.stack([part.row, part.col], axis=1)


def _counts(sizes: np.ndarray, labels: np.ndarray) -> dict[str, list[int]]:
    width = int(sizes.max()) + 1
    return {
        str(name): np.bincount(sizes[labels == name], minlength=width).tolist()
        for name in np.unique(labels)
    }


def _suspects(
    model: LNML, X: np.ndarray, labels: np.ndarray, fitted: np.ndarray, count: int
) -> tuple[Suspect, ...]:
    chosen = least_trusted(model, count)
    embedded = model.transform(X)
    # The nearest row may be the row itself or a copy of it: take the first with another number.
    near = nearest_rows(embedded, embedded[chosen], 2)
    other = np.where(near[:, 0] == chosen, near[:, 1], near[:, 0])
    costs = mean_costs(model)
    return tuple(
        Suspect(
            row=int(fitted[row]),
            label=str(labels[row]),
            n_neighbors=int(model.n_target_neighbors_[row]),
            cost=float(costs[row]),
            nearest_label=str(labels[beside]),
        )
        for row, beside in zip(chosen, other, strict=True)
    )


def _history(model: Any) -> list[dict[str, float]]:
    """Seconds, objective and, where one was proved, the bound of every record."""
    found = []
    for record in model.history_:
        point = {"seconds": record["seconds"], "objective": record["objective"]}
        if record.get("bound") is not None:
            point["bound"] = record["bound"]
        found.append(point)
    return found
