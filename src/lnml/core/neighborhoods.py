"""Target neighbours of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lnml.core.pairs import Pattern


class Neighborhoods(Pattern):
    """Target neighbours of every row: a directed 0/1 graph without weights.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        ``indices[indptr[i]:indptr[i + 1]]`` are the target neighbours of row i.
    indices : ndarray
        Row numbers, rising within each row.

    Examples
    --------
    >>> import numpy as np
    >>> graph = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    >>> neighborhoods = Neighborhoods.from_graph(graph)
    >>> neighborhoods
    Neighborhoods(3 rows, 4 pairs, 1 to 2 a row)
    >>> neighborhoods.sizes
    array([2, 1, 1])
    >>> bool((neighborhoods.to_graph().toarray() == graph).all())
    True
    """

    @classmethod
    def from_graph(cls, graph: Any) -> Neighborhoods:
        """Take the non-zero entries of a dense or sparse n x n matrix as pairs."""
        matrix = sparse.csr_array(graph, copy=True)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"a neighbourhood graph is square, one row and one column per row of X; "
                f"got shape {matrix.shape}"
            )
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))

    @classmethod
    def from_pairs(cls, rows: np.ndarray, columns: np.ndarray, n_rows: int) -> Neighborhoods:
        """Neighbourhoods with the given (row, column) pairs, in any order."""
        order = np.lexsort((columns, rows))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
        return cls(indptr, columns[order].astype(np.int32))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    def size_counts(self) -> dict[int, int]:
        """How many rows have how many target neighbours."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return dict(zip(sizes.tolist(), counts.tolist(), strict=True))

    def to_host(self) -> Neighborhoods:
        """Return the same neighbourhoods in NumPy arrays, whatever device they are on."""
        return self

    def to_graph(self) -> sparse.csr_array:
        """CSR array (n x n) with a 1 for every pair."""
        shape = (self.n_rows, self.n_rows)
        ones = np.ones(self.size)
        return sparse.csr_array((ones, self.indices.copy(), self.indptr.copy()), shape=shape)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of all pairs, in row order."""
        return np.repeat(np.arange(self.n_rows), self.sizes), self.indices

    def renumbered(self, numbers: np.ndarray) -> Neighborhoods:
        """Return the same pairs when row i is called ``numbers[i]``."""
        rows, columns = self.pairs()
        return Neighborhoods.from_pairs(numbers[rows], numbers[columns], self.n_rows)

    def n_changed(self, other: Neighborhoods) -> int:
        """Return how many pairs of this one the other lacks."""
        n = self.n_rows
        mine, theirs = (
            rows.astype(np.int64) * n + columns for rows, columns in (self.pairs(), other.pairs())
        )
        return int(mine.size - np.isin(mine, theirs, assume_unique=True).sum())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Neighborhoods)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = self.sizes
        spread = f"{sizes.min()} to {sizes.max()} a row" if sizes.size else "empty"
        return f"Neighborhoods({self.n_rows} rows, {self.size} pairs, {spread})"
