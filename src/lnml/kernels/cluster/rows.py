"""Rows that stay on the workers, as the client sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from lnml.kernels.cluster.layout import Layout
from lnml.kernels.cpu.products import shifted_product

# Most that the terms of a mapped value may exceed the value, if float32 is to sum them.
_MOST_CANCELLATION = 32.0


class RowMap(NamedTuple):
    """(row - shift) @ matrix - offset, kept in a type.

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
    wide : bool
        Whether products are computed in float64; else in the type of the result.
    """

    token: str
    shift: np.ndarray | None
    matrix: np.ndarray | None
    offset: np.ndarray | None
    dtype: str
    wide: bool = True

    @classmethod
    def identity(cls, dtype: str) -> RowMap:
        """Rows as they were placed, in a type."""
        return cls(f"placed as {dtype}", None, None, None, dtype)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return mapped rows, shape (n, e)."""
        if self.matrix is None:
            found = rows if self.shift is None else rows - self.shift
        else:
            kind = np.dtype(np.float64 if self.wide else self.dtype)
            shift = None if self.shift is None else self.shift.astype(kind)
            found = shifted_product(rows, shift, self.matrix, np.dtype(self.dtype), kind)
            if self.offset is not None:
                np.subtract(found, self.offset, out=found, casting="same_kind")
        return np.ascontiguousarray(found, dtype=self.dtype)

    def width(self, columns: int) -> int:
        """Return the number of columns of mapped rows, given that of the rows."""
        return columns if self.matrix is None else self.matrix.shape[1]

    def reach(self, columns: np.ndarray) -> np.ndarray:
        """Bound mapped values (e,), given the largest absolute value of each column (d,)."""
        found = columns if self.shift is None else columns + np.abs(self.shift)
        if self.matrix is not None:
            found = found @ np.abs(self.matrix)
        if self.offset is not None:
            found = found + np.abs(self.offset)
        return found

    def narrowed(self, sample: np.ndarray) -> RowMap:
        """Compute products in the type of the result if a sample of rows (m, d) allows it."""
        if self.matrix is None:
            return self
        rows = sample if self.shift is None else sample - self.shift
        sizes = np.square(np.abs(rows) @ np.abs(self.matrix)).sum(axis=0)
        found = np.square(rows @ self.matrix).sum(axis=0)
        return self._replace(wide=bool((sizes > _MOST_CANCELLATION**2 * found).any()))


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """Rows in class order, on the workers.

    Attributes
    ----------
    layout : Layout
        The blocks.
    blocks : list of futures
        Rows of each block as they were placed, shape (n_b, d).
    columns : ndarray of shape (d,)
        Largest absolute value of every column as it was placed.
    map : RowMap
        What these rows are, seen from those.
    """

    layout: Layout
    blocks: list[Any]
    columns: np.ndarray
    map: RowMap

    @property
    def width(self) -> int:
        """Number of columns that were placed."""
        return self.columns.size

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.layout.n_rows, self.map.width(self.width)

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
