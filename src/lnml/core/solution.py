"""What a solve finds, and what is proved about it."""

from __future__ import annotations

from collections.abc import Callable
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
    directions : callable
        Returns unit vectors (e x m) along which more metric would help; most looks need none.
    room : ndarray of shape (m,) or inf
        Largest amount of metric that would help along each direction.
    easing : float
        Factor for the smoothing of the next steps.
    multiple : float
        Multiple of the metric that ``objective`` belongs to.
    n_active : int
        Number of hinges above zero, where there are hinges.
    shares : tuple of float
        Shares of the dual points of the last metrics in the one that proves the bound; this
        metric is the last of them.
    kept : float
        Share of the dual point that proved the bound before.
    """

    objective: float
    bound: float
    directions: Callable[[], np.ndarray]
    room: np.ndarray | float = np.inf
    easing: float = 1.0
    multiple: float = 1.0
    n_active: int = 0
    shares: tuple[float, ...] = (1.0,)
    kept: float = 0.0


@dataclass(frozen=True, eq=False)
class Proof:
    """The objective of a metric as it is returned, and what was proved about it.

    Attributes
    ----------
    objective : float
        Summed from differences of the rows.
    error : float
        How far rounding may have moved it.
    bound : float or None
        A lower bound of the objective over all metrics, its own rounding taken off.
    floor : float
        Least number that a relative gap is relative to.
    work : float
        Multiplications that the proof takes, about.
    method : str
        Name of the objective in a stored certificate; empty if nothing can be proved.
    parameters : dict
        What else defines the objective.
    coordinates : ndarray of shape (d, e), or None
        Where the proof lives.
    slack, limit : float
        See :class:`lnml.proofs.hinges.Bound`.
    duals : dict of ndarrays
        The dual point, rows numbered as in the training set.
    """

    objective: float
    error: float
    bound: float | None = None
    floor: float = 0.0
    work: float = np.inf
    method: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    coordinates: np.ndarray | None = None
    slack: float = 0.0
    limit: float = np.inf
    duals: dict[str, np.ndarray] = field(default_factory=dict)


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
    short : bool
        Whether the solver met its rule, and still less could be proved than was asked for.
    streamed : bool
        Whether there was no room for impostors, so that a gap may stay open.
    history : list of dict
        One record per iteration (or round).
    state : Any
        Whatever helps the next solve; a :class:`lnml.core.warm_start.WarmStart` for the
        objectives of this library.
    stopped : bool
        Whether the user's callback asked to stop.
    targets : Neighborhoods or None
        The neighbourhoods that were learned with the metric, if any were.
    proof : Proof or None
        Where objective and bound come from.
    prove : callable or None
        Maps components (r x d) and the care to take to their proof.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import Solution
    >>> found = Solution(np.eye(2), objective=3.0, bound=3.0, gap=0.0)
    >>> found.converged, found.history
    (True, [])
    """

    components: np.ndarray
    objective: float
    bound: float | None = None
    gap: float | None = None
    converged: bool = True
    short: bool = False
    streamed: bool = False
    history: list[Any] = field(default_factory=list)
    state: Any = None
    stopped: bool = False
    targets: Neighborhoods | None = None
    proof: Proof | None = None
    prove: Callable[[np.ndarray, int], Proof] | None = None
