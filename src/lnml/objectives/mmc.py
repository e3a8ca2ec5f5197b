"""Distance metric learning with side information (Xing et al. 2003): MMC.

The constraint is met by scaling: what is minimised is a ratio that does not
depend on the scale of the metric. See docs/mmc.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lnml.conditioning import Conditioning, scale_pull, whiten_pull
from lnml.kernels.protocol import Kernels, Pattern
from lnml.objectives.contract import Solution, TrainingSet
from lnml.solvers.monitor import Monitor
from lnml.solvers.ratio import Certificate, solve_ratio
from lnml.solvers.stopping import Found

# How much more than the average slope a direction must promise to be worth adding.
ESCAPE_THRESHOLD = 1e-4

# A start under which distances are this short, relative to its size, sees only rounding.
VANISHING = 1e-8

# Maps components to the sum of the roots over dissimilar pairs, and its gradient in M.
Roots = Callable[[np.ndarray], tuple[float, np.ndarray]]


class MMCProblem:
    """Sum over target pairs of D_ij, the sum of sqrt(D_il) over other classes being one.

    Parameters
    ----------
    training : TrainingSet
        The data; float32 is widened, because the gap is as small as the square
        root of the rounding of the objective only.
    diagonal : bool
        Whether only diagonal metrics are considered.
    max_iter : int
        Most iterations of one solve.
    """

    fixed_row_sizes = False
    cost_grows_with_distance = True

    def __init__(self, training: TrainingSet, diagonal: bool, max_iter: int) -> None:
        self.kernels = training.kernels
        self.points = self.kernels.widened(training.points)
        self.diagonal = diagonal
        self.max_iter = max_iter

    def free_term(self, components: np.ndarray) -> float:
        """Return zero: the rest of the problem is a constraint, which every metric is scaled to."""
        return 0.0

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """D_ij of every pair, under the multiple of the metric that meets the constraint."""
        embedding = self.kernels.embed(self.points, components)
        root_sum, _ = self.kernels.root_sums(embedding)
        return self.kernels.distances(embedding, pairs) / (root_sum or 1.0) ** 2

    def solve(
        self,
        targets: Pattern | None,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Minimise over the metric; ``targets`` None means all pairs of the same class."""
        kernels, points = self.kernels, self.points
        weights = np.ones(points.class_start.size - 1) if targets is None else None
        condition = scale_pull if self.diagonal else whiten_pull
        conditioning = condition(kernels, points, targets, weights)

        def roots(trial: np.ndarray) -> tuple[float, np.ndarray]:
            return kernels.root_sums(kernels.embed(conditioning.points, trial))

        task = MMCTask(roots, conditioning, self.diagonal)
        return _solve_task(task, components, tol, self.max_iter, monitor or Monitor())


def solve_pairs(
    kernels: Kernels,
    differences: np.ndarray,
    similar: np.ndarray,
    components: np.ndarray,
    *,
    diagonal: bool,
    tol: float,
    max_iter: int,
    monitor: Monitor,
) -> Solution:
    """Solve the problem of given pairs, each counted once.

    Parameters
    ----------
    kernels : Kernels
        The device.
    differences : ndarray of shape (m, d)
        v = a - b of each pair (a, b), in float64.
    similar : ndarray of bool, shape (m,)
        Whether a pair is similar; the others are dissimilar.
    components : ndarray of shape (r, d)
        Start.
    diagonal, tol, max_iter, monitor
        As for :class:`MMCProblem`.
    """
    # Rows v and -v have mean zero and the spread of the differences; their distance is 2 v.
    m = similar.size
    points = kernels.points(np.vstack([differences, -differences]), np.array([0, 2 * m]))
    indptr = np.concatenate([[0], np.cumsum(similar), np.full(m, similar.sum())])
    targets = Pattern(indptr, (m + np.flatnonzero(similar)).astype(np.int32))
    quarters = kernels.array(np.full(targets.size, 0.25))
    condition = scale_pull if diagonal else whiten_pull
    conditioning = condition(kernels, points, kernels.pattern(targets), quarters)
    apart = kernels.points(differences[~similar], np.array([0, m - similar.sum()]))
    roots = partial(kernels.length_sums, kernels.mapped(apart, conditioning.matrix))
    task = MMCTask(roots, conditioning, diagonal)
    return _solve_task(task, components, tol, max_iter, monitor)


class MMCTask:
    """The ratio <S, M> / (sum of roots)^2 in conditioned coordinates.

    See :class:`lnml.solvers.ratio.RatioTask`. For a diagonal metric the same
    formulas hold with the diagonal of all matrices.
    """

    def __init__(self, roots: Roots, conditioning: Conditioning, diagonal: bool) -> None:
        self.conditioning = conditioning
        self.pull = conditioning.pull
        self.diagonal = diagonal
        self._all_roots = roots

    def roots(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of the roots, and its gradient in M (d x d)."""
        root_sum, slopes = self._all_roots(components)
        return root_sum, np.diag(np.diag(slopes)) if self.diagonal else slopes

    def admissible(self, components: np.ndarray) -> np.ndarray:
        """Return diagonal components for a diagonal metric."""
        if not self.diagonal:
            return components
        return np.diag(np.linalg.norm(components, axis=0))

    def start(self, components: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Given components in the task's coordinates, reduced to the directions ``seen``.

        Random ones take the place of a start under which all dissimilar pairs coincide.
        """
        conditioning = self.conditioning
        if self.diagonal:
            start = self.admissible(components @ conditioning.inverse.T)
        else:
            start = conditioning.to_conditioned(components)
        start = np.where(seen, start, 0.0)
        typical = np.linalg.norm(start) * self.roots(np.diag(1.0 * seen))[0]
        if self.roots(start)[0] <= VANISHING * typical:
            start = np.where(seen, np.random.default_rng(0).standard_normal(start.shape), 0.0)
        return self.admissible(start)

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Components (n_rows x d) for the data as given, scaled to meet the constraint."""
        scaled = components / self.roots(components)[0]
        return self.admissible(self.conditioning.to_original(scaled, n_rows))

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Ratio, and its gradient (r x d)."""
        root_sum, slopes = self.roots(components)
        pulled = components * self.pull
        value = float(np.vdot(pulled, components)) / root_sum**2
        gradient = 2.0 * pulled / root_sum**2 - 4.0 * value / root_sum * components @ slopes
        return value, gradient

    def certify(self, components: np.ndarray) -> Certificate:
        """Ratio, the bound of docs/mmc.md, and directions of more than average slope."""
        root_sum, slopes = self.roots(components)
        similar = float(np.vdot(components * self.pull, components))
        linear = float(np.vdot(components @ slopes, components))
        scale = 1.0 / np.sqrt(self.pull)
        values, vectors = np.linalg.eigh(slopes * scale[:, None] * scale)
        better = values > (1.0 + ESCAPE_THRESHOLD) * linear / similar
        directions = vectors[:, better] * scale[:, None]
        return Certificate(
            objective=similar / root_sum**2,
            bound=1.0 / (4.0 * (root_sum - linear) * float(values[-1])),
            directions=directions / np.linalg.norm(directions, axis=0),
        )


def _solve_task(
    task: MMCTask, components: np.ndarray, tol: float, max_iter: int, monitor: Monitor
) -> Solution:
    to_original = partial(task.to_original, n_rows=components.shape[0])
    free = task.pull == 0.0
    if free.any():
        _warn_of_collapse(free)
        found = Found(task.start(components, seen=free), 0.0, 0.0, 0.0, True)
        monitor.step(
            {"iteration": 1, "objective": 0.0, "bound": 0.0, "gap": 0.0, "n_evaluations": 1},
            partial(to_original, found.components),
        )
    else:
        found = solve_ratio(
            task,
            task.start(components, seen=~free),
            tol=tol,
            max_iter=max_iter,
            monitor=monitor,
            to_original=to_original,
        )
    return Solution.of(found, to_original, monitor, state=None)


def _warn_of_collapse(free: np.ndarray) -> None:
    warnings.warn(
        f"similar pairs do not differ at all in {free.sum()} of the {free.size} directions in "
        f"which the data vary (fewer rows than features, a feature that is constant within "
        f"every class, or target neighbours that agree in it). A metric that sees these "
        f"directions alone has the least objective, zero, and is returned; it may say little "
        f"about other rows: reduce the features first, for example with "
        f"sklearn.decomposition.PCA, or use more target neighbours",
        UserWarning,
        stacklevel=2,
    )
