"""Rows under a metric, mapped when they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from lnml.core.points import Embedding, Points
from lnml.kernels.torch.basics import to_tensor


class TorchEmbedding(Embedding):
    """An embedding whose coordinates are computed once they are asked for.

    Evaluations that are repeated compute them among their own operations (replay.py).

    Parameters
    ----------
    points : Points
        The data.
    components : ndarray or tensor of shape (r, d)
        L.
    coordinates : tensor of shape (n, r), optional
        If they are known.
    """

    def __init__(
        self, points: Points, components: Any, coordinates: torch.Tensor | None = None
    ) -> None:
        # A frozen dataclass has no other way to set what it is made of.
        vars(self).update(points=points, components=components)
        if coordinates is not None:
            vars(self)["coordinates"] = coordinates

    @cached_property
    def right(self) -> torch.Tensor:
        """The components on the device, in the type of the data."""
        data = self.points.data
        if isinstance(self.components, torch.Tensor):
            return self.components.to(data.dtype)
        # Rounded on the host: half as many bytes to send, and no program that converts.
        rounded = np.asarray(self.components, dtype=self.points.dtype)
        return to_tensor(rounded, data.device)

    @cached_property
    def coordinates(self) -> torch.Tensor:
        """``data @ components.T``."""
        return self.points.data @ self.right.T
