"""Objective and bound of a finished fit of MCML, and the objective of NCA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from lnml.core.pairs import Pattern
from lnml.core.solution import Proof
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import FLOOR_SHARE
from lnml.objectives.conditioning import for_proof
from lnml.proofs.all_pairs import Rows, class_moment, mean_moment
from lnml.proofs.differences import Moment, moment
from lnml.proofs.softmax import SoftmaxDual, divergence, entropy_bound, wrong_neighbors


def prove_mcml(
    training: TrainingSet, task: Any, components: np.ndarray, wide: bool
) -> Proof:
    """Return what :meth:`lnml.objectives.mcml.MCMLObjective.prove` says."""
    rows = host_rows(training, wide)
    conditioning = for_proof(
        training.kernels, training.points, task.coordinates, task.targets, task.weights
    )
    coordinates = conditioning.matrix
    ideal = _ideal(training, task.targets, rows)
    value = divergence(rows, components, ideal)
    proof = Proof(
        value.value,
        value.error,
        bound=0.0,
        floor=FLOOR_SHARE * task.objective_at_zero,
        work=3.0 * len(rows.data) ** 2 * components.size,
        method="mcml",
        coordinates=coordinates,
        duals=_target_duals(training, task.targets),
    )
    metrics, share = task.dual
    if not metrics:
        return proof
    counts = np.diff(ideal.indptr) > 0
    metrics = [task.to_original(each, len(each)) for each in metrics]
    duals = [SoftmaxDual(*mean_moment(rows, each, counts, coordinates)) for each in metrics]
    pull = _pull(rows, ideal, task.targets, coordinates)
    inside = conditioning.to_conditioned(components)
    size = float(np.vdot(inside, inside))
    bound = entropy_bound(pull, duals, share, task.log_sizes, size)
    shares = [1.0] if len(metrics) == 1 else [1.0 - bound.share, bound.share]
    return replace(
        proof,
        bound=bound.value,
        slack=bound.slack,
        limit=bound.limit,
        duals={
            **proof.duals,
            "dual_shares": np.array(shares),
            "dual_components": np.stack(metrics),
        },
    )


def prove_nca(training: TrainingSet, components: np.ndarray, wide: bool) -> Proof:
    """Return the objective of NCA at components (r x d) as returned."""
    rows = host_rows(training, wide)
    value = wrong_neighbors(rows, components)
    return Proof(value.value, value.error, work=len(rows.data) ** 2 * components.size)


def host_rows(training: TrainingSet, wide: bool) -> Rows:
    """Return the rows on the host, in float64 or, if ``wide``, in long double."""
    data = training.kernels.arrays.to_host(training.points.data)
    dtype = np.longdouble if wide else np.float64
    return Rows(np.asarray(data, dtype=dtype), training.points.class_start)


def host_pairs(training: TrainingSet, targets: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Return the two ends of every target pair."""
    return training.kernels.pattern(targets).to_host().pairs()


def _target_duals(training: TrainingSet, targets: Pattern | None) -> dict[str, np.ndarray]:
    """Return the target pairs as a certificate lists them; all pairs of a class are not listed."""
    if targets is None:
        return {}
    return {"targets": np.stack(host_pairs(training, targets), axis=1)}


def _ideal(training: TrainingSet, targets: Pattern | None, rows: Rows) -> sparse.csr_array:
    """Return p0, which is the same for all targets of a row, shape (n, n)."""
    n = len(rows.data)
    if targets is None:
        codes = rows.codes
        i, j = np.nonzero((codes[:, None] == codes) & ~np.eye(n, dtype=bool))
    else:
        i, j = host_pairs(training, targets)
    sizes = np.bincount(i, minlength=n)
    return sparse.csr_array((1.0 / sizes[i], (i, j)), shape=(n, n))


def _pull(
    rows: Rows, ideal: sparse.csr_array, targets: Pattern | None, coordinates: np.ndarray
) -> Moment:
    """Return the scatter of p0."""
    if targets is None:
        return class_moment(rows, 1.0 / np.maximum(np.diff(rows.class_start) - 1, 1), coordinates)
    pairs = ideal.tocoo()
    return moment(rows.data, *pairs.coords, pairs.data, coordinates)
