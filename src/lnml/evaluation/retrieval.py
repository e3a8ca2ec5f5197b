"""How well a distance finds rows of the same class: recall@k, R-precision and MAP@R.

docs/retrieval.md defines them and says what happens to ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from lnml.core.checks import check_integer
from lnml.core.pairs import TIE_SPLIT
from lnml.kernels.cpu.threads import tile_budget
from lnml.kernels.tensors import host_array
from lnml.kernels.tiles import row_tiles
from lnml.learning.knn import nearest_rows, refuse_dask

ACCURACY = "accuracy"
KNOWN = "accuracy, recall@K (K = 1, 2, ...), map@r and r-precision"


class Score(NamedTuple):
    """What methods are judged by.

    Attributes
    ----------
    name : str
        ``accuracy``, ``recall@5``, ``map@r`` or ``r-precision``.
    title : str
        The same as tables write it.
    k : int or None
        Rows that are looked at; None if the score has no such number.
    """

    name: str
    title: str
    k: int | None = None


def read_score(name: Any) -> Score:
    """Return the score that a name stands for, in capitals or not; or say what there is.

    Examples
    --------
    >>> read_score("Recall@5")
    Score(name='recall@5', title='Recall@5', k=5)
    """
    text = name.lower() if isinstance(name, str) else ""
    titles = {ACCURACY: "Accuracy", "map@r": "MAP@R", "r-precision": "R-precision"}
    if text in titles:
        return Score(text, titles[text])
    what, _, number = text.partition("@")
    if what == "recall" and number.isdecimal() and int(number) > 0:
        return Score(f"recall@{int(number)}", f"Recall@{int(number)}", int(number))
    raise ValueError(f"there is no score {name!r}; there are: {KNOWN}")


def recall_at_k(
    references: Any, reference_labels: Any, queries: Any, query_labels: Any, k: int = 1
) -> float:
    """Share of the queries that have a row of their class among the k nearest references.

    This is recall@k as papers on embeddings use the word. It is not the share of all relevant
    rows that were found.

    Parameters
    ----------
    references : array-like of shape (n, r)
        Rows that can be found, mapped by ``transform`` if a metric was learned.
    reference_labels : array-like of shape (n,)
        Their labels.
    queries : array-like of shape (m, r)
        Rows that ask.
    query_labels : array-like of shape (m,)
        Their labels; each must occur among the references.
    k : int, default=1
        References to look at, nearest first. Of equally near ones the lowest number comes first.

    Returns
    -------
    recall : float
        From 0 to 1.

    Examples
    --------
    >>> recall_at_k([[0.0], [1.0], [2.0]], ["a", "b", "b"], [[0.4], [1.6]], ["b", "b"], k=1)
    0.5
    >>> recall_at_k([[0.0], [1.0], [2.0]], ["a", "b", "b"], [[0.4], [1.6]], ["b", "b"], k=2)
    1.0
    """
    score = Score("recall@k", "Recall@k", check_integer("k", k, 1))
    return float(score_rows(score, references, reference_labels, queries, query_labels).mean())


def r_precision(references: Any, reference_labels: Any, queries: Any, query_labels: Any) -> float:
    """Share of rows of the query's class among the R nearest references, on average.

    R is the number of references of the query's class, so 1 means that all of them come before
    all others.

    Parameters
    ----------
    references, reference_labels, queries, query_labels : array-like
        As for :func:`recall_at_k`.

    Returns
    -------
    precision : float
        From 0 to 1.

    Examples
    --------
    >>> r_precision([[0.0], [1.0], [2.0]], ["b", "a", "b"], [[0.4]], ["b"])
    0.5
    """
    score = read_score("r-precision")
    return float(score_rows(score, references, reference_labels, queries, query_labels).mean())


def map_at_r(references: Any, reference_labels: Any, queries: Any, query_labels: Any) -> float:
    """Mean average precision at R.

    For one query it is the sum, over those of the R nearest references that have its class, of the
    precision up to them, divided by R. R is the number of references of the query's class. Unlike
    R-precision it rewards rows of the class that come early.

    Parameters
    ----------
    references, reference_labels, queries, query_labels : array-like
        As for :func:`recall_at_k`.

    Returns
    -------
    precision : float
        From 0 to 1, and never above :func:`r_precision`.

    Examples
    --------
    >>> map_at_r([[0.0], [1.0], [2.0]], ["b", "a", "b"], [[0.4]], ["b"])
    0.5
    >>> map_at_r([[0.0], [1.0], [2.0]], ["b", "a", "b"], [[0.6]], ["b"])
    0.25
    """
    score = read_score("map@r")
    return float(score_rows(score, references, reference_labels, queries, query_labels).mean())


def score_rows(
    score: Score, references: Any, reference_labels: Any, queries: Any, query_labels: Any
) -> np.ndarray:
    """Return a score of retrieval for each query, from 0 to 1: shape (m,)."""
    references, queries = _rows("references", references), _rows("queries", queries)
    known, wanted = np.asarray(reference_labels), np.asarray(query_labels)
    _check_shapes(references, known, queries, wanted)
    if score.k is not None:
        found = nearest_rows(references, queries, score.k)
        return (known[found] == wanted[:, None]).any(axis=1).astype(float)
    values = np.empty(len(queries))
    for label in np.unique(wanted):
        asking, relevant = np.flatnonzero(wanted == label), known == label
        for part, hits in _hits(references, relevant, queries, asking):
            values[part] = hits.mean(axis=1) if score.name == "r-precision" else _averages(hits)
    return values


def _hits(
    references: np.ndarray, relevant: np.ndarray, queries: np.ndarray, asking: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield queries (b,) and whether their R nearest references are relevant (b, R), in blocks."""
    depth = int(relevant.sum())
    for lo, hi in row_tiles(asking.size, tile_budget() // (8 * len(references))):
        squares = cdist(queries[asking[lo:hi]], references, "sqeuclidean")
        # As in the search for nearest rows: what is equal but for rounding is a tie.
        scaled = TIE_SPLIT * squares
        squares = scaled - (scaled - squares)
        yield asking[lo:hi], relevant[np.argsort(squares, axis=1, kind="stable")[:, :depth]]


def _averages(hits: np.ndarray) -> np.ndarray:
    """Average precision at R of each row of hits (b, R): shape (b,)."""
    places = np.arange(1, hits.shape[1] + 1)
    return (hits.cumsum(axis=1) / places * hits).mean(axis=1)


def _rows(name: str, values: Any) -> np.ndarray:
    refuse_dask("a score of retrieval", values)
    rows = np.asarray(host_array(values), dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ValueError(f"{name} must be a matrix of finite numbers, one row for each label")
    return rows


def _check_shapes(
    references: np.ndarray, known: np.ndarray, queries: np.ndarray, wanted: np.ndarray
) -> None:
    if references.shape[1] != queries.shape[1]:
        raise ValueError(
            f"references have {references.shape[1]} columns and queries {queries.shape[1]}: map "
            f"both by the same metric"
        )
    for name, rows, labels in (("references", references, known), ("queries", queries, wanted)):
        if labels.shape != (len(rows),):
            raise ValueError(f"{name} must have one label for each of the {len(rows)} rows")
    lone = np.flatnonzero(~np.isin(wanted, known))
    if lone.size:
        raise ValueError(
            f"no reference has the label of query {lone[0]} ({wanted[lone[0]]!r}), so nothing is "
            f"relevant to it: leave such queries out"
        )
