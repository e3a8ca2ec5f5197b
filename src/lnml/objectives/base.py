"""What every objective states, and what the solve path reads.

An objective is mathematics: its conditioning, value, gradient, pair costs, free
term and certificate. It never calls a solver; :mod:`lnml.solvers.path` picks the
one that its form asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

import numpy as np

from lnml.core.pairs import Pattern, Search
from lnml.core.solution import Proof
from lnml.core.trail import Trail
from lnml.core.warm_start import WarmStart

# A gap is relative to the objective, or to this share of its value at M = 0: separable data
# have an optimum near zero, where a plain ratio means nothing.
FLOOR_SHARE = 1e-6


class Form(Enum):
    """The form of an objective, which decides how it is minimised."""

    # A convex term of the metric plus hinges over triplets.
    HINGES = auto()
    # Logarithms of sums of exponentials, convex in the metric.
    SOFTMAX = auto()
    # A ratio that is the same at every scale of the metric.
    RATIO = auto()
    # Log-determinants, with bounds on single distances.
    LOGDET = auto()
    # Smooth, and not convex.
    SMOOTH = auto()


class Coordinates(Protocol):
    """A change of coordinates, such as :class:`lnml.objectives.conditioning.LinearCoordinates`."""

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Components that give the same distances in the new coordinates."""

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Undo :meth:`to_conditioned`; zero rows fill up to ``n_rows``."""


class Task:
    """An objective for given targets, in the coordinates it is solved in.

    A form asks for more: see the protocol at the top of each solver.

    Parameters
    ----------
    coordinates : Coordinates
        Where its components live.
    """

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Components of the same distances in the coordinates of the task."""
        return self.coordinates.to_conditioned(components)

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Components (n_rows x d) of the same distances in the coordinates of the data."""
        return self.coordinates.to_original(components, n_rows)

    def promising(self, components: np.ndarray) -> np.ndarray:
        """Return components (r x e) to start from in place of others; here the same."""
        return components

    def best_scale(self, components: np.ndarray) -> float:
        """Return the multiple of M = L^T L to start from; one, if any will do."""
        return 1.0

    def trail(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> Trail:
        """Return a trail without pairs (see :class:`lnml.core.trail.Trail`) for this task."""
        return Trail(components, most_bytes, most_pairs)

    def resume(self, warm: WarmStart, components: np.ndarray) -> None:
        """Use what a similar task handed over, before a start at components (r x d)."""

    def warm_start(self, found: np.ndarray, components: np.ndarray) -> WarmStart | None:
        """Return what the next solve can use, after this one found a metric; here nothing.

        ``found`` is that metric in the coordinates of the task, ``components`` in those
        of the data.
        """
        return None


class Objective(Protocol):
    """What a method asks of a metric.

    ``dtype`` is the type in which components are returned.
    """

    form: Form
    dtype: np.dtype

    # The task is Any: its type is the one that the form's solver expects.
    def task(self, targets: Any) -> Any:
        """Return the objective for target pairs, in the coordinates that suit it.

        ``targets`` None stands for all pairs of the same class, where a method
        allows that.
        """

    def prove(self, task: Any, found: np.ndarray, components: np.ndarray, care: int = 0) -> Proof:
        """Return the objective of components (r x d) as returned, and what is proved about it.

        ``found`` are the same components in the coordinates of the task. ``care`` is how much
        rounding matters: 0 for ordinary columns, 1 for sums from differences of rows, 2 for
        the same in long double.
        """


class PairCosts(NamedTuple):
    """Cost F_ij of every pair of a pattern, and the search they came from, if there was one."""

    values: Any
    search: Search | None = None


class PairObjective(Objective, Protocol):
    """An objective that is a sum over target pairs plus a free term (paper, eq. 2).

    The two flags are those of :class:`lnml.core.contract.MetricProblem`.
    """

    fixed_row_sizes: bool
    cost_grows_with_distance: bool

    def pair_costs(
        self, components: np.ndarray, pairs: Pattern, known: Search | None = None
    ) -> PairCosts:
        """F_ij of every pair; ``known`` is a search at this metric that may serve."""

    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the target pairs."""


def cheaper_moment(
    kernel: Callable[[bool], tuple[Any, np.ndarray]], components: np.ndarray
) -> tuple[Any, np.ndarray]:
    """Return a kernel's row results and L (X^T Lap X), shape (r, d), by the cheaper of two ways.

    The kernel is told whether to return the full moment X^T Lap X (one product of
    n x d values) or that of the coordinates X L^T (two of n x r; docs/mcml.md).
    """
    rank, dimension = components.shape
    full = 2 * rank >= dimension
    rows, moment = kernel(full)
    return rows, components @ moment if full else moment
