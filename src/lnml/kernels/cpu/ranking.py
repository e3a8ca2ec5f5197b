"""The cheapest partners of every row, from a matrix of costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lnml.core.pairs import Ranked
from lnml.kernels.cpu.compiling import helper, loop


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
    matrix = sparse.csr_array(costs)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data.astype(np.float64, copy=False)
    ties = np.zeros(1)
    if distances is not None and values.size:
        rows = np.repeat(np.arange(codes.size), np.diff(matrix.indptr))
        ties = sparse.csr_array(distances)[rows, matrix.indices]
        ties = np.asarray(ties, dtype=np.float64).ravel()
    ranked = _nothing(codes.size, k_max)
    allowed, finite = _rank_sparse(
        matrix.indptr, matrix.indices, values, ties, distances is not None, codes, *ranked
    )
    if not allowed:
        raise ValueError(
            "sparse costs may store pairs of two different rows of the same class only: "
            "remove the diagonal and the pairs of different class"
        )
    _check_finite(finite)
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


@loop()
def _rank_dense(costs, ties, has_ties, members, class_start, columns, best, best_ties):
    """Fill the three arrays of a Ranked; False if a cost was not finite."""
    finite = True
    for c in range(class_start.size - 1):
        group = members[class_start[c] : class_start[c + 1]]
        for i in group:
            worst = np.inf
            for j in group:
                cost = costs[i, j]
                finite &= i == j or np.isfinite(cost)
                # Most pairs end here.
                if cost <= worst and i != j:
                    tie = ties[i, j] if has_ties else 0.0
                    worst = _insert(columns[i], best[i], best_ties[i], j, cost, tie)
    return finite


@loop()
def _rank_sparse(indptr, indices, costs, ties, has_ties, codes, columns, best, best_ties):
    """Fill the three arrays of a Ranked; whether all pairs are allowed, all costs finite."""
    allowed = finite = True
    for i in range(indptr.size - 1):
        worst = np.inf
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            allowed &= codes[i] == codes[j] and i != j
            finite &= np.isfinite(costs[e])
            # Most pairs end here.
            if costs[e] <= worst:
                tie = ties[e] if has_ties else 0.0
                worst = _insert(columns[i], best[i], best_ties[i], j, costs[e], tie)
    return allowed, finite


@helper()
def _insert(columns, costs, ties, column, cost, tie):
    """Keep the cheapest of a row in order, columns coming in ascending order; return the last."""
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
    return costs[-1]
