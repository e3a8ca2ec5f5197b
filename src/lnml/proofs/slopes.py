"""Slopes of hinges in sparse form: the dual point of a triplet objective, on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Multipliers, Pattern
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
    def of(cls, found: Multipliers, targets: Pattern, kernels: Kernels) -> Slopes:
        """Bring slopes of target pairs to the host."""
        here, first = kernels.to_host(found), kernels.pattern(targets).to_host().indptr
        target = np.repeat(first[:-1], np.diff(here.indptr))
        target += here.slot
        return cls(target, here.impostor, np.asarray(here.value, dtype=np.float64))

    @classmethod
    def mixture(cls, parts: Sequence[tuple[float, Slopes]]) -> Slopes:
        """Return the sum of shares, together at most one, times slopes."""
        if len(parts) == 1 and parts[0][0] == 1.0:
            return parts[0][1]
        target = np.concatenate([each.target for _, each in parts]).astype(np.int64)
        impostor = np.concatenate([each.impostor for _, each in parts])
        value = np.concatenate([share * each.value for share, each in parts])
        width = int(impostor.max(initial=0)) + 1
        keys, place = np.unique(target * width + impostor, return_inverse=True)
        summed = np.bincount(place, value, keys.size)
        # Rounding may lift a sum of shares of one above one.
        return cls(keys // width, keys % width, np.minimum(summed, 1.0))

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
        width = int(self.impostor.max(initial=0)) + 1
        rows = target_rows[self.target]
        keys = rows.astype(np.int64, copy=False) * width + self.impostor
        if keys.size and (keys[1:] >= keys[:-1]).all():
            # As devices list them: nothing is left to sort.
            new = np.concatenate([[True], keys[1:] != keys[:-1]])
            first, sums = np.flatnonzero(new), np.bincount(np.cumsum(new) - 1, self.value)
            return rows[first], self.impostor[first], sums
        keys, place = np.unique(keys, return_inverse=True)
        return keys // width, keys % width, np.bincount(place, self.value, keys.size)
