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
from lnml.objectives.conditioning import Conditioning, for_proof, ideal_pull
from lnml.objectives.device_softmax import (
    WideRows,
    device_divergence,
    device_dual,
    device_pull,
    device_wrong_neighbors,
)
from lnml.objectives.trace import Ridge
from lnml.proofs.all_pairs import Rows, class_moment, mean_moment
from lnml.proofs.differences import Moment, moment
from lnml.proofs.objective import Value
from lnml.proofs.rounding import gamma
from lnml.proofs.softmax import SoftmaxDual, divergence, entropy_bound, wrong_neighbors


def prove_mcml(
    training: TrainingSet, task: Any, components: np.ndarray, care: int, ridge: Ridge
) -> Proof:
    """Return what :meth:`lnml.objectives.mcml.MCMLObjective.prove` says."""
    targets = task.targets
    pull = ideal_pull(training.points, targets)
    conditioning = for_proof(training.kernels, training.points, task.coordinates, pull)
    sums = (_DeviceSums if care == 0 else _HostSums)(training, task, conditioning.matrix, care)
    value = sums.objective(components).plus(ridge.value(components))
    coordinates = conditioning.matrix
    proof = Proof(
        value.value,
        value.error,
        bound=0.0,
        floor=FLOOR_SHARE * task.objective_at_zero,
        work=3.0 * all_pairs(training) * components.size,
        method="mcml",
        parameters=ridge.parameters,
        coordinates=coordinates,
        duals=_target_duals(training, task.targets),
    )
    metrics, share = task.dual
    if not metrics:
        return proof
    scatter = sums.pull()
    # The ideal distribution, which None stands for, has the entropy that is asked for.
    ideal = SoftmaxDual(scatter, Value(task.log_sizes, gamma(4) * abs(task.log_sizes)))
    metrics = [None if each is None else task.to_original(each, len(each)) for each in metrics]
    duals = [ideal if each is None else sums.dual(each, conditioning) for each in metrics]
    bound = entropy_bound(scatter.plus(ridge.moment(coordinates)), duals, share, task.log_sizes)
    shares = [1.0] if len(metrics) == 1 else [1.0 - bound.share, bound.share]
    # What is lacking to a sum of one is the share of the ideal distribution.
    shares = [part for part, each in zip(shares, metrics, strict=True) if each is not None]
    metrics = [each for each in metrics if each is not None]
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


class _HostSums:
    """Sums over all pairs from differences of rows, on the host."""

    def __init__(
        self, training: TrainingSet, task: Any, coordinates: np.ndarray, care: int
    ) -> None:
        self.rows, self.coordinates = host_rows(training, care), coordinates
        pairs = None if task.targets is None else host_pairs(training, task.targets)
        self.ideal = Ideal(self.rows, pairs)

    def objective(self, components: np.ndarray) -> Value:
        """Return the objective at components (r x d)."""
        return divergence(self.rows, components, self.ideal)

    def dual(self, metric: np.ndarray, conditioning: Conditioning) -> SoftmaxDual:
        """Return the dual point of a metric, given as components (r x d)."""
        counts = self.ideal.sizes > 0
        return SoftmaxDual(*mean_moment(self.rows, metric, counts, self.coordinates))

    def pull(self) -> Moment:
        """Return the scatter of p0."""
        return _pull(self.rows, self.ideal, self.coordinates)


class _DeviceSums:
    """The same by the device, from rows that are mapped first: fast, with more rounding."""

    def __init__(
        self, training: TrainingSet, task: Any, coordinates: np.ndarray, care: int
    ) -> None:
        self.training, self.targets, self.log_sizes = training, task.targets, task.log_sizes
        self.rows = WideRows.of(training, coordinates, task.points.far)

    def objective(self, components: np.ndarray) -> Value:
        """Return the objective at components (r x d)."""
        return device_divergence(self.training, components, self.targets, self.log_sizes)

    def dual(self, metric: np.ndarray, conditioning: Conditioning) -> SoftmaxDual:
        """Return the dual point of a metric, given as components (r x d)."""
        inner = conditioning.to_conditioned(metric)
        return device_dual(self.training, self.rows, inner, self.targets)

    def pull(self) -> Moment:
        """Return the scatter of p0."""
        return device_pull(self.training, self.rows, self.targets)


def prove_nca(training: TrainingSet, components: np.ndarray, care: int, ridge: Ridge) -> Proof:
    """Return the objective of NCA at components (r x d) as returned."""
    if care == 0:
        value = device_wrong_neighbors(training, components)
    else:
        value = wrong_neighbors(host_rows(training, care), components)
    value = value.plus(ridge.value(components))
    return Proof(value.value, value.error, work=all_pairs(training) * components.size)


def all_pairs(training: TrainingSet) -> float:
    """Return the number of pairs that sums on the host run over; infinite if rows are elsewhere."""
    return np.inf if training.kernels.remote else float(training.points.n_rows) ** 2


def host_rows(training: TrainingSet, care: int) -> Rows:
    """Return the rows on the host, in float64 or, with a care of 2, in long double."""
    data = training.kernels.to_host(training.points.data)
    dtype = np.longdouble if care == 2 else np.float64
    return Rows(np.asarray(data, dtype=dtype), training.points.class_start)


def host_pairs(training: TrainingSet, targets: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Return the two ends of every target pair."""
    return training.kernels.pattern(targets).to_host().pairs()


def _target_duals(training: TrainingSet, targets: Pattern | None) -> dict[str, np.ndarray]:
    """Return the target pairs as a certificate lists them; all pairs of a class are not listed."""
    if targets is None:
        return {}
    return {"targets": np.stack(host_pairs(training, targets), axis=1)}


class Ideal:
    """p0: the same for all targets of a row, a block of rows at a time.

    Parameters
    ----------
    rows : Rows
        The data.
    pairs : tuple of two ndarrays, or None
        The ends of the target pairs; None stands for all pairs of the same class.
    """

    def __init__(self, rows: Rows, pairs: tuple[np.ndarray, np.ndarray] | None) -> None:
        n = len(rows.data)
        self.codes, self.graph = rows.codes, None
        if pairs is None:
            self.sizes = np.bincount(self.codes)[self.codes] - 1
        else:
            i, j = pairs
            self.sizes = np.bincount(i, minlength=n)
            self.graph = sparse.csr_array((1.0 / self.sizes[i], (i, j)), shape=(n, n))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return p0 of some rows, shape (b, n)."""
        if self.graph is not None:
            return np.asarray(self.graph[rows].toarray())
        same = self.codes[rows][:, None] == self.codes
        same[np.arange(rows.size), rows] = False
        return same / np.maximum(self.sizes[rows], 1)[:, None]


def _pull(rows: Rows, ideal: Ideal, coordinates: np.ndarray) -> Moment:
    """Return the scatter of p0."""
    if ideal.graph is None:
        return class_moment(rows, 1.0 / np.maximum(np.diff(rows.class_start) - 1, 1), coordinates)
    pairs = ideal.graph.tocoo()
    i, j = pairs.row, pairs.col
    return moment(rows.data, i, j, pairs.data, coordinates)
