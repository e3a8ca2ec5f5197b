"""Objective and bound of a finished triplet fit, from differences of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.pairs import MixedSlopes, Pattern, Search, Streamed
from lnml.core.points import Embedding, Points
from lnml.kernels.tensors import is_tensor
from lnml.kernels.training import TrainingSet
from lnml.objectives.triplet_task import TripletTask, count_triplets
from lnml.proofs.all_pairs import Rows
from lnml.proofs.all_triplets import Triplets, hinge_total
from lnml.proofs.differences import squared_lengths
from lnml.proofs.hinges import Pairs
from lnml.proofs.objective import Lengths, Value, hinge_sum
from lnml.proofs.rounding import gamma
from lnml.proofs.slopes import Slopes, SlopesAt

# Multiplications of differences with components, above which a fit is large.
LARGE = 2e9
LARGE_ON_DEVICE = 1e8
# Triplets whose hinges are listed at a time.
AT_A_TIME = 2**17
# Largest rounding of a length that a search for impostors is widened by.
MOST_SHIFT = 0.1
# Most pairs of rows, one of them too large for a search, that are looked at one by one.
MOST_ROUGH = 2e7


class FinishedTriplets:
    """The triplets of a finished fit, at the metric it returns.

    Parameters
    ----------
    training : TrainingSet
        The data.
    task : TripletTask
        What was solved.
    found : ndarray of shape (r, e)
        The metric in the coordinates of the task.
    components : ndarray of shape (r, d)
        The metric as it is returned.
    care : int
        See :meth:`lnml.objectives.base.Objective.prove`.
    may_be_large : bool
        Whether the objective has a proof that does without the rows.

    Attributes
    ----------
    pairs : Pairs
        The target pairs.
    targets : Lengths
        Their squared distances.
    large : bool
        Whether the rows are not on the host.
    streamed : bool
        Whether there is no room for impostors and slopes: a first proof of such a fit is that of a
        large one, a more careful one goes through all triplets, a few rows at a time.
    objective : float
        The objective, once it is known.
    """

    objective: float = np.inf

    def __init__(
        self,
        training: TrainingSet,
        task: TripletTask,
        found: np.ndarray,
        components: np.ndarray,
        care: int,
        may_be_large: bool = True,
    ) -> None:
        self.kernels, self.points = training.kernels, training.points
        self.task, self.found, self.components = task, found, components
        self.pattern = self.kernels.pattern(task.targets).to_host()
        i, j = self.pattern.pairs()
        # Differences of many long rows take longer than a fit: the device embeds rows first.
        most = LARGE_ON_DEVICE if is_tensor(self.points.data) else LARGE
        self.streamed = task.slopes_at is not None
        n_pairs = i.size + (0 if self.streamed else task.dual.count())
        self.large = care == 0 and n_pairs * components.size > most and not task.points.far
        self.large = may_be_large and (self.large or self.kernels.remote)
        self.large = self.large or (self.streamed and care == 0)
        task.working.rest()
        # Only the coordinates are wide: rows may be half as long.
        wide = self.kernels.mapped(self.points, components.T, wide=True)
        self.embedding = Embedding.of(wide)
        self.rounding = embedding_error(self.kernels.columns(self.points), wide, components)
        rows = np.zeros((0, self.points.n_features))
        if not self.large:
            rows = self.kernels.to_host(self.points.data)
            rows = np.asarray(rows, dtype=np.longdouble if care == 2 else np.float64)
        self.pairs = Pairs(rows, i, j)
        self.targets = self._lengths()

    def _lengths(self) -> Lengths:
        """Squared distances of the target pairs."""
        rows, i, j = self.pairs
        if not self.large:
            return Lengths(*squared_lengths(rows, i, j, self.components))
        kernels, pattern = self.kernels, self.task.targets
        values = kernels.to_host(kernels.distances(self.embedding, pattern))
        shift = 2.0 * self.rounding
        # In place: they are many.
        errors = np.sqrt(values)
        errors *= 2.0 * shift
        errors += shift**2
        errors += gamma(len(self.components) + 2) * values
        return Lengths(values, errors)

    def dual(self) -> Slopes | SlopesAt | MixedSlopes:
        """Return the slopes that prove the bound; those of a large fit stay on the device."""
        if self.task.slopes_at is not None:
            return self.task.slopes_at
        return self.task.dual.mixed() if self.large else self.task.dual.on_host()

    @property
    def triplets(self) -> Triplets:
        """Rows on the host and target pairs, from which all triplets follow."""
        rows = Rows(self.pairs.rows, np.asarray(self.points.class_start))
        return Triplets(rows, self.pattern.indptr, self.pairs.i, self.pairs.j)

    def hinges(self) -> Value:
        """Sum of the hinges of all triplets."""
        if self.streamed and not self.large:
            return hinge_total(self.triplets, self.components)
        if self.large:
            return self._hinges_by_device()
        reach = self._reach()
        rows, impostors = self._candidates(reach)
        step = max(1, AT_A_TIME // int(self.pattern.sizes.max(initial=1)))
        total = Value(0.0, 0.0)
        for lo in range(0, rows.size, step):
            some, others = rows[lo : lo + step], impostors[lo : lo + step]
            lengths = Lengths(*squared_lengths(self.pairs.rows, some, others, self.components))
            found = hinge_sum(self.targets, self.pattern.indptr, lengths, some)
            total = total.plus(found) if lo else found
        return total

    def _upper(self) -> np.ndarray:
        """How far an impostor of each target pair may be, squared, rounding included."""
        return np.asarray(1.0 + self.targets.values + self.targets.errors)

    def _reach(self) -> np.ndarray:
        """How far impostors of each row may be; rows without targets have none."""
        reach = np.full(self.points.n_rows, -np.inf)
        filled = np.flatnonzero(self.pattern.sizes)
        reach[filled] = np.maximum.reduceat(self._upper(), self.pattern.indptr[filled])
        return reach

    def _hinges_by_device(self) -> Value:
        """Sum of the hinges, from coordinates in float64."""
        kernels, targets = self.kernels, self.task.targets
        search, found = self._last_search(), None
        if search is not None:
            # Ordinary columns: the search looked further than their rounding.
            found = search.found
        elif not self.streamed:
            found = self._searched(self._reach())
        working = kernels.working_set(targets, found)
        if self.streamed:
            working = Streamed.of(working)
        terms = kernels.hinge(self.embedding, working, 0.0)
        longest = float(self._upper().max(initial=0.0))
        each = self.hinge_error(longest, self.rounding, self.components)
        # Triplets that are active, or would be but for rounding, have two distances each. Of
        # many rows that are equal, all triplets may be at the edge.
        count = count_triplets(self.points, targets, None) if self.streamed else terms.n_active + 1
        error = 4.0 * each * count + gamma(terms.n_active + 8) * terms.exact
        return Value(terms.exact, error)

    @staticmethod
    def hinge_error(reach: float, rounding: float, components: np.ndarray) -> float:
        """Largest error of a squared distance up to a reach, from coordinates with rounding."""
        shift = 2.0 * rounding
        each = 2.0 * np.sqrt(reach) * shift + shift**2
        return float(each + gamma(len(components) + 4) * reach)

    def _last_search(self) -> Search | None:
        """Return the last search of the solver, if it was made at this metric."""
        search = self.task.last_search
        return search if search is not None and search.made_at(self.found) else None

    def _searched(self, reach: np.ndarray) -> Pattern:
        """Return pairs (row, impostor), all within reach among them."""
        if self.task.impostors is not None:
            return self.task.impostors
        search, radius = self._last_search(), self._radius(reach)
        needed = radius if search is None else self._seen_from_task(radius)
        return self.kernels.within(
            self.embedding, radius, known=search, needed=needed, limited=False
        ).found

    def _radius(self, reach: np.ndarray) -> np.ndarray:
        """Return how far impostors are looked for, as squared distances that are rounded."""
        # Rows whose coordinates are less exact than that are compared with all others.
        shift = min(2.0 * self.rounding, MOST_SHIFT)
        radius = (np.sqrt(np.maximum(reach, 0.0)) + shift) ** 2
        return np.where(reach > 0.0, radius * (1.0 + 1e-9), -np.inf)

    def _candidates(self, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs (row, impostor) whose hinges may be above zero."""
        pattern = self.kernels.pattern(self._searched(reach))
        rows, impostors = pattern.to_host().pairs()
        lengths = self.kernels.to_host(self.kernels.distances(self.embedding, pattern))
        near = lengths < self._radius(reach)[rows]
        rough = self._rough()
        if rough.any():
            near |= rough[rows] | rough[impostors]
        rows, impostors = rows[near], impostors[near]
        if rough.any() and self.task.impostors is None:
            rows, impostors = self._with_rough(rows, impostors, rough, reach > 0.0)
        return rows, impostors

    def _rough(self) -> np.ndarray:
        """Whether the rounding of each row's coordinates exceeds what a search is widened by."""
        if 2.0 * self.rounding <= MOST_SHIFT:
            return np.zeros(self.points.n_rows, dtype=bool)
        sizes = np.linalg.norm(self.components, axis=0)
        own = gamma(self.points.n_features + 2) * (np.abs(self.pairs.rows) @ sizes)
        return np.asarray(own > 0.5 * MOST_SHIFT)

    def _with_rough(
        self, rows: np.ndarray, impostors: np.ndarray, rough: np.ndarray, used: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs, and all those of a rough row and one of another class."""
        n, sizes = self.points.n_rows, self.points.class_sizes
        if float(rough.sum()) * n > MOST_ROUGH:
            return rows, impostors
        codes = np.repeat(np.arange(sizes.size), sizes)
        keys = [rows.astype(np.int64) * n + impostors]
        for k in np.flatnonzero(rough):
            others = np.flatnonzero(codes != codes[k])
            keys.append(others[used[others]] * n + k)
            if used[k]:
                keys.append(k * n + others)
        both = np.unique(np.concatenate(keys))
        return both // n, both % n

    def _seen_from_task(self, radius: np.ndarray) -> np.ndarray:
        """Return how far a search in the coordinates of the task must have looked."""
        points = self.task.points
        shift = 2.0 * embedding_error(self.kernels.columns(points), points, self.found)
        # Its rows were mapped: the rounding of that comes on top.
        matrix = np.linalg.norm(self.task.coordinates.matrix, axis=1) * np.linalg.norm(self.found)
        shift += 2.0 * embedding_error(self.kernels.columns(self.points), self.points, matrix[None])
        return np.asarray((np.sqrt(np.maximum(radius, 0.0)) + shift) ** 2)


def embedding_error(columns: Any, points: Points, components: np.ndarray) -> float:
    """Largest error of a row's coordinates under components (r x d), as a length.

    They are computed in the type of ``points``.
    """
    largest = np.maximum(-columns.lowest, columns.highest)
    sizes = np.linalg.norm(components, axis=0)
    unit = 0.5 * points.precision
    return gamma(components.shape[1] + 2, unit) * float(largest @ sizes)
