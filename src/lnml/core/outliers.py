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
    steps = [step[step > 0.0] for step in np.diff(np.sort(rows, axis=0), axis=0).T]
    return np.array([np.median(step) * step.size if step.size else 0.0 for step in steps])
