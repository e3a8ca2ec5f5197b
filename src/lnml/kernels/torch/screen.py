"""Bounds of the distances of candidates, so that an evaluation on a GPU computes only a few.

The bounds are those of :mod:`lnml.kernels.cpu.screen`; the programs renew them. All buffers stay
where they are, so that an evaluation can be recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from lnml.kernels.torch import fused

# With fewer candidates it takes as long to see how far rows moved.
LEAST_PER_ROW = 8


class Bounds(NamedTuple):
    """What the programs read.

    Attributes
    ----------
    roots : tensor of float32, aligned with the candidates
        Distance (not squared) when it was computed last, plus the drift of both rows then.
    drift : tensor of float64, shape (n,)
        How far each row has moved so far.
    near : tensor of uint8, aligned with the candidates
        Room for the places of those that are not left out.
    slack : float
        Relative rounding of a distance.
    """

    roots: torch.Tensor
    drift: torch.Tensor
    near: torch.Tensor
    slack: float


class Screen:
    """Bounds for the distances of some candidates, at the metrics of one evaluation after another.

    Parameters
    ----------
    n_candidates : int
        How many there are.
    """

    def __init__(self, n_candidates: int) -> None:
        self._size = n_candidates
        self._last: torch.Tensor | None = None
        self._bounds: Bounds | None = None

    def at(self, z: torch.Tensor) -> Bounds | None:
        """Follow rows to coordinates (n x r), and return the bounds there; None for no bounds."""
        if not fused.usable(z) or self._size < LEAST_PER_ROW * len(z):
            return None
        if self._last is None:
            roots = torch.full((self._size,), -torch.inf, dtype=torch.float32, device=z.device)
            drift = torch.zeros(len(z), dtype=torch.float64, device=z.device)
            near = torch.empty(self._size, dtype=torch.uint8, device=z.device)
            slack = (z.shape[1] + 16.0) * torch.finfo(z.dtype).eps
            self._last, self._bounds = z.clone(), Bounds(roots, drift, near, slack)
            return self._bounds
        if self._bounds is None or z.shape != self._last.shape or z.dtype != self._last.dtype:
            # New buffers would leave recordings with the old ones.
            return None
        fused.follow(z, self._last, self._bounds.drift, self._bounds.slack)
        return self._bounds
