"""Large margin nearest neighbours (paper, eq. 6) for given target neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import get_config

from lnml.conditioning import Conditioning, whiten_pull
from lnml.kernels.protocol import (
    Embedding,
    Hinge,
    Kernels,
    Multipliers,
    Pattern,
    TooManyPairs,
)
from lnml.objectives.contract import Solution, TrainingSet
from lnml.solvers.monitor import Monitor
from lnml.solvers.multipliers import MARGIN, SMOOTHING, Evaluation, solve_hinge
from lnml.solvers.scale import worthwhile

# Eigenvalues of a scatter matrix below this share of its scale are rounding.
ROUNDING = 1e-12
# Dual infeasibility worth leaving a saddle for, in units of the pull.
ESCAPE_THRESHOLD = 1e-4
# Bytes that one candidate pair takes in a working set and its evaluation.
PAIR_BYTES = 24


@dataclass(frozen=True)
class _State:
    """Multipliers, and the targets whose slots they refer to."""

    targets: Pattern
    multipliers: Multipliers


# A search serves a radius this much smaller than its own, whatever the rounding.
SLACK = 1.0 + 1e-3


@dataclass(frozen=True)
class _Search:
    """A search over all rows, and the metric and radius it was made for."""

    components: np.ndarray
    radius: np.ndarray
    found: Pattern

    def serves(self, components: np.ndarray, radius: np.ndarray) -> bool:
        """Whether it was made at this very metric and looked this far."""
        return self.components is components and bool(np.all(SLACK * radius <= self.radius))


class LMNNProblem:
    """Sum over targets of (1 - mu) D_ij + mu * sum over impostors of [1 + D_ij - D_il]+.

    Parameters
    ----------
    training : TrainingSet
        The data.
    push_weight : float
        mu, the weight of the hinge.
    max_iter : int
        Most iterations of one solve.
    """

    fixed_row_sizes = False
    cost_grows_with_distance = True

    def __init__(self, training: TrainingSet, push_weight: float, max_iter: int) -> None:
        self.training = training
        self.push_weight = push_weight
        self.max_iter = max_iter
        self._last_search: _Search | None = None

    def free_term(self, components: np.ndarray) -> float:
        """Nothing in LMNN is free of the neighbourhoods."""
        return 0.0

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> np.ndarray:
        """Pull plus push of every pair; searches are shared with the metric steps around it."""
        kernels, points = self.training.kernels, self.training.points
        embedding = kernels.embed(points, components)
        distances = kernels.distances(embedding, pairs)
        reach = 1.0 + row_maximum(distances, pairs)
        try:
            known = self._search(embedding, components, reach)
            push = kernels.hinge(embedding, pairs, known.found, 0.0, None).target_hinge
        except TooManyPairs:
            push = self._push_by_blocks(embedding, pairs, reach)
        return (1.0 - self.push_weight) * distances + self.push_weight * push

    def _search(self, embedding: Embedding, components: np.ndarray, radius: np.ndarray) -> _Search:
        """Return the last search where it serves, or one that serves the next metric step, too."""
        known, self._last_search = self._last_search, None
        if known is None or not known.serves(components, radius):
            radius = MARGIN * (radius + SMOOTHING)
            found = self.training.kernels.within(embedding, radius, max_pairs=most_pairs())
            known = _Search(components, radius, found)
        self._last_search = known
        return known

    def _push_by_blocks(
        self, embedding: Embedding, pairs: Pattern, radius: np.ndarray
    ) -> np.ndarray:
        """Hinge of every pair where all candidates at once would not fit: block by block."""
        kernels, n = self.training.kernels, self.training.points.n_rows
        push = np.empty(pairs.size)
        step = max(most_pairs() // n, 1)
        for lo in range(0, n, step):
            hi = min(lo + step, n)
            candidates = kernels.within(embedding, radius, rows=(lo, hi))
            part = slice(pairs.indptr[lo], pairs.indptr[hi])
            block = Pattern(pairs.indptr[lo : hi + 1] - pairs.indptr[lo], pairs.indices[part])
            terms = kernels.hinge(embedding, block, candidates, 0.0, None, first_row=lo)
            push[part] = terms.target_hinge
        return push

    def solve(
        self,
        targets: Pattern,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Minimise over the metric to a relative duality gap of ``tol``."""
        monitor = monitor or Monitor()
        conditioning = whiten_pull(self.training.kernels, self.training.points, targets)
        task = LMNNTask(self.training.kernels, conditioning, targets, self.push_weight)
        if state is not None:
            task.multipliers = carry_over(state.multipliers, state.targets, targets)
        known, self._last_search = self._last_search, None
        if state is not None and known is not None and known.components is components:
            task.known = known
        start = conditioning.to_conditioned(components)
        if state is None:
            start = start * np.sqrt(worthwhile(best_scale(task, start)))

        def to_original(found: np.ndarray) -> np.ndarray:
            return conditioning.to_original(found, components.shape[0])

        found = solve_hinge(
            task,
            start,
            tol=tol,
            max_iter=self.max_iter,
            monitor=monitor,
            to_original=to_original,
            warm=state is not None,
        )
        state = _State(targets, task.multipliers) if task.multipliers else None
        solution = Solution.of(found, to_original, monitor, state)
        last = task.last_search
        if last is not None and last.components is found.components:
            self._last_search = _Search(solution.components, last.radius, last.found)
        return solution


class LMNNTask:
    """The LMNN objective in conditioned coordinates, over a working set of impostors.

    See :class:`lnml.solvers.multipliers.HingeTask`.
    """

    def __init__(
        self, kernels: Kernels, conditioning: Conditioning, targets: Pattern, push_weight: float
    ) -> None:
        self.kernels = kernels
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.targets = targets
        self.mu = push_weight
        self.precision = float(np.finfo(self.points.data.dtype).eps)
        self.multipliers: Multipliers | None = None
        self.known: _Search | None = None
        self.last_search: _Search | None = None
        self.candidates = Pattern(np.zeros(self.points.n_rows + 1, np.int64), np.zeros(0, np.int32))
        others = self.points.n_rows - np.diff(self.points.class_start)[self.points.row_class]
        self.objective_at_zero = push_weight * float(np.diff(targets.indptr) @ others)

    def search(self, components: np.ndarray, smoothing: float, margin: float = MARGIN) -> None:
        """Collect all impostors within reach, and some beyond if there is room."""
        embedding = self.kernels.embed(self.points, components)
        reach = row_maximum(self.kernels.distances(embedding, self.targets), self.targets)
        radius = 1.0 + reach + smoothing
        known, self.known = self.known, None
        if known is not None and np.all(SLACK * radius <= known.radius):
            self._take(components, known.radius, known.found)
            return
        for factor in (margin, 1.0):
            try:
                found = self.kernels.within(embedding, factor * radius, max_pairs=most_pairs())
                self._take(components, factor * radius, found)
                return
            except TooManyPairs:
                continue
        raise MemoryError(
            f"more than {most_pairs():,} impostors are within reach of {radius.size:,} rows, "
            f"which takes more than {most_pairs() * PAIR_BYTES / 2**30:.1f} GiB: raise "
            f"scikit-learn's working_memory, or use fewer rows or target neighbours"
        )

    def _take(self, components: np.ndarray, radius: np.ndarray, found: Pattern) -> None:
        self.candidates = found
        self.last_search = _Search(components, radius, found)

    def smoothed(self, components: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """Value and gradient (r x d) of the smoothed objective over the working set."""
        embedding = self.kernels.embed(self.points, components)
        terms = self._hinge(embedding, smoothing)
        pull, pull_gradient = self._pull(components)
        moved = self.kernels.laplacian(self._edges(terms), embedding.coordinates)
        push = self.kernels.gram(moved, self.points.data, exact=False)
        return pull + self.mu * terms.smoothed, pull_gradient + 2.0 * self.mu * push

    def evaluate(self, components: np.ndarray, smoothing: float) -> Evaluation:
        """Exact objective and the dual bound of docs/lmnn.md."""
        embedding = self.kernels.embed(self.points, components)
        terms = self._hinge(embedding, smoothing)
        objective = self._pull(components)[0] + self.mu * terms.exact
        push = self.kernels.gram(
            self.kernels.laplacian(self._edges(terms), self.points.data), self.points.data
        )
        # In units of the pull scatter S, G = (1 - mu) S + mu * push must be >= -nu S.
        scale = 1.0 / np.sqrt(self.pull + ROUNDING)
        matrix = np.diag((1.0 - self.mu) * self.pull) + self.mu * (push + push.T) / 2
        values, vectors = np.linalg.eigh(matrix * scale[:, None] * scale)
        shortfall = max(0.0, -float(values[0]))
        share = (1.0 - self.mu) / (1.0 - self.mu + shortfall)
        directions = vectors[:, values < -ESCAPE_THRESHOLD] * scale[:, None]
        return Evaluation(
            objective=objective,
            bound=share * self.mu * terms.slope_sum,
            n_active=terms.n_active,
            directions=directions / np.linalg.norm(directions, axis=0),
        )

    def update_multipliers(self, components: np.ndarray, smoothing: float) -> None:
        """Take the slopes at a metric as the new multipliers."""
        embedding = self.kernels.embed(self.points, components)
        self.multipliers = self.kernels.slopes(
            embedding, self.targets, self.candidates, smoothing, self.multipliers
        )

    def _pull(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        weighted = (1.0 - self.mu) * components * self.pull
        return float(np.vdot(weighted, components)), 2.0 * weighted

    def _hinge(self, embedding: Any, smoothing: float) -> Hinge:
        return self.kernels.hinge(
            embedding, self.targets, self.candidates, smoothing, self.multipliers
        )

    def _edges(self, terms: Hinge) -> list[tuple[Pattern, Any, float]]:
        return [
            (self.targets, terms.target_weights, 1.0),
            (self.candidates, terms.candidate_weights, -1.0),
        ]


def best_scale(
    task: LMNNTask, components: np.ndarray, n_rows: int = 64, n_columns: int = 2048
) -> float:
    """Multiple t of M = L^T L with about the least objective along the ray.

    The objective is convex and piecewise linear in t. A sample of rows and
    impostors is enough, since any multiple is a valid start.
    """
    rng = np.random.default_rng(0)
    kernels, targets = task.kernels, task.targets
    embedding = kernels.embed(task.points, components)
    rows = rng.permutation(np.flatnonzero(np.diff(targets.indptr)))[:n_rows]
    columns = rng.permutation(task.points.n_rows)[:n_columns]
    impostors = cdist(
        kernels.rows(embedding, rows), kernels.rows(embedding, columns), "sqeuclidean"
    )
    row_class = task.points.row_class
    impostors[row_class[rows][:, None] == row_class[columns]] = np.inf
    distances = kernels.distances(embedding, targets)
    pull, margins = 0.0, []
    for row, to_impostors in zip(rows, impostors, strict=True):
        own = distances[targets.indptr[row] : targets.indptr[row + 1]]
        pull += float(own.sum())
        margins.append((own[:, None] - to_impostors[np.isfinite(to_impostors)]).ravel())
    # A triplet is active at t while margin > -1 / t; its slope there is its margin.
    margin = np.sort(np.concatenate(margins))[::-1]
    slopes = (1.0 - task.mu) * pull + task.mu * task.points.n_rows / columns.size * np.cumsum(
        margin
    )
    closing = np.flatnonzero((slopes <= 0) & (margin < 0))
    # Beyond -1 / margin[closing[0]] that triplet is inactive and the slope is positive.
    return -1.0 / margin[closing[0]] if closing.size else 1.0


def carry_over(old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
    """Multipliers of the triplets whose target pair is still one."""
    if old_targets is targets:
        return old
    n = targets.indptr.size - 1
    row = np.repeat(np.arange(n), np.diff(old.indptr))
    pair = row * n + old_targets.indices[old_targets.indptr[row] + old.slot]
    new_row = np.repeat(np.arange(n), np.diff(targets.indptr))
    new_pairs = new_row * n + targets.indices
    place = np.minimum(np.searchsorted(new_pairs, pair), new_pairs.size - 1)
    kept = new_pairs[place] == pair
    slot = (place - targets.indptr[row])[kept].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=n))])
    return Multipliers(indptr, old.impostor[kept], slot, old.value[kept])


def row_maximum(values: np.ndarray, pattern: Pattern) -> np.ndarray:
    """Largest value of each row of a pattern; -inf for rows without pairs."""
    out = np.full(pattern.indptr.size - 1, -np.inf)
    filled = np.diff(pattern.indptr) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, pattern.indptr[:-1][filled])
    return out


def most_pairs() -> int:
    """Return how many candidate pairs fit scikit-learn's ``working_memory``."""
    return int(get_config()["working_memory"] * 2**20 / PAIR_BYTES)
