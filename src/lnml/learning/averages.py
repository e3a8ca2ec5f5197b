"""Means of metrics, and of the neighbourhoods they were learned with (docs/averages.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

# Eigenvalues of a mean metric below this share of the largest one are rounding.
ROUNDING = 1e-14


def balanced_subsamples(
    codes: np.ndarray, n_subsamples: int, share: float, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Return row numbers of stratified subsamples that use all rows about equally often.

    The rows of each class are put on a circle in random order; a subsample is an arc, and the
    arcs start at equal distances. So ``share = 1 - 1 / n_subsamples`` leaves each row out once.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Class of each row.
    n_subsamples : int
        How many.
    share : float
        Share of the rows of each class, but not below two rows.
    rng : RandomState
        Source of the order.

    Returns
    -------
    subsamples : list of ndarray of int
        Sorted row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> parts = balanced_subsamples(np.zeros(8, int), 4, 0.75, np.random.RandomState(0))
    >>> np.bincount(np.concatenate(parts))
    array([3, 3, 3, 3, 3, 3, 3, 3])
    """
    circles = [rng.permutation(np.flatnonzero(codes == c)) for c in range(codes.max() + 1)]
    subsamples = []
    for number in range(n_subsamples):
        chosen = []
        for circle in circles:
            length = max(min(circle.size, 2), round(share * circle.size))
            start = round(number * circle.size / n_subsamples)
            chosen.append(np.take(circle, np.arange(start, start + length), mode="wrap"))
        subsamples.append(np.sort(np.concatenate(chosen)))
    return subsamples


def mean_components(metrics: Sequence[np.ndarray], covariance: np.ndarray) -> np.ndarray:
    """Return components of the mean of metrics, each in units of the spread of the data.

    Parameters
    ----------
    metrics : sequence of ndarray of shape (r, d)
        Components of each.
    covariance : ndarray of shape (d, d)
        Covariance C of the data: each metric M is divided by <M, C>.

    Returns
    -------
    components : ndarray of shape (r', d)
        Orthogonal rows, the longest first; as many as the mean has directions, at least one.
    """
    total = np.zeros_like(covariance)
    for components in metrics:
        spread = float(np.vdot(components @ covariance, components))
        total += components.T @ components / (spread if spread > 0.0 else 1.0)
    values, vectors = np.linalg.eigh(total / len(metrics))
    kept = max(int((values > ROUNDING * values[-1]).sum()), 1)
    values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    # An eigenvector has no sign of its own: its largest entry is made positive.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])
    return (vectors * signs * np.sqrt(np.maximum(values, 0.0))).T


def target_shares(
    graphs: Sequence[sparse.csr_array], subsamples: Sequence[np.ndarray], n_rows: int
) -> sparse.csr_array:
    """Return how often each pair is a target pair, among the subsamples that hold both rows.

    Parameters
    ----------
    graphs : sequence of csr_array
        Target neighbours within each subsample.
    subsamples : sequence of ndarray of int
        Its row numbers.
    n_rows : int
        Number n of all rows.

    Returns
    -------
    shares : scipy.sparse.csr_array of shape (n, n)
        Above 0 and at most 1 where a pair is ever a target pair.
    """
    counts = sparse.csr_array((n_rows, n_rows))
    member = np.zeros((len(subsamples), n_rows), dtype=bool)
    for number, (graph, rows) in enumerate(zip(graphs, subsamples, strict=True)):
        pairs = graph.tocoo()
        ends = rows[pairs.row], rows[pairs.col]
        counts = counts + sparse.csr_array((np.ones(pairs.nnz), ends), shape=counts.shape)
        member[number, rows] = True
    pairs = counts.tocoo()
    together = (member[:, pairs.row] & member[:, pairs.col]).sum(axis=0)
    shares = sparse.csr_array((pairs.data / together, (pairs.row, pairs.col)), shape=counts.shape)
    shares.sort_indices()
    return shares
