"""A neighbourhood graph as similarities, for methods that work on graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lnml.core.checks import kind_of
from lnml.learning.coupling import name_with_neighborhoods
from lnml.learning.knn import refuse_dask


def similarity_graph(
    source: Any, X: Any = None, *, weights: str = "distance", mutual: bool = False
) -> sparse.csr_array:
    """Turn neighbourhoods into a symmetric graph of similarities.

    Parameters
    ----------
    source : fitted estimator or (sparse) array of shape (n, n)
        A model with ``target_neighbors_`` (they join rows of the same class
        only), or a graph whose stored entries are pairs, as
        :func:`sklearn.neighbors.kneighbors_graph` makes them. With
        ``weights="distance"`` its values are distances; stored zeros are pairs
        of equal rows. Of a dense array the non-zero entries are pairs.
    X : array-like of shape (n, d), optional
        The rows the model was fitted on, needed for ``weights="distance"``
        when ``source`` is a model.
    weights : {"distance", "binary"}, default="distance"
        Similarity of a pair: ``exp(-D_ij^2 / (s_i s_j))`` with s_i the distance
        from i to the farthest row it lists, so that dense and thin regions
        count alike; or 1.
    mutual : bool, default=False
        Keep a pair only if each lists the other; by default one is enough.

    Returns
    -------
    graph : scipy.sparse.csr_array of shape (n, n)
        Symmetric, at least 0, at most 1, nothing on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> listed = np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 2.0, 0]])  # 0 and 1 list each other
    >>> similarity_graph(listed, weights="binary").toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    >>> similarity_graph(listed, weights="binary", mutual=True).nnz
    2
    """
    if weights not in ("distance", "binary"):
        raise ValueError(f"weights must be 'distance' or 'binary', got {weights!r}")
    listed = _listed(source, X, weights)
    rows, columns = listed.row, listed.col
    values = np.ones(rows.size)
    if weights == "distance":
        scale = _scales(rows, listed.data, listed.shape[0])
        values = np.exp(-(listed.data**2) / (scale[rows] * scale[columns]))
    directed = sparse.csr_array((values, (rows, columns)), shape=listed.shape)
    back = directed.T.tocsr()
    graph = directed.minimum(back) if mutual else directed.maximum(back)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _listed(source: Any, X: Any, weights: str) -> sparse.coo_array:
    """Pairs of two different rows, with their distances where these matter."""
    if hasattr(source, "target_neighbors_"):
        graph = sparse.coo_array(source.target_neighbors_)
        if weights == "distance":
            graph = _with_distances(graph, source, X)
    elif hasattr(source, "fit"):
        raise _no_neighbors(source)
    else:
        graph = sparse.coo_array(source).astype(np.float64)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise ValueError(
            f"a neighbourhood graph is square, one row and one column per row of X; "
            f"got shape {graph.shape}"
        )
    if not np.isfinite(graph.data).all() or (graph.data < 0).any():
        raise ValueError(
            "the graph holds negative or non-finite entries: pass distances, not similarities"
        )
    graph.sum_duplicates()
    rows, columns = graph.row, graph.col
    kept = rows != columns
    return sparse.coo_array((graph.data[kept], (rows[kept], columns[kept])), shape=graph.shape)


def _no_neighbors(model: Any) -> ValueError:
    if isinstance(model, type):
        return ValueError(f"similarity_graph needs a fitted model, got {kind_of(model)}")
    name, other = type(model).__name__, name_with_neighborhoods(model)
    if not hasattr(model, "components_") and not getattr(model, "not_coupled_because", ""):
        return NotFittedError(f"{name} is not fitted: fit it first, or {other}")
    return ValueError(
        f"{name} has no target_neighbors_, because it learns from all rows: fit {other}, or give "
        f"kneighbors_graph(model.transform(X), 5, mode='distance') of sklearn.neighbors"
    )


def _with_distances(graph: sparse.coo_array, model: Any, X: Any) -> sparse.coo_array:
    if X is None:
        raise ValueError(
            "weights='distance' needs the rows the model was fitted on: "
            "similarity_graph(model, X), or use weights='binary'"
        )
    refuse_dask("similarity_graph", X)
    Z = model.transform(X)
    if len(Z) != graph.shape[0]:
        raise ValueError(
            f"X has {len(Z)} rows, the model was fitted on {graph.shape[0]}: pass the rows of "
            f"fit; for others, make a graph of model.transform(X) with "
            f"sklearn.neighbors.kneighbors_graph(..., mode='distance')"
        )
    rows, columns = graph.row, graph.col
    distances = np.linalg.norm(Z[rows] - Z[columns], axis=1).astype(np.float64)
    return sparse.coo_array((distances, (rows, columns)), shape=graph.shape)


def _scales(rows: np.ndarray, distances: np.ndarray, n: int) -> np.ndarray:
    """Distance from every row to the farthest it lists; the median where that is zero."""
    scale = np.zeros(n)
    np.maximum.at(scale, rows, distances)
    positive = scale[scale > 0]
    # Rows without neighbours, or whose neighbours all equal them, have no scale of their own.
    scale[scale == 0] = np.median(positive) if positive.size else 1.0
    return scale
