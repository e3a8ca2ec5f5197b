"""Maximally collapsing metric learning (paper, eq. 9)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from lnml.core.pairs import Pattern, Search
from lnml.core.points import Points
from lnml.core.solution import DualPoint, Proof
from lnml.core.warm_start import WarmStart
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, PairCosts, Task, cheaper_moment
from lnml.objectives.conditioning import Conditioning, ideal_pull, whiten_pull
from lnml.objectives.scatter import total_scatter
from lnml.objectives.softmax_proof import prove_mcml
from lnml.objectives.trace import PenalisedObjective, Ridge

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
        embedding = kernels.embed(self.training.points, components)
        return PairCosts(kernels.softmax_costs(embedding, pairs))

    def task(self, targets: Pattern | None) -> MCMLTask:
        """Return the task; ``targets`` None means all rows of the same class."""
        task: MCMLTask = self.not_at_zero(targets)
        return task

    def penalised(self, targets: Pattern | None, ridge: Ridge) -> MCMLTask:
        """See :class:`lnml.objectives.trace.PenalisedObjective`."""
        kernels, points = self.training.kernels, self.training.points
        conditioning = whiten_pull(kernels, points, ideal_pull(points, targets), ridge.weight)
        return MCMLTask(kernels, conditioning, targets, ridge.weight)

    def prove(
        self, task: MCMLTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned, and the proved bound."""
        return prove_mcml(self.training, task, components, care, self.ridge)


class _Pass(NamedTuple):
    """What a pass over all pairs found at components (r x d)."""

    components: np.ndarray
    full: bool
    log_normalizers: float
    expected: np.ndarray


class MCMLTask(Task):
    """The MCML objective in conditioned coordinates.

    See :class:`lnml.solvers.barrier.SoftmaxTask`.
    """

    def __init__(
        self,
        kernels: Kernels,
        conditioning: Conditioning,
        targets: Pattern | None = None,
        ridge: float = 0.0,
    ) -> None:
        super().__init__(conditioning)
        self.kernels, self.targets = kernels, targets
        self.last: _Pass | None = None
        self.n_evaluations = 0
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
        sizes = target_counts(kernels, self.points, targets)
        self.n_counted = sum(sizes.values())
        self.log_sizes = float(sum(count * np.log(size) for size, count in sizes.items()))
        n = self.points.n_rows
        # What the rounding of distances grows with: the squares of the rows, or, where
        # distances come from differences, those of target pairs.
        self.scatter = total_scatter(kernels, self.points)
        if self.points.far:
            self.scatter = np.eye(self.points.n_features)
        self.ceiling = self.scatter / (n * max(LARGEST_ROUNDING / self.precision, LEAST_CEILING))
        self.objective_at_zero = np.log(n - 1.0) * self.n_counted - self.log_sizes

    def keep_dual(self, components: list[np.ndarray | None], share: float) -> None:
        """Keep the metrics of one dual point, or of a mixture with a share of the second.

        None in place of a metric stands for the ideal distribution.
        """
        self.dual = components, share

    def warm_start(self, found: np.ndarray, components: np.ndarray) -> WarmStart:
        """Say that the metric found is the end of a barrier path."""
        return WarmStart(components, at_end_of_path=True)

    def _pass(self, components: np.ndarray, full: bool) -> tuple[float, np.ndarray]:
        """Sum of log Z and the expected scatter; solvers ask for more at the last metric."""
        if self.last is None or not (
            self.last.full == full and np.array_equal(self.last.components, components)
        ):
            embedding = self.kernels.embed(self.points, components)
            found = self.kernels.softmax(embedding, self.targets, full=full)
            self.last = _Pass(components.copy(), full, *found)
            self.n_evaluations += 1
        return self.last.log_normalizers, self.last.expected

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """KL divergence plus its rounding, and the gradient (r x d), streamed.

        Counting the rounding keeps the solver away from metrics so large that
        their objective cannot be computed.
        """
        log_normalizers, expected = cheaper_moment(partial(self._pass, components), components)
        pulled = components * self.pull
        value = float(np.vdot(pulled, components)) + log_normalizers
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

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least objective along the ray."""

        def along_ray(log_scale: float) -> float:
            scaled = np.exp(log_scale / 2) * components
            embedding = self.kernels.embed(self.points, scaled)
            log_normalizers, _ = self.kernels.softmax(embedding, self.targets, full=None)
            return float(np.vdot(scaled * self.pull, scaled)) + log_normalizers

        n = self.points.n_rows
        spread = 2.0 * float(np.vdot(components @ self.scatter, components)) / n
        pull = float(np.vdot(components * self.pull, components)) / n
        # From all distances near zero to target distances that are already too long.
        bounds = np.log([1e-3 / spread, 1e3 / max(pull, 1e-6 * spread)])
        return float(np.exp(minimize_scalar(along_ray, bounds=bounds, options={"xatol": 0.3}).x))

    def dual_point(self, components: np.ndarray) -> DualPoint:
        """Entropy of the model's rows, and pull minus expected scatter."""
        log_normalizers, expected = self._pass(components, True)
        entropy = log_normalizers + float(np.vdot(components @ expected, components))
        return DualPoint(entropy - self.log_sizes, np.diag(self.pull) - expected)

    def slope_at_zero(self) -> np.ndarray:
        """See :class:`lnml.objectives.trace.PenalisedTask`: all partners are equally likely."""
        points, sizes = self.points, self.points.class_sizes
        filled = 1.0 * (sizes > 1) if self.targets is None else self.targets.sizes > 0
        expected = self.kernels.pair_scatter(points, filled, filled) / (points.n_rows - 1.0)
        return np.diag(self.pull) - expected


def target_counts(kernels: Kernels, points: Points, targets: Pattern | None) -> dict[int, int]:
    """Return how many rows have how many targets, without those that have none."""
    if targets is None:
        sizes = [(int(size) - 1, int(size)) for size in points.class_sizes]
    else:
        sizes = list(kernels.pattern(targets).size_counts().items())
    found: dict[int, int] = {}
    for size, count in sizes:
        if size > 0:
            found[size] = found.get(size, 0) + count
    return found
