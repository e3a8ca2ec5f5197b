"""The certificate of a fit, and a word about fits that could prove little."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.certificates import Certificate
from lnml.core.outliers import usual_range
from lnml.core.solution import Solution
from lnml.core.warn import warn_user

# Duals that hold numbers of rows; the first column of "triplets" does not.
ROW_DUALS = ("targets", "pairs")
# A column whose values spread over this many times their usual range has outliers.
OUTLYING = 1e4
# Columns whose standardised values differ by less than this are nearly equal.
NEARLY_EQUAL = 1e-3
# Fewer rows than this for each column are few.
FEW_ROWS = 5
# A combination that varies by less than this share of others does not vary.
EXACT = 1e-13
# Share of a combination that a column must have to be named.
TAKES_PART = 0.1
# A column whose values spread over at most this many of its roundings is coarse.
COARSE = 64.0
# Columns whose spreads differ by more than this are of different scales.
UNEVEN = 1e4


def certificate_of(solution: Solution, order: np.ndarray | None) -> Certificate | None:
    """Return what a fit to rows proved, in the row numbers of the user.

    Parameters
    ----------
    solution : Solution
        What the fit found.
    order : ndarray of shape (n,), or None
        Row of the user's X that stands at each position of the training set; None for
        fits that are not to rows.
    """
    proof = solution.proof
    if proof is None or not proof.method or order is None or solution.bound is None:
        return None
    if not np.isfinite([solution.objective, proof.error]).all():
        return None  # nothing can be stated about such an objective
    dimension = solution.components.shape[1]
    coordinates = np.eye(dimension) if proof.coordinates is None else proof.coordinates
    duals = dict(proof.duals)
    for name in ROW_DUALS:
        if name in duals:
            duals[name] = order[duals[name]]
    if "triplets" in duals:
        # They are many: one copy, and numbers of half the length beside it.
        triplets = duals["triplets"].astype(np.int64)
        triplets[:, 1] = order.astype(np.int32).take(triplets[:, 1])
        duals["triplets"] = triplets
    return Certificate(
        method=proof.method,
        parameters=proof.parameters,
        components=solution.components,
        objective=solution.objective,
        objective_error=proof.error,
        bound=solution.bound,
        gap=0.0 if solution.gap is None else solution.gap,
        coordinates=coordinates,
        left_out=dimension - coordinates.shape[1],
        slack=proof.slack,
        limit=proof.limit,
        duals=duals,
    )


def warn_of_little_proof(name: str, gap: float, X: np.ndarray, names: Any) -> None:
    """Say that a fit ended without the proof that was asked for, why, and what helps.

    Parameters
    ----------
    name : str
        The estimator.
    gap : float
        Its duality gap.
    X : ndarray of shape (n, d)
        The data, in the type they were learned from.
    names : sequence of str, or None
        Column names.
    """
    labels = [f"column {k}" for k in range(X.shape[1])] if names is None else list(names)
    kind, X = X.dtype, X.astype(np.float64, copy=False)
    causes = _coarse(X, labels, kind) + _outliers(X, labels)
    causes += (_near_copies(X, labels) or _dependent(X, labels)) + _scales(X, labels)
    cause = "; ".join(causes)
    if not cause and len(X) < FEW_ROWS * X.shape[1]:
        cause = (
            "there may be too few rows for so many columns: reduce them first, for example with "
            "sklearn.decomposition.PCA"
        )
    cause = cause or (
        "the classes may be separable: then the objective is near zero, and rounding decides "
        "the gap. Accept a larger tol"
    )
    warn_user(
        f"{name} cannot show that its metric is near the best one: duality_gap_ is {gap:.1e}. "
        f"{cause[0].upper()}{cause[1:]}"
    )


def _coarse(X: np.ndarray, labels: list[str], kind: np.dtype) -> list[str]:
    """Name the columns whose values differ by little more than their rounding to a type."""
    spread, largest = np.ptp(X, axis=0), np.abs(X).max(axis=0)
    coarse = (spread > 0.0) & (spread <= COARSE * np.finfo(kind).eps * largest)
    return [
        f"the values of {labels[k]} differ by little more than their rounding to {kind}: "
        f"subtract the smallest of them first, before they are rounded if you can"
        for k in np.flatnonzero(coarse)[:3]
    ]


def _outliers(X: np.ndarray, labels: list[str]) -> list[str]:
    usual = usual_range(X)
    found = np.flatnonzero((usual > 0.0) & (np.ptp(X, axis=0) > OUTLYING * usual))
    said = []
    for k in found[:3]:
        value = X[np.abs(X[:, k] - np.median(X[:, k])).argmax(), k]
        said.append(
            f"{labels[k]} holds {value:g}, far from most of its values: if that is a code for "
            f"a missing value or an error, replace it"
        )
    return said


def _near_copies(X: np.ndarray, labels: list[str]) -> list[str]:
    spread = X.std(axis=0)
    used = np.flatnonzero(spread > 0.0)
    scaled = (X[:, used] - X[:, used].mean(axis=0)) / spread[used]
    said: list[str] = []
    for a in range(used.size):
        for sign in (1.0, -1.0):
            apart = np.sqrt(np.square(scaled - sign * scaled[:, a : a + 1]).mean(axis=0))
            for b in np.flatnonzero((apart < NEARLY_EQUAL) & (apart > 0.0)):
                if b > a and len(said) < 3:
                    one, other = labels[used[a]], labels[used[b]]
                    said.append(
                        f"{one} and {other} are nearly equal: give their difference as a "
                        f"column, in place of one of them"
                    )
    return said


def _dependent(X: np.ndarray, labels: list[str]) -> list[str]:
    """Name the columns of a combination that hardly varies, although not exactly zero."""
    spread = X.std(axis=0)
    used = np.flatnonzero(spread > 0.0)
    if used.size < 2 or used.size >= len(X):
        return []
    scaled = (X[:, used] - X[:, used].mean(axis=0)) / spread[used]
    _, sizes, rows = np.linalg.svd(scaled, full_matrices=False)
    # Columns that depend on each other exactly do no harm.
    last = np.flatnonzero(sizes > EXACT * sizes[0])[-1]
    if sizes[last] > NEARLY_EQUAL * sizes[0]:
        return []
    part = np.argsort(-np.abs(rows[last]))[:4]
    named = [labels[used[k]] for k in sorted(part) if abs(rows[last][k]) > TAKES_PART]
    return [f"{', '.join(named)} depend on each other up to rounding: leave one of them out"]


def _scales(X: np.ndarray, labels: list[str]) -> list[str]:
    spread = X.std(axis=0)
    spread = np.where(spread > 0.0, spread, np.nan)
    if np.isnan(spread).all() or np.nanmax(spread) <= UNEVEN * np.nanmin(spread):
        return []
    large, small = labels[int(np.nanargmax(spread))], labels[int(np.nanargmin(spread))]
    return [
        f"{large} varies {np.nanmax(spread) / np.nanmin(spread):.0e} times as much as {small}: "
        f"scale the columns first, for example with sklearn.preprocessing.StandardScaler"
    ]
