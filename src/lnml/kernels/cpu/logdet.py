"""One sweep of LogDet projections (docs/itml.md)."""

import numpy as np
from numba import njit

from lnml.kernels.cpu.distances import FAST


@njit(nogil=True, cache=True, fastmath=FAST)
def project_in_turn(vectors, similar, gamma, tightness, factor):
    """Project a metric onto one constraint after another, in place.

    Parameters
    ----------
    vectors : array of shape (m, r)
        Differences v of the pairs, in units of the square roots of their bounds.
    similar : array of bool, shape (m,)
        Whether |factor v|^2 should be at most 1; otherwise at least 1.
    gamma : float
        Weight of the slack.
    tightness : array of shape (m,)
        Bound over slack bound: the state of the dual variables. Changed.
    factor : array of shape (r, r)
        F of the metric F^T F that belongs to ``tightness``. Changed.
    """
    size = factor.shape[0]
    image = np.empty(size)
    row = np.empty(size)
    for i in range(vectors.shape[0]):
        distance = 0.0
        for a in range(size):
            total = 0.0
            for b in range(size):
                total += factor[a, b] * vectors[i, b]
            image[a] = total
            distance += total * total
        old = tightness[i]
        new = (1.0 / distance + gamma * old) / (1.0 + gamma)
        stretch = 1.0 / (distance * new)
        if (new > 1.0) == similar[i]:
            if old == 1.0:
                continue
            new = 1.0
            shrink = 1.0 - gamma * (1.0 - old) * distance
            if similar[i]:
                # True in exact arithmetic, and rounding must not make it zero.
                shrink = max(shrink, distance)
            stretch = 1.0 / shrink
        tightness[i] = new
        weight = (np.sqrt(stretch) - 1.0) / distance
        for b in range(size):
            row[b] = 0.0
        for a in range(size):
            for b in range(size):
                row[b] += image[a] * factor[a, b]
        for a in range(size):
            scale = weight * image[a]
            for b in range(size):
                factor[a, b] += scale * row[b]
