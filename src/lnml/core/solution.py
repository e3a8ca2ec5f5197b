"""What a solve finds, and what is proved about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lnml.core.neighborhoods import Neighborhoods


class DualPoint(NamedTuple):
    """A dual point, seen through what a bound needs of it.

    Mixing two sets of dual variables mixes their points in the same shares.

    Attributes
    ----------
    value : float
        The part of the bound that does not depend on the metric.
    matrix : ndarray of shape (e, e)
        What multiplies the metric in the Lagrangian.
    """

    value: float
    matrix: np.ndarray

    def mixed(self, other: DualPoint, share: float) -> DualPoint:
        """(1 - share) times this plus share times the other."""
        return DualPoint(
            (1.0 - share) * self.value + share * other.value,
            (1.0 - share) * self.matrix + share * other.matrix,
        )


class Certificate(NamedTuple):
    """The exact objective of a metric, a lower bound, and directions that would improve it.

    Attributes
    ----------
    objective : float
        The exact objective of ``multiple`` times the metric.
    bound : float
        Lower bound of the objective over all metrics.
    directions : ndarray of shape (e, m)
        Unit vectors along which more metric would help.
    room : ndarray of shape (m,) or inf
        Largest amount of metric that would help along each direction.
    easing : float
        Factor for the smoothing of the next steps.
    multiple : float
        Multiple of the metric that ``objective`` belongs to.
    n_active : int
        Number of hinges above zero, where there are hinges.
    """

    objective: float
    bound: float
    directions: np.ndarray
    room: np.ndarray | float = np.inf
    easing: float = 1.0
    multiple: float = 1.0
    n_active: int = 0


@dataclass(eq=False)
class Solution:
    """A metric with what is known about it.

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
        Whatever helps the next solve; a :class:`lnml.core.warm_start.WarmStart` for the
        objectives of this library.
    stopped : bool
        Whether the user's callback asked to stop.
    targets : Neighborhoods or None
        The neighbourhoods that were learned with the metric, if any were.
    """

    components: np.ndarray
    objective: float
    bound: float | None = None
    gap: float | None = None
    converged: bool = True
    history: list[Any] = field(default_factory=list)
    state: Any = None
    stopped: bool = False
    targets: Neighborhoods | None = None
