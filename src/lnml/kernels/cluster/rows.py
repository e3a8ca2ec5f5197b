"""Rows that stay on the workers, as the client sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from lnml.kernels.cluster.layout import Layout


class RowMap(NamedTuple):
    """(row - shift) @ matrix - offset, computed in float64 and kept in a type.

    Attributes
    ----------
    token : str
        Names this map, so that a worker can keep mapped rows for its next task.
    shift : ndarray of shape (d,), or None
        Taken from a row first.
    matrix : ndarray of shape (d, e), or None
        None stands for the identity.
    offset : ndarray of shape (e,), or None
        Taken from the result.
    dtype : str
        Type of the result.
    """

    token: str
    shift: np.ndarray | None
    matrix: np.ndarray | None
    offset: np.ndarray | None
    dtype: str

    @classmethod
    def identity(cls, dtype: str) -> RowMap:
        """Rows as they were placed, in a type."""
        return cls(f"placed as {dtype}", None, None, None, dtype)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return mapped rows."""
        found = rows
        if self.shift is not None:
            found = found - self.shift
        if self.matrix is not None:
            found = found.astype(np.float64, copy=False) @ self.matrix
        if self.offset is not None:
            found = found - self.offset
        return np.ascontiguousarray(found, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """Rows in class order, on the workers.

    Attributes
    ----------
    layout : Layout
        The blocks.
    blocks : list of futures
        Rows of each block as they were placed, shape (n_b, d).
    width : int
        Number of columns that were placed.
    map : RowMap
        What these rows are, seen from those.
    """

    layout: Layout
    blocks: list[Any]
    width: int
    map: RowMap

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        matrix = self.map.matrix
        return self.layout.n_rows, self.width if matrix is None else matrix.shape[1]

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return np.dtype(self.map.dtype).itemsize

    def mapped(
        self,
        matrix: np.ndarray | None = None,
        shift: np.ndarray | None = None,
        dtype: str | None = None,
    ) -> ClusterRows:
        """Return (rows - shift) @ matrix, computed where the rows are."""
        known, offset = self.map, _sum(self.map.offset, shift)
        if matrix is not None:
            matrix = np.asarray(matrix, dtype=np.float64)
        if known.matrix is None:
            # Nothing was multiplied yet: a shift is taken from the rows themselves.
            start, offset = _sum(known.shift, offset), None
        else:
            start = known.shift
            if matrix is not None:
                offset = None if offset is None else offset @ matrix
                matrix = known.matrix @ matrix
            else:
                matrix = known.matrix
        return replace(self, map=RowMap(uuid4().hex, start, matrix, offset, dtype or known.dtype))


def _sum(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Sum of two vectors; None stands for zero."""
    if first is None or second is None:
        return second if first is None else first
    return first + second
