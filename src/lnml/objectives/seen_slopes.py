"""Slopes of hinges at metrics that were seen, where the device has them, and their mixtures."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import MixedSlopes, Multipliers, Pattern, WorkingSet
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels
from lnml.proofs.slopes import Slopes


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


class KeptSlopes:
    """The dual point of a bound: shares of slopes at metrics that were seen, or of earlier ones.

    Parameters
    ----------
    kernels : Kernels
        The device.
    targets : Pattern
        Target pairs.
    parts : list of tuples (share, slopes)
        What it is mixed from; earlier ones are on the host.
    """

    def __init__(
        self,
        kernels: Kernels,
        targets: Pattern,
        parts: list[tuple[float, Slopes | SeenSlopes]],
    ) -> None:
        self._kernels, self._targets, self._parts = kernels, targets, parts
        self._mixture: Slopes | None = None

    def on_host(self) -> Slopes:
        """Return the mixture on the host; it is made once."""
        if self._mixture is None:
            self._mixture = Slopes.mixture(
                [
                    (share, each if isinstance(each, Slopes) else self._listed(each))
                    for share, each in self._parts
                ]
            )
        return self._mixture

    def count(self) -> int:
        """Return how many slopes it is mixed from."""
        parts = (each if isinstance(each, Slopes) else self._there(each) for _, each in self._parts)
        return sum(part.value.shape[0] for part in parts)

    def mixed(self) -> MixedSlopes:
        """Return the mixture where the device makes it; no earlier one may be part of it."""
        parts = []
        for share, each in self._parts:
            assert isinstance(each, SeenSlopes)
            parts.append((share, self._there(each)))
        return self._kernels.mixed_slopes(parts, self._targets)

    def _there(self, seen: SeenSlopes) -> Multipliers:
        """Return slopes where the device has them, or on the host if rows cannot come there."""
        return seen.on_host() if self._kernels.remote else seen.slopes()

    def _listed(self, seen: SeenSlopes) -> Slopes:
        return Slopes.of(seen.on_host(), self._targets, self._kernels)
