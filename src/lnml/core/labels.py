"""Class labels as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Classes(NamedTuple):
    """Labels in the order in which they first appear, and the code of every row.

    Their order never depends on their names, so renaming classes changes nothing
    that is computed from the codes.
    """

    labels: np.ndarray
    codes: np.ndarray


def classes_by_appearance(y: np.ndarray) -> Classes:
    """Give the classes of y (n,) numbers from 0 as they appear.

    Examples
    --------
    >>> import numpy as np
    >>> found = classes_by_appearance(np.array(["b", "a", "b"]))
    >>> print(found.labels, found.codes)
    ['b' 'a'] [0 1 0]
    """
    labels, first, codes = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return Classes(labels[order], position[codes])
