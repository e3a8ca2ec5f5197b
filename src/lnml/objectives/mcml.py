"""Maximally collapsing metric learning (paper, eq. 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lnml.core.pairs import Pattern
from lnml.core.solution import DualPoint, Proof
from lnml.core.warm_start import Search, WarmStart
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, PairCosts, Task, cheaper_moment
from lnml.objectives.conditioning import Conditioning, whiten_pull
from lnml.objectives.softmax_proof import prove_mcml
from lnml.objectives.trace import PenalisedObjective, Ridge, class_pair_scatter

# The metric may grow until the rounding of a typical squared distance is this
# large, or the distance itself (float32).
LARGEST_ROUNDING = 1e-9
LEAST_CEILING = 1e3


class MCMLObjective(PenalisedObjective):
    """Sum over rows of KL(p0 | p_M), p0 uniform over the row's targets.

    As a sum over target pairs, F_ij = (D_ij + log Z_i - log k_i) / k_i with k_i
    the number of targets of i: the constant log k_i makes the sum the KL
    divergence itself, never negative.

    Parameters
    ----------
    training : TrainingSet
        The data.
    trace_penalty : float
        rho: the trace of the metric costs like so many times the pull of isotropic data.
    """

    form = Form.SOFTMAX
    fixed_row_sizes = True
    cost_grows_with_distance = True

    def __init__(self, training: TrainingSet, trace_penalty: float = 0.0) -> None:
        self.training = training
        self.dtype = training.points.dtype
        self.ridge = Ridge.of(training, trace_penalty, training.n_target_rows)

    def free_term(self, components: np.ndarray) -> float:
        """Return the trace penalty: every other term depends on the target pairs."""
        return self.ridge.value(components).value

    def pair_costs(
        self, components: np.ndarray, pairs: Pattern, known: Search | None = None
    ) -> PairCosts:
        """F_ij of every pair, with k_i the number of pairs of row i."""
        kernels = self.training.kernels
        arrays, embedding = kernels.arrays, kernels.embed(self.training.points, components)
        row_term = kernels.log_normalizers(embedding) - arrays.log(pairs.sizes.clip(min=1))
        costs = kernels.distances(embedding, pairs) + arrays.per_pair(row_term, pairs)
        return PairCosts(costs / arrays.per_pair(pairs.sizes, pairs))

    def task(self, targets: Pattern | None) -> MCMLTask:
        """Return the task; ``targets`` None means all rows of the same class."""
        task: MCMLTask = self.not_at_zero(targets)
        return task

    def penalised(self, targets: Pattern | None, ridge: Ridge) -> MCMLTask:
        """See :class:`lnml.objectives.trace.PenalisedObjective`."""
        kernels, points = self.training.kernels, self.training.points
        sizes = target_counts(self.training, targets)
        weights = None if targets is None else 1.0 / kernels.arrays.per_pair(sizes, targets)
        conditioning = whiten_pull(kernels, points, targets, weights, ridge.weight)
        return MCMLTask(kernels, conditioning, sizes, targets, weights, ridge.weight)

    def prove(
        self, task: MCMLTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned, and the proved bound."""
        return prove_mcml(self.training, task, components, care, self.ridge)


class MCMLTask(Task):
    """The MCML objective in conditioned coordinates.

    See :class:`lnml.solvers.barrier.SoftmaxTask`.
    """

    def __init__(
        self,
        kernels: Kernels,
        conditioning: Conditioning,
        sizes: Any,
        targets: Pattern | None = None,
        weights: Any = None,
        ridge: float = 0.0,
    ) -> None:
        super().__init__(conditioning)
        self.kernels = kernels
        self.targets, self.weights = targets, weights
        # Metrics whose softmax is the dual point, and the share of the second one.
        self.dual: tuple[list[np.ndarray | None], float] = ([], 0.0)
        # The distribution that is asked for leaves the ridge: it is strictly feasible.
        self.ideal: DualPoint | None = None
        if ridge > 0.0:
            self.ideal = DualPoint(0.0, ridge * (conditioning.matrix.T @ conditioning.matrix))
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.precision = self.points.precision
        # Rows without targets have no ideal distribution; others still see them.
        self.counts = sizes > 0
        self.log_sizes = float(kernels.arrays.log(sizes[self.counts]).sum())
        n = self.points.n_rows
        # What the rounding of distances grows with: the squares of the rows, or, where
        # distances come from differences, those of target pairs.
        self.scatter = kernels.gram(self.points.data, self.points.data)
        if self.points.far:
            self.scatter = np.eye(self.points.n_features)
        self.ceiling = self.scatter / (n * max(LARGEST_ROUNDING / self.precision, LEAST_CEILING))
        self.objective_at_zero = np.log(n - 1.0) * int(self.counts.sum()) - self.log_sizes

    def keep_dual(self, components: list[np.ndarray | None], share: float) -> None:
        """Keep the metrics of one dual point, or of a mixture with a share of the second.

        None in place of a metric stands for the ideal distribution.
        """
        self.dual = components, share

    def warm_start(self, found: np.ndarray, components: np.ndarray) -> WarmStart:
        """Say that the metric found is the end of a barrier path."""
        return WarmStart(components, at_end_of_path=True)

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """KL divergence plus its rounding, and the gradient (r x d), streamed.

        Counting the rounding keeps the solver away from metrics so large that
        their objective cannot be computed.
        """
        embedding = self.kernels.embed(self.points, components)
        log_normalizers, expected = cheaper_moment(
            lambda full: self.kernels.softmax(embedding, self.counts, full=full), components
        )
        pulled = components * self.pull
        value = float(np.vdot(pulled, components)) + self._total(log_normalizers)
        gradient = 2.0 * (pulled - expected)
        rounding, rounding_gradient = self._rounding(components)
        return value - self.log_sizes + rounding, gradient + rounding_gradient

    def _rounding(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Bound of the objective's rounding, and its gradient.

        Distances come from a matrix product, so their error grows with the
        squared norms of the rows.
        """
        weighted = self.precision * (components * self.pull + 2.0 * components @ self.scatter)
        return float(np.vdot(weighted, components)), 2.0 * weighted

    def _total(self, log_normalizers: Any) -> float:
        """Sum over the rows that have targets."""
        return float(log_normalizers[self.counts].sum())

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray."""

        def along_ray(log_scale: float) -> float:
            scaled = np.exp(log_scale / 2) * components
            log_normalizers = self.kernels.log_normalizers(self.kernels.embed(self.points, scaled))
            return float(np.vdot(scaled * self.pull, scaled)) + self._total(log_normalizers)

        n = self.points.n_rows
        spread = 2.0 * float(np.vdot(components @ self.scatter, components)) / n
        pull = float(np.vdot(components * self.pull, components)) / n
        # From all distances near zero to target distances that are already too long.
        bounds = np.log([1e-3 / spread, 1e3 / max(pull, 1e-6 * spread)])
        return float(np.exp(minimize_scalar(along_ray, bounds=bounds, options={"xatol": 0.3}).x))

    def dual_point(self, components: np.ndarray) -> DualPoint:
        """Entropy of the model's rows, and pull minus expected scatter."""
        embedding = self.kernels.embed(self.points, components)
        log_normalizers, expected = self.kernels.softmax(embedding, self.counts, full=True)
        entropy = self._total(log_normalizers)
        entropy += float(np.vdot(components @ expected, components))
        return DualPoint(entropy - self.log_sizes, np.diag(self.pull) - expected)

    def slope_at_zero(self) -> np.ndarray:
        """See :class:`lnml.objectives.trace.PenalisedTask`: all partners are equally likely."""
        n = self.points.n_rows
        weights = self.kernels.arrays.to_host(self.counts) / (n - 1.0)
        expected = class_pair_scatter(self.kernels, self.points, weights, weights)
        return np.diag(self.pull) - expected


def target_counts(training: TrainingSet, targets: Pattern | None) -> Any:
    """Return the number of targets of every row."""
    if targets is not None:
        return targets.sizes
    return training.kernels.arrays.per_row(training.points.class_sizes - 1, training.points)
