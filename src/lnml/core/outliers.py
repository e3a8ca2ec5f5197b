"""How far the values of a column reach, if its outliers do not count."""

from __future__ import annotations

import numpy as np


def usual_range(rows: np.ndarray) -> np.ndarray:
    """Range of every column, if all steps from value to value were like the middle one.

    Unlike quartiles, this does not notice a code that a third of the rows have. It is zero
    for a column without any step.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The values.

    Examples
    --------
    >>> import numpy as np
    >>> usual_range(np.array([[1.0], [2.0], [3.0], [4.0], [1e9]]))
    array([4.])
    """
    steps = np.sort(np.diff(np.sort(rows, axis=0), axis=0), axis=0)
    counts = (steps > 0.0).sum(axis=0)
    if not counts.any():
        return np.zeros(rows.shape[1])
    # Steps above zero come last; an even number of them has two in the middle.
    middle = [len(steps) - counts + np.maximum(counts - 1 + k, 0) // 2 for k in range(2)]
    found = np.take_along_axis(steps, np.minimum(middle, len(steps) - 1), axis=0)
    return np.where(counts > 0, found.mean(axis=0) * counts, 0.0)
