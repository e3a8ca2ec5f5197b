"""Slopes of hinges at a metric that was seen, where the device has them."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Multipliers, WorkingSet
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels


class SeenSlopes:
    """Slopes over a working set at a metric, computed once they are asked for.

    After that the working set, which is larger than its slopes, is let go.

    Parameters
    ----------
    kernels : Kernels
        The device.
    points : Points
        The rows, in the coordinates of the metric.
    working : WorkingSet
        The triplets, and the multipliers around which hinges were smoothed.
    components : ndarray of shape (r, e)
        The metric.
    smoothing : float
        Of the hinges.
    """

    def __init__(
        self,
        kernels: Kernels,
        points: Points,
        working: WorkingSet,
        components: np.ndarray,
        smoothing: float,
    ) -> None:
        self.kernels, self.points = kernels, points
        self.components, self.smoothing = components, smoothing
        self._working: WorkingSet | None = working
        self._slopes: Multipliers | None = None
        self._here: Multipliers | None = None

    def awaited(self, working: WorkingSet, components: np.ndarray, smoothing: float) -> bool:
        """Whether these are the slopes at a metric, and are still to be computed."""
        same = self._working is working and self.smoothing == smoothing
        return same and np.array_equal(self.components, components)

    def slopes(self) -> Multipliers:
        """Return the slopes that are not zero."""
        if self._slopes is None:
            assert self._working is not None
            embedding = self.kernels.embed(self.points, self.components)
            self._slopes = self.kernels.slopes(embedding, self._working, self.smoothing)
            self._working = None
        return self._slopes

    def on_host(self) -> Multipliers:
        """Return the same on the host; they come there once."""
        if self._here is None:
            self._here = self.kernels.to_host(self.slopes())
        return self._here
