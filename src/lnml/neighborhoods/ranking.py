"""The cheapest partners of every row, from a matrix of costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from lnml.neighborhoods.assignment import Ranked


def rank_dense(costs: Any, distances: Any, codes: np.ndarray, k_max: int) -> Ranked:
    """Cheapest partners of the same class from dense matrices."""
    costs = np.asarray(costs, dtype=np.float64)
    ties = np.zeros((1, 1))
    if distances is not None:
        ties = distances.toarray() if sparse.issparse(distances) else distances
        ties = np.asarray(ties, dtype=np.float64)
    ranked = _nothing(codes.size, k_max)
    members = np.argsort(codes, kind="stable")
    class_start = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    _check_finite(_rank_dense(costs, ties, distances is not None, members, class_start, *ranked))
    return ranked


def rank_sparse(costs: Any, distances: Any, codes: np.ndarray, k_max: int) -> Ranked:
    """Cheapest partners among the stored entries of a sparse matrix."""
    matrix = sparse.csr_matrix(costs, copy=True)
    matrix.sum_duplicates()
    rows, columns = np.repeat(np.arange(codes.size), np.diff(matrix.indptr)), matrix.indices
    if np.any(codes[rows] != codes[columns]) or np.any(rows == columns):
        raise ValueError(
            "sparse costs may store pairs of two different rows of the same class only: "
            "remove the diagonal and the pairs of different class"
        )
    values = matrix.data.astype(np.float64)
    ties = np.zeros_like(values)
    if distances is not None and values.size:
        ties = np.asarray(sparse.csr_matrix(distances)[rows, columns], dtype=np.float64).ravel()
    ranked = _nothing(codes.size, k_max)
    _check_finite(_rank_sparse(matrix.indptr, columns, values, ties, *ranked))
    return ranked


def _nothing(n_rows: int, k_max: int) -> Ranked:
    shape = (n_rows, k_max)
    return Ranked(np.full(shape, -1), *(np.full(shape, np.inf) for _ in range(2)))


def _check_finite(finite: bool) -> None:
    if not finite:
        raise ValueError(
            "costs of same-class pairs must be finite: replace NaN and inf, or pass a sparse "
            "matrix that stores the allowed pairs only"
        )


@njit(nogil=True, cache=True)
def _rank_dense(costs, ties, has_ties, members, class_start, columns, best, best_ties):
    """Fill the three arrays of a Ranked; False if a cost was not finite."""
    finite = True
    for c in range(class_start.size - 1):
        group = members[class_start[c] : class_start[c + 1]]
        for i in group:
            for j in group:
                if i != j:
                    cost = costs[i, j]
                    tie = ties[i, j] if has_ties else 0.0
                    finite &= np.isfinite(cost)
                    _insert(columns[i], best[i], best_ties[i], j, cost, tie)
    return finite


@njit(nogil=True, cache=True)
def _rank_sparse(indptr, indices, costs, ties, columns, best, best_ties):
    """Fill the three arrays of a Ranked; False if a cost was not finite."""
    finite = True
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            finite &= np.isfinite(costs[e])
            _insert(columns[i], best[i], best_ties[i], indices[e], costs[e], ties[e])
    return finite


@njit(nogil=True, cache=True)
def _insert(columns, costs, ties, column, cost, tie):
    """Keep the cheapest of a row in order; columns must come in ascending order."""
    place = columns.size
    while place > 0 and (
        columns[place - 1] < 0
        or cost < costs[place - 1]
        or (cost == costs[place - 1] and tie < ties[place - 1])
    ):
        place -= 1
        if place + 1 < columns.size:
            columns[place + 1] = columns[place]
            costs[place + 1] = costs[place]
            ties[place + 1] = ties[place]
    if place < columns.size:
        columns[place] = column
        costs[place] = cost
        ties[place] = tie
