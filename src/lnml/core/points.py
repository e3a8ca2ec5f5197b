"""Rows of data on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Points:
    """Data on a device, the rows of each class together.

    Attributes
    ----------
    data : array of shape (n, d)
        Rows in class order, float32 or float64.
    class_start : ndarray of shape (n_classes + 1,)
        Rows ``class_start[c]:class_start[c + 1]`` belong to class ``c``.
    far : bool, default=False
        Whether rows lie so far from each other that distances must come from
        differences: a matrix product would lose them.
    rounding : ndarray of shape (2, d), or None
        Rounding of the largest value of each column as it was given, and of a value in the
        middle; None if not known.
    """

    data: Any
    class_start: np.ndarray
    far: bool = False
    rounding: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.data.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, as NumPy calls them."""
        return np.dtype(np.float32 if self.data.itemsize == 4 else np.float64)

    @property
    def precision(self) -> float:
        """Distance from one to the next larger number of this type."""
        return float(np.finfo(self.dtype).eps)

    @property
    def class_sizes(self) -> np.ndarray:
        """Number of rows of every class."""
        return np.diff(self.class_start)

    @property
    def row_class(self) -> np.ndarray:
        """Class code of every row, shape (n,)."""
        sizes = self.class_sizes
        return np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Points under a metric.

    Attributes
    ----------
    coordinates : array of shape (n, r)
        ``data @ components.T``.
    points : Points
        The data.
    components : ndarray of shape (r, d), or None
        L; None stands for the identity.
    """

    coordinates: Any
    points: Points
    components: np.ndarray | None = None

    @classmethod
    def of(cls, points: Points) -> Embedding:
        """Points under the identity, as they are."""
        return cls(points.data, points)


class Columns(NamedTuple):
    """What the columns of some data look like: four vectors on the host, in float64."""

    mean: np.ndarray
    spread: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
