"""Slopes of hinges in sparse form: the dual point of a triplet objective, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Multipliers, Pattern
from lnml.kernels.mixed_slopes import mixture, summed_by_pair, target_positions
from lnml.kernels.protocol import Kernels


class SlopesAt(NamedTuple):
    """Slopes min(max(h / smoothing, 0), 1) of all triplets at a metric: too many to be listed.

    Attributes
    ----------
    components : ndarray of shape (r, e)
        The metric.
    smoothing : float
        Above zero.
    """

    components: np.ndarray
    smoothing: float


class Slopes(NamedTuple):
    """Slopes a in [0, 1] of triplets (target pair, impostor); all others are zero.

    Attributes
    ----------
    target : ndarray of int, shape (t,)
        Position of the target pair in its pattern.
    impostor : ndarray of int, shape (t,)
        Row of the impostor.
    value : ndarray of shape (t,)
        The slopes.
    """

    target: np.ndarray
    impostor: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, here: Multipliers, targets: Pattern, kernels: Kernels) -> Slopes:
        """List slopes that are on the host by their target pairs."""
        target = target_positions(here, kernels.pattern(targets).to_host())
        return cls(target, here.impostor, np.asarray(here.value, dtype=np.float64))

    @classmethod
    def mixture(cls, parts: Sequence[tuple[float, Slopes]]) -> Slopes:
        """Return the sum of shares, together at most one, times slopes."""
        return cls(*mixture([(share, *each) for share, each in parts]))

    def scaled(self, share: float) -> Slopes:
        """Return the slopes times a share of at most one."""
        return self._replace(value=share * self.value)

    def duals(self) -> dict[str, np.ndarray]:
        """Return the slopes as a certificate lists them."""
        triplets = np.stack([self.target, self.impostor], axis=1)
        return {"triplets": triplets, "slopes": self.value}

    def per_target(self, n_targets: int) -> np.ndarray:
        """Sum of the slopes of every target pair."""
        return np.bincount(self.target, self.value, n_targets)

    def impostor_pairs(self, target_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, impostors and summed slopes of all pairs (row, impostor)."""
        return summed_by_pair(target_rows[self.target], self.impostor, self.value)
