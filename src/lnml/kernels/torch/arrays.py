"""Array verbs of a torch device."""

from __future__ import annotations

import numpy as np
import torch

from lnml.core.pairs import Pattern
from lnml.core.points import Embedding, Points
from lnml.kernels.protocol import Arrays
from lnml.kernels.torch.basics import to_numpy, to_tensor
from lnml.kernels.torch.columns import row_classes
from lnml.kernels.torch.patterns import as_pattern


class TorchArrays(Arrays):
    """See :class:`lnml.kernels.protocol.Arrays`; values are tensors.

    Parameters
    ----------
    device : torch.device
        Where they are.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def array(self, values: np.ndarray) -> torch.Tensor:
        return to_tensor(values, self.device)

    def to_host(self, values: torch.Tensor) -> np.ndarray:
        return to_numpy(values)

    def log(self, values: torch.Tensor) -> torch.Tensor:
        return values.double().log()

    def per_pair(self, row_values: torch.Tensor, pairs: Pattern) -> torch.Tensor:
        return row_values.double()[as_pattern(pairs, self.device).rows]

    def per_row(self, class_values: np.ndarray, points: Points) -> torch.Tensor:
        return self.array(class_values)[row_classes(points)]

    def row_maximum(self, values: torch.Tensor, pairs: Pattern) -> torch.Tensor:
        offsets = as_pattern(pairs, self.device).indptr
        return torch.segment_reduce(values, "max", offsets=offsets, initial=-torch.inf)

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        return to_numpy(embedding.coordinates[to_tensor(indices, self.device)].double())
