"""Maximally collapsing metric learning (paper, eq. 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lnml.conditioning import Conditioning, whiten_pull
from lnml.kernels.protocol import Kernels, Pattern
from lnml.objectives.contract import Solution, TrainingSet
from lnml.objectives.moments import cheaper_moment
from lnml.solvers.barrier import DualPoint, solve_softmax
from lnml.solvers.monitor import Monitor
from lnml.solvers.scale import worthwhile

# The metric may grow until the rounding of a typical squared distance is this
# large, or the distance itself (float32).
LARGEST_ROUNDING = 1e-9
LEAST_CEILING = 1e3


class MCMLProblem:
    """Sum over rows of KL(p0 | p_M), p0 uniform over the row's targets.

    As a sum over target pairs, F_ij = (D_ij + log Z_i - log k_i) / k_i with k_i
    the number of targets of i: the constant log k_i makes the sum the KL
    divergence itself, never negative.

    Parameters
    ----------
    training : TrainingSet
        The data.
    max_iter : int
        Most iterations of one solve.
    """

    fixed_row_sizes = True
    cost_grows_with_distance = True

    def __init__(self, training: TrainingSet, max_iter: int) -> None:
        self.training = training
        self.max_iter = max_iter

    def free_term(self, components: np.ndarray) -> float:
        """Nothing in MCML is free of the neighbourhoods."""
        return 0.0

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """F_ij of every pair, with k_i the number of pairs of row i."""
        kernels = self.training.kernels
        embedding = kernels.embed(self.training.points, components)
        row_term = kernels.log_normalizers(embedding) - kernels.log(pairs.sizes.clip(min=1))
        costs = kernels.distances(embedding, pairs) + kernels.per_pair(row_term, pairs)
        return costs / kernels.per_pair(pairs.sizes, pairs)

    def solve(
        self,
        targets: Pattern | None,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Minimise over the metric; ``targets`` None means all rows of the same class."""
        monitor = monitor or Monitor()
        kernels = self.training.kernels
        sizes = target_counts(self.training, targets)
        weights = None if targets is None else 1.0 / kernels.per_pair(sizes, targets)
        conditioning = whiten_pull(kernels, self.training.points, targets, weights)
        task = MCMLTask(kernels, conditioning, sizes)
        start = conditioning.to_conditioned(components)
        if state is None:
            start = start * np.sqrt(worthwhile(task.best_scale(start)))

        def to_original(found: np.ndarray) -> np.ndarray:
            return conditioning.to_original(found, components.shape[0])

        found = solve_softmax(
            task,
            start,
            tol=tol,
            max_iter=self.max_iter,
            monitor=monitor,
            to_original=to_original,
            warm=state is not None,
        )
        return Solution.of(found, to_original, monitor, state=True)


class MCMLTask:
    """The MCML objective in conditioned coordinates.

    See :class:`lnml.solvers.barrier.SoftmaxTask`.
    """

    def __init__(self, kernels: Kernels, conditioning: Conditioning, sizes: Any) -> None:
        self.kernels = kernels
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.precision = self.points.precision
        # Rows without targets have no ideal distribution; others still see them.
        self.counts = sizes > 0
        self.log_sizes = float(kernels.log(sizes[self.counts]).sum())
        self.scatter = kernels.gram(self.points.data, self.points.data)
        n = self.points.n_rows
        self.ceiling = self.scatter / (n * max(LARGEST_ROUNDING / self.precision, LEAST_CEILING))
        self.objective_at_zero = np.log(n - 1.0) * int(self.counts.sum()) - self.log_sizes

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """KL divergence plus its rounding, and the gradient (r x d), streamed.

        Counting the rounding keeps the solver away from metrics so large that
        their objective cannot be computed.
        """
        embedding = self.kernels.embed(self.points, components)
        log_normalizers, expected = cheaper_moment(
            lambda values: self.kernels.softmax(embedding, self.counts, values),
            embedding,
            components,
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
        log_normalizers, expected = self.kernels.softmax(embedding, self.counts, self.points.data)
        entropy = self._total(log_normalizers)
        entropy += float(np.vdot(components @ expected, components))
        return DualPoint(entropy - self.log_sizes, np.diag(self.pull) - expected)


def target_counts(training: TrainingSet, targets: Pattern | None) -> Any:
    """Return the number of targets of every row."""
    if targets is not None:
        return targets.sizes
    class_sizes = np.diff(training.points.class_start)
    return training.kernels.per_row(class_sizes - 1, training.points)
