"""Objective and bound of a finished fit of MMC, to rows or to given pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lnml.core.solution import Proof
from lnml.objectives.trace import NO_RIDGE, Ridge
from lnml.proofs.differences import Moment, moment, no_moment, squared_lengths
from lnml.proofs.objective import Lengths, Value
from lnml.proofs.rounding import UNIT, gamma, least_eigenvalue, sum_error

# A gap is relative to the objective, or to this share of that of the Euclidean metric.
LEAST_RATIO = 1e-12
# A root shorter than this share of the typical one is lengthened in a dual point.
LEAST_ROOT = 1e-8

Block = tuple[np.ndarray, np.ndarray]


class LabelledPairs(NamedTuple):
    """Similar and dissimilar pairs of rows, each as blocks of their two ends.

    Attributes
    ----------
    data : ndarray of shape (n, d)
        The rows, in float64.
    similar, dissimilar : callables
        Yield blocks of pairs.
    """

    data: np.ndarray
    similar: Callable[[], Iterator[Block]]
    dissimilar: Callable[[], Iterator[Block]]


def prove_ratio(
    pairs: LabelledPairs,
    task: Any,
    components: np.ndarray,
    coordinates: np.ndarray,
    duals: dict[str, np.ndarray],
    ridge: Ridge = NO_RIDGE,
) -> Proof:
    """Return the objective of components (r x d) as returned, and the proved bound.

    ``coordinates`` (d x e) are those of the proof; ``duals`` says in a certificate which
    pairs are similar.
    """
    value = ratio(pairs, components, ridge)
    # Similar pairs may coincide: then the objective is rounding, and a gap relative to it
    # would mean nothing.
    floor = LEAST_RATIO * ratio(pairs, np.eye(components.shape[1]), ridge).value
    proof = Proof(
        value.value,
        value.error,
        bound=0.0,
        floor=floor,
        work=3.0 * len(pairs.data) ** 2 * components.size,
        method="mmc",
        parameters={"diagonal": bool(task.diagonal), **ridge.parameters},
        coordinates=coordinates,
        duals=duals,
    )
    if task.dual is None:
        return proof
    metric = task.conditioning.to_original(task.dual, len(task.dual))
    bound = tangent_bound(pairs, metric, coordinates, task.diagonal, ridge)
    duals["dual_components"] = metric
    return Proof(**{**vars(proof), "bound": bound})


def ratio(pairs: LabelledPairs, components: np.ndarray, ridge: Ridge = NO_RIDGE) -> Value:
    """Return <S, M>, S with its ridge, over the square of the sum of the roots."""
    similar, roots = ridge.value(components), Value(0.0, 0.0)
    for i, j in pairs.similar():
        lengths = Lengths(*squared_lengths(pairs.data, i, j, components))
        similar = similar.plus(lengths.total())
    for i, j in pairs.dissimilar():
        values, errors = squared_lengths(pairs.data, i, j, components)
        each = np.sqrt(values)
        moved = np.sqrt(errors)
        moved = np.minimum(moved, np.divide(errors, each, out=moved.copy(), where=each > 0.0))
        roots = roots.plus(Value(float(each.sum()), 1.01 * moved.sum() + 2.0 * sum_error(each)))
    if roots.value <= roots.error:
        return Value(np.inf, 0.0)
    # Twice: the square of a sum may be no number.
    found = similar.value / roots.value / roots.value
    share = 1.0 - roots.error / roots.value
    least = roots.value * share
    error = similar.error / least / least + found * (1.0 / share**2 - 1.0)
    return Value(found, error + gamma(4) * found)


def tangent_bound(
    pairs: LabelledPairs,
    components: np.ndarray,
    coordinates: np.ndarray,
    diagonal: bool,
    ridge: Ridge = NO_RIDGE,
) -> float:
    """Return the bound that the tangents of the roots at a metric prove (docs/mmc.md).

    For weights w > 0, sqrt(D) <= 1 / (4 w) + w D. If the weighted scatter of the dissimilar
    pairs is at most rate times S, the ratio is at least 1 / (4 sum(1 / (4 w)) rate).
    """
    pull = ridge.moment(coordinates)
    for i, j in pairs.similar():
        pull = pull.plus(moment(pairs.data, i, j, np.ones(i.size), coordinates))
    total, count = 0.0, 0
    for i, j in pairs.dissimilar():
        total += float(squared_lengths(pairs.data, i, j, components)[0].sum())
        count += i.size
    typical = np.sqrt(total / max(count, 1))
    constant, push = 0.0, no_moment(coordinates)
    for i, j in pairs.dissimilar():
        each = np.sqrt(squared_lengths(pairs.data, i, j, components)[0])
        weights = 0.5 / np.maximum(each, LEAST_ROOT * typical)
        constant += float((0.25 / weights).sum())
        push = push.plus(moment(pairs.data, i, j, weights, coordinates))
    rate = _rate(pull, push, diagonal)
    if not (0.0 < rate < np.inf and constant > 0.0):
        return 0.0
    return (1.0 - 8.0 * UNIT) / (4.0 * constant * (1.0 + gamma(count + 8)) * rate)


def _rate(pull: Moment, push: Moment, diagonal: bool) -> float:
    """Upper bound of the largest multiple of the pull that the push has in any direction."""
    if diagonal:
        least = np.diag(pull.matrix) - pull.error
        if not (least > 0.0).all():
            return np.inf
        return float(((np.diag(push.matrix) + push.error) / least).max() * (1.0 + 8.0 * UNIT))
    least = least_eigenvalue(pull.matrix, pull.error)
    most = -least_eigenvalue(-push.matrix, push.error)
    return most / least * (1.0 + 8.0 * UNIT) if least > 0.0 else np.inf
