"""The k-nearest-neighbour rule with deterministic ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.points import Embedding
from lnml.kernels import device_of, get_kernels
from lnml.kernels.tensors import is_dask


def predict_nearest(
    train: Any, labels: np.ndarray, test: Any, k: int = 1, *, device: Any = None
) -> np.ndarray:
    """Label that most of the k nearest training rows of every test row have.

    Of equally near rows the one with the lowest number is nearer; of labels with
    equally many votes the one whose first row is nearest wins.

    Parameters
    ----------
    train : ndarray or tensor of shape (n, r)
        Training rows.
    labels : ndarray of shape (n,)
        Their labels.
    test : ndarray or tensor of shape (m, r)
        Rows to classify.
    k : int, default=1
        Rows that vote.
    device : str, torch.device or None, default=None
        Where the search runs; None follows ``train``.

    Returns
    -------
    predicted : ndarray of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> predict_nearest(np.array([[0.0], [2.0]]), np.array(["a", "b"]), np.array([[1.0], [1.5]]))
    array(['a', 'b'], dtype='<U1')
    """
    classes, codes = np.unique(labels, return_inverse=True)
    return classes[majority(codes[nearest_rows(train, test, k, device)], classes.size)]


def nearest_rows(train: Any, test: Any, k: int, device: Any = None) -> np.ndarray:
    """Numbers of the k nearest training rows of every test row, nearest first: shape (m, k)."""
    for rows in (train, test):
        refuse_dask("the nearest-neighbour rule", rows)
    if not 1 <= k <= len(train):
        raise ValueError(f"k must be from 1 to {len(train)}, the number of training rows; got {k}")
    kernels = get_kernels(device_of(device, train))
    with kernels.session():
        points = kernels.points(train, np.array([0, len(train)]))
        _, rows = kernels.nearest(Embedding.of(points), test, k)
        return kernels.to_host(rows)


def majority(votes: np.ndarray, n_classes: int) -> np.ndarray:
    """Most frequent code of every row (m, k); of equals the one that comes first in the row."""
    if votes.shape[1] == 1:
        return votes[:, 0]
    rows = np.arange(len(votes))[:, None]
    counts = np.zeros((len(votes), n_classes), dtype=np.int64)
    np.add.at(counts, (rows, votes), 1)
    return votes[rows[:, 0], counts[rows, votes].argmax(axis=1)]


def refuse_dask(name: str, X: Any) -> None:
    """Say clearly that something needs all rows here: they are never gathered in silence."""
    if is_dask(X):
        raise TypeError(
            f"{name} needs rows on this machine: give a sample of them as a NumPy array, or "
            f"X.compute() if all fit into its memory (docs/cluster.md)"
        )
