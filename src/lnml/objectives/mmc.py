"""Distance metric learning with side information (Xing et al. 2003): MMC.

The constraint is met by scaling: what is minimised is a ratio that does not
depend on the scale of the metric. See docs/mmc.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lnml.core.pairs import Edge, Pattern, Search
from lnml.core.solution import Certificate, Proof
from lnml.core.warn import warn_user
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, PairCosts, Task
from lnml.objectives.conditioning import Conditioning, for_proof, scale_pull, whiten_pull
from lnml.objectives.ratio_proof import LabelledPairs, prove_ratio
from lnml.objectives.softmax_proof import host_pairs, host_rows
from lnml.objectives.trace import Ridge
from lnml.proofs.all_pairs import other_class, same_class

# How much more than the average slope a direction must promise to be worth adding.
ESCAPE_THRESHOLD = 1e-4

# A start under which distances are this short, relative to its size, sees only rounding.
VANISHING = 1e-8

# Maps components to the sum of the roots over dissimilar pairs, and its gradient in M.
Roots = Callable[[np.ndarray], tuple[float, np.ndarray]]


class MMCObjective:
    """Minimise the sum of D_ij over target pairs; the sum of sqrt(D_il) over the rest is one.

    Parameters
    ----------
    training : TrainingSet
        The data; float32 is converted to float64, because the gap cannot be smaller
        than about the square root of the objective's rounding error.
    diagonal : bool
        Whether only diagonal metrics are considered.
    trace_penalty : float
        rho: the trace of the metric costs like so many times the target pairs.
    """

    form = Form.RATIO
    fixed_row_sizes = False
    cost_grows_with_distance = True

    def __init__(self, training: TrainingSet, diagonal: bool, trace_penalty: float = 0.0) -> None:
        self.training = training
        self.ridge = Ridge.of(training, trace_penalty, training.n_target_pairs)
        self.dtype = training.points.dtype
        self.kernels = training.kernels
        self.points = self.kernels.mapped(training.points, wide=True)
        self.diagonal = diagonal

    def free_term(self, components: np.ndarray) -> float:
        """Return the trace penalty, under the multiple that meets the constraint.

        The rest of the problem is that constraint, which every metric is scaled to.
        """
        if self.ridge.weight == 0.0:
            return 0.0
        root_sum, _ = self.kernels.root_sums(self.kernels.embed(self.points, components))
        return self.ridge.value(components).value / (root_sum or 1.0) ** 2

    def pair_costs(
        self, components: np.ndarray, pairs: Pattern, known: Search | None = None
    ) -> PairCosts:
        """D_ij of every pair, under the multiple of the metric that meets the constraint."""
        embedding = self.kernels.embed(self.points, components)
        root_sum, _ = self.kernels.root_sums(embedding)
        return PairCosts(self.kernels.distances(embedding, pairs) / (root_sum or 1.0) ** 2)

    def task(self, targets: Pattern | None) -> MMCTask:
        """Return the task; ``targets`` None means all pairs of the same class."""
        kernels, points = self.kernels, self.points
        condition = scale_pull if self.diagonal else whiten_pull
        conditioning = condition(kernels, points, self._pull(targets), self.ridge.weight)

        def roots(trial: np.ndarray) -> tuple[float, np.ndarray]:
            return kernels.root_sums(kernels.embed(conditioning.points, trial))

        return MMCTask(roots, conditioning, self.diagonal, targets)

    def prove(
        self, task: MMCTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned, and the proved bound."""
        rows, similar, duals = host_rows(self.training, care), None, {}
        if task.targets is not None:
            pairs = host_pairs(self.training, task.targets)
            similar, duals = lambda: iter([pairs]), {"targets": np.stack(pairs, axis=1)}
        labelled = LabelledPairs(
            rows.data, similar or partial(same_class, rows), partial(other_class, rows)
        )
        conditioning = task.conditioning
        if not self.diagonal:
            points = self.training.points
            pull = self._pull(task.targets)
            conditioning = for_proof(self.kernels, points, conditioning, pull)
        return prove_ratio(labelled, task, components, conditioning.matrix, duals, self.ridge)

    def _pull(self, targets: Pattern | None) -> Edge | np.ndarray:
        """Every pair counts once."""
        return np.ones(self.points.class_sizes.size) if targets is None else Edge(targets)


class GivenPairsObjective:
    """The same for given pairs, each counted once.

    Parameters
    ----------
    kernels : Kernels
        The device.
    differences : ndarray of shape (m, d)
        v = a - b of each pair (a, b), in float64.
    similar : ndarray of bool, shape (m,)
        Whether a pair is similar; the others are dissimilar.
    diagonal : bool
        Whether only diagonal metrics are considered.
    dtype : dtype
        Type in which components are returned.
    trace_penalty : float
        As in :class:`MMCObjective`; two points differ by twice the variance.
    """

    form = Form.RATIO

    def __init__(
        self,
        kernels: Kernels,
        differences: np.ndarray,
        similar: np.ndarray,
        diagonal: bool,
        dtype: Any = np.float64,
        trace_penalty: float = 0.0,
    ) -> None:
        self.kernels = kernels
        self.dtype = np.dtype(dtype)
        self.differences = differences
        self.similar = similar
        self.ridge = Ridge()
        if trace_penalty > 0.0:
            size = np.linalg.norm(differences, axis=0)
            rank = np.linalg.matrix_rank(differences / np.where(size > 0.0, size, 1.0))
            square = float(np.square(differences).sum(axis=1).mean()) / max(int(rank), 1)
            self.ridge = Ridge.finite(trace_penalty, float(similar.sum()) * square)
        self.diagonal = diagonal

    def task(self, targets: None = None) -> MMCTask:
        """Return the task; there are no targets but the similar pairs."""
        kernels, v, similar = self.kernels, self.differences, self.similar
        # Rows v and -v have mean zero and the spread of the differences; their distance is 2 v.
        m = similar.size
        points = kernels.points(np.vstack([v, -v]), np.array([0, 2 * m]))
        indptr = np.concatenate([[0], np.cumsum(similar), np.full(m, similar.sum())])
        pairs = Pattern(indptr, (m + np.flatnonzero(similar)).astype(np.int32))
        pull = Edge(kernels.pattern(pairs), factor=0.25)
        condition = scale_pull if self.diagonal else whiten_pull
        conditioning = condition(kernels, points, pull, self.ridge.weight)
        apart = kernels.points(v[~similar], np.array([0, m - similar.sum()]))
        roots = partial(kernels.length_sums, kernels.mapped(apart, conditioning.matrix))
        return MMCTask(roots, conditioning, self.diagonal)

    def prove(
        self, task: MMCTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned, and the proved bound."""
        # A difference is one from row 0, which is zero.
        data = np.vstack([np.zeros((1, self.differences.shape[1])), self.differences])
        data = data.astype(np.longdouble if care == 2 else np.float64)
        ends = [np.flatnonzero(chosen) + 1 for chosen in (self.similar, ~self.similar)]
        near, apart = ((end, np.zeros_like(end)) for end in ends)
        labelled = LabelledPairs(data, lambda: iter([near]), lambda: iter([apart]))
        coordinates = task.conditioning.matrix
        duals = {"similar": self.similar}
        return prove_ratio(labelled, task, components, coordinates, duals, self.ridge)


class MMCTask(Task):
    """The ratio <S, M> / (sum of roots)^2 in conditioned coordinates.

    See :class:`lnml.solvers.ratio.RatioTask`. For a diagonal metric the same
    formulas hold with the diagonal of all matrices.
    """

    def __init__(
        self,
        roots: Roots,
        conditioning: Conditioning,
        diagonal: bool,
        targets: Pattern | None = None,
    ) -> None:
        super().__init__(conditioning)
        self.targets = targets
        # Metric whose tangents prove the best bound so far.
        self.dual: np.ndarray | None = None
        self.conditioning = conditioning
        self.pull = conditioning.pull
        self.diagonal = diagonal
        self._all_roots = roots
        # Where the roots were asked for last, and what they were.
        self._last: tuple[np.ndarray, tuple[float, np.ndarray]] | None = None

    @property
    def collapsed(self) -> bool:
        """Whether a metric exists under which all similar pairs coincide: the ratio is zero."""
        return bool((self.pull == 0.0).any())

    def roots(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of the roots, and its gradient in M (d x d)."""
        if self._last is None or not np.array_equal(self._last[0], components):
            # A copy: an optimiser may use its array again.
            self._last = components.copy(), self._all_roots(components)
        root_sum, slopes = self._last[1]
        return root_sum, np.diag(np.diag(slopes)) if self.diagonal else slopes

    def admissible(self, components: np.ndarray) -> np.ndarray:
        """Return diagonal components for a diagonal metric."""
        if not self.diagonal:
            return components
        return np.diag(np.linalg.norm(components, axis=0))

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Map components to the task's coordinates.

        Where the ratio can be zero, they are reduced to the directions that make it so.
        Random ones take the place of a start under which all dissimilar pairs coincide.
        """
        seen = self.pull == 0.0
        if self.collapsed:
            _warn_of_collapse(seen)
        else:
            seen = ~seen
        if self.diagonal:
            start = self.admissible(components @ self.conditioning.inverse.T)
        else:
            start = self.conditioning.to_conditioned(components)
        start = np.where(seen, start, 0.0)
        typical = np.linalg.norm(start) * self.roots(np.diag(1.0 * seen))[0]
        if self.roots(start)[0] <= VANISHING * typical:
            start = np.where(seen, np.random.default_rng(0).standard_normal(start.shape), 0.0)
        return self.admissible(start)

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Components (n_rows x d) for the data as given, scaled to meet the constraint."""
        scaled = components / self.roots(components)[0]
        return self.admissible(self.conditioning.to_original(scaled, n_rows))

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple of M = L^T L whose sum of roots is one, where its square would be no number.

        The ratio is the same for all multiples.
        """
        root_sum = 1.0 if self.collapsed else self.roots(components)[0]
        usual = root_sum == 0.0 or 1e-100 < root_sum < 1e100
        return 1.0 if usual else (1.0 / root_sum) ** 2

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Ratio, and its gradient (r x d)."""
        root_sum, slopes = self.roots(components)
        pulled = components * self.pull
        value = float(np.vdot(pulled, components)) / root_sum**2
        gradient = 2.0 * pulled / root_sum**2 - 4.0 * value / root_sum * components @ slopes
        return value, gradient

    def keep_dual(self, components: np.ndarray) -> None:
        """Keep a metric whose tangents prove the best bound so far."""
        self.dual = components

    def certify(self, components: np.ndarray) -> Certificate:
        """Ratio, the bound of docs/mmc.md, and directions of more than average slope."""
        root_sum, slopes = self.roots(components)
        similar = float(np.vdot(components * self.pull, components))
        linear = float(np.vdot(components @ slopes, components))
        scale = 1.0 / np.sqrt(self.pull)
        values, vectors = np.linalg.eigh(slopes * scale[:, None] * scale)
        better = values > (1.0 + ESCAPE_THRESHOLD) * linear / similar
        directions = vectors[:, better] * scale[:, None]
        directions /= np.linalg.norm(directions, axis=0)
        return Certificate(
            objective=similar / root_sum**2,
            bound=1.0 / (4.0 * (root_sum - linear) * float(values[-1])),
            directions=lambda: directions,
        )


def _warn_of_collapse(free: np.ndarray) -> None:
    warn_user(
        f"similar pairs do not differ at all in {free.sum()} of the {free.size} directions in "
        f"which the data vary (fewer rows than features, a feature that is constant within "
        f"every class, or target neighbours that agree in it). A metric that sees these "
        f"directions alone has the least objective, zero, and is returned; it may say little "
        f"about other rows: reduce the features first, for example with "
        f"sklearn.decomposition.PCA, or use more target neighbours"
    )
