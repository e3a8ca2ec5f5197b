"""Rows on a cluster as they were given, before they are put in class order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.kernels.cluster import blocks as _blocks
from lnml.kernels.cluster.crew import Crew, current_client
from lnml.kernels.cluster.placing import checked_facts, row_chunks
from lnml.kernels.cluster.rows import RowMap


class Given:
    """Chunks of rows, computed once and kept on the workers as long as somebody holds them.

    Parameters
    ----------
    X : dask array of shape (n, d)
        Rows in chunks, whose sizes need not be known.
    n_rows : int
        Number of labels: there must be as many rows.
    """

    def __init__(self, X: Any, n_rows: int) -> None:
        self.width, self.dtype = X.shape[1], X.dtype
        self.crew = Crew(current_client())
        self.chunks = row_chunks(self.crew, X)
        facts = checked_facts(self.crew, self.chunks, X, n_rows)
        self.sizes = [int(each["n"]) for each in facts]

    def array(self) -> Any:
        """Return a Dask array of these chunks, which knows its size and takes row numbers."""
        import dask.array as da

        shapes = [(size, self.width) for size in self.sizes]
        parts = zip(self.chunks, shapes, strict=True)
        return da.concatenate([da.from_delayed(chunk, shape, self.dtype) for chunk, shape in parts])

    def class_moments(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sizes and means (c x d) of classes, and the scatter within them (d x d)."""
        counts = np.bincount(codes).astype(np.float64)
        own = np.split(codes, np.cumsum(self.sizes)[:-1])
        wide = RowMap.identity("<f8")
        filled = [
            (chunk, wide, part) for chunk, part in zip(self.chunks, own, strict=True) if part.size
        ]
        total = self.crew.added(
            self.crew.submit(_blocks.class_totals, *each, counts.size) for each in filled
        )
        means = self.crew.results([total])[0] / counts[:, None]
        scatter = self.crew.added(
            self.crew.submit(_blocks.around_means, *each, means, np.ones(n), np.ones(n))
            for each in filled
            for n in (each[2].size,)
        )
        return counts, means, self.crew.results([scatter])[0][0]


def gathered(X: Any) -> np.ndarray:
    """Return the rows of a Dask array on the client."""
    crew = Crew(current_client())
    return np.asarray(crew.results([crew.client.compute(X)])[0])
