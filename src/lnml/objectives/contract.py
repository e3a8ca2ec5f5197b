"""The small contract through which neighbourhood learning couples with a metric learner.

An estimator offers ``metric_problem(training)``; the object it returns is a
:class:`MetricProblem`. docs/contract.md shows a new metric learner in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lnml.kernels.protocol import Kernels, Pattern, Points
from lnml.solvers.monitor import Monitor
from lnml.solvers.stopping import Found


@dataclass(frozen=True)
class TrainingSet:
    """Data sorted by class, as objectives and solvers see them.

    Attributes
    ----------
    points : Points
        The rows, sorted by class, not scaled; shifted by a value near the mean.
    order : ndarray of shape (n,)
        Row of the user's X that stands at each position.
    kernels : Kernels
        The device that does the n x n work.
    """

    points: Points
    order: np.ndarray
    kernels: Kernels

    @classmethod
    def from_labels(cls, X: Any, codes: np.ndarray, kernels: Kernels) -> TrainingSet:
        """Sort rows by class code (stable, so ties by index keep their meaning)."""
        order = np.argsort(codes, kind="stable")
        class_start = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        return cls(kernels.training_points(X, order, class_start), order, kernels)


@dataclass
class Solution:
    """A metric for given neighbourhoods, with what is known about it.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        L, in the coordinates of the data as given.
    objective : float
        The exact objective at L.
    bound : float or None
        A proved lower bound of the objective over all metrics, if there is one.
    gap : float or None
        (objective - bound) relative to the objective.
    converged : bool
        Whether the gap, or the method's stated stopping rule, met the tolerance.
    history : list of dict
        One record per iteration (or round).
    state : Any
        Whatever helps the next solve (multipliers, working sets); opaque.
    stopped : bool
        Whether the user's callback asked to stop.
    """

    components: np.ndarray
    objective: float
    bound: float | None = None
    gap: float | None = None
    converged: bool = True
    history: list[Any] = field(default_factory=list)
    state: Any = None
    stopped: bool = False

    @classmethod
    def of(
        cls,
        found: Found,
        to_original: Callable[[np.ndarray], np.ndarray],
        monitor: Monitor,
        state: Any,
    ) -> Solution:
        """Return what a solver found, in the coordinates of the data."""
        return cls(
            to_original(found.components),
            found.objective,
            found.bound,
            found.gap,
            found.converged,
            monitor.history,
            state,
            monitor.stopped,
        )


class MetricProblem(Protocol):
    """What a metric learner asks of a metric, in the form LNML needs (paper, eq. 2).

    The objective is the sum over target pairs of the pair cost F_ij(M), plus a
    term that does not depend on the pairs.

    Attributes
    ----------
    fixed_row_sizes : bool
        Whether the form holds only if every row has the same number of targets.
    cost_grows_with_distance : bool
        Whether, within a row, F_ij never falls when D_ij grows. The nearest
        partners are then the cheapest, and no other pair needs a cost.
    """

    fixed_row_sizes: bool
    cost_grows_with_distance: bool

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """F_ij for every pair of a pattern of same-class pairs, at a metric."""

    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the neighbourhoods."""

    def solve(
        self,
        targets: Pattern,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Return a metric no worse than ``components`` for the given neighbourhoods."""
