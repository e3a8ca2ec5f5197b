"""What every minimiser is told beside its task and its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from lnml.core.monitor import Monitor, Record
from lnml.core.trail import Trail


@dataclass(frozen=True)
class Run:
    """One run of a minimiser: how exact, how long, from where, and who watches.

    Attributes
    ----------
    tol : float
        Largest relative duality gap, or what the minimiser's stopping rule makes of it.
    max_iter : int
        Most iterations.
    monitor : Monitor
        Receives one record per iteration.
    to_original : callable
        Maps components of the task to the user's coordinates, for the callback.
    warm : bool
        Whether the start is near the end of a similar problem, and the task knows of it.
    trail : Trail or None
        Of the problem before on a path, in the coordinates of the task; the run moves it.
    """

    tol: float
    max_iter: int
    monitor: Monitor
    to_original: Callable[[np.ndarray], np.ndarray]
    warm: bool = False
    trail: Trail | None = None

    def report(self, components: np.ndarray, record: Record) -> bool:
        """Pass on a record and the metric it belongs to; return True if the run should end."""
        return self.monitor.step(record, partial(self.to_original, components))
