"""Array verbs of the CPU."""

from __future__ import annotations

import numpy as np

from lnml.core.pairs import Pattern
from lnml.core.points import Embedding, Points
from lnml.kernels.protocol import Arrays


class NumpyArrays(Arrays):
    """See :class:`lnml.kernels.protocol.Arrays`; device and host are the same."""

    def array(self, values: np.ndarray) -> np.ndarray:
        return values

    def to_host(self, values: np.ndarray) -> np.ndarray:
        return values

    def log(self, values: np.ndarray) -> np.ndarray:
        return np.log(values)

    def per_pair(self, row_values: np.ndarray, pairs: Pattern) -> np.ndarray:
        return np.repeat(row_values.astype(np.float64, copy=False), pairs.sizes)

    def per_row(self, class_values: np.ndarray, points: Points) -> np.ndarray:
        return class_values[points.row_class]

    def row_maximum(self, values: np.ndarray, pairs: Pattern) -> np.ndarray:
        out = np.full(pairs.indptr.size - 1, -np.inf)
        filled = pairs.sizes > 0
        if filled.any():
            out[filled] = np.maximum.reduceat(values, pairs.indptr[:-1][filled])
        return out

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        return embedding.coordinates[indices].astype(np.float64)
