"""The rows that a metric is learned from, on the device that does the work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lnml.core.labels import narrow
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Data in class order, as objectives and solvers see them.

    Attributes
    ----------
    points : Points
        The rows of each class together, not scaled; offsets that cost digits are taken away.
    order : ndarray of shape (n,)
        Row of the user's X that stands at each position.
    kernels : Kernels
        The device that does the n x n work.
    n_target_pairs, n_target_rows : int
        How many target pairs there will be, and how many rows will have any: known before
        the pairs are.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import TrainingSet
    >>> from lnml.kernels import get_kernels
    >>> X, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> training = TrainingSet.from_labels(X, codes, get_kernels())
    >>> training.order, training.points.class_start, training.n_target_pairs
    (array([0, 2, 1, 3]), array([0, 2, 4]), 4)
    """

    points: Points
    order: np.ndarray
    kernels: Kernels
    n_target_pairs: int = 0
    n_target_rows: int = 0

    @classmethod
    def from_labels(cls, X: Any, codes: np.ndarray, kernels: Kernels) -> TrainingSet:
        """Sort rows by class code (stable, so ties by index keep their meaning).

        All rows of the same class count as target pairs until others are named.
        """
        class_start = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        order = np.argsort(narrow(codes), kind="stable")
        points = kernels.points(X, class_start, order)
        sizes = points.class_sizes
        n_pairs, n_rows = int((sizes * (sizes - 1)).sum()), int(sizes[sizes > 1].sum())
        return cls(points, order, kernels, n_pairs, n_rows)
