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
    _, first, codes = np.unique(narrow(y), return_index=True, return_inverse=True)
    order = np.argsort(first)
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return Classes(y[first[order]], position[codes])


def narrow(values: np.ndarray) -> np.ndarray:
    """Return values in the same order as 16-bit numbers if they are integers in so small a range.

    NumPy sorts these several times as fast.

    Examples
    --------
    >>> import numpy as np
    >>> print(narrow(np.array([-7, 90, -6])), narrow(np.array([0.5])))
    [ 0 97  1] [0.5]
    """
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    if high - low >= 2**16:
        return values
    # Modulo 2^64, so that nothing overflows.
    return (values.astype(np.uint64) - np.uint64(low % 2**64)).astype(np.uint16)
