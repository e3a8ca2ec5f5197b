"""One sweep of LogDet projections (docs/itml.md)."""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.compiling import loop
from lnml.kernels.cpu.distances import FAST

# Constraints whose projections are gathered into one matrix product.
BLOCK = 64
# A squared distance that fell below this share of its start is rounding.
LEAST_SHARE = 1e-12


def project_in_turn(
    images: np.ndarray, similar: np.ndarray, gamma: float, tightness: np.ndarray
) -> None:
    """Project a metric onto one constraint after another; ``tightness`` is changed.

    Parameters
    ----------
    images : ndarray of shape (m, r)
        Vectors z of the pairs, in coordinates where the metric is the identity and in
        units of the square roots of their bounds.
    similar : ndarray of bool, shape (m,)
        Whether |z|^2 should be at most 1; otherwise at least 1.
    gamma : float
        Weight of the slack.
    tightness : ndarray of shape (m,)
        Bound over slack bound: the state of the dual variables.
    """
    metric = np.eye(images.shape[1])
    for low in range(0, len(images), BLOCK):
        part = slice(low, low + BLOCK)
        z = images[part]
        moved = z @ metric
        change = np.zeros((len(z), len(z)))
        least = LEAST_SHARE * np.einsum("ij,ij->i", z, z)
        if _project_block(moved @ z.T, similar[part], gamma, tightness[part], least, change):
            metric += moved.T @ (change @ moved)


@loop(fastmath=FAST)
def _project_block(products, similar, gamma, tightness, least, change):
    """Project onto the constraints of a block; whether the metric N was changed.

    Parameters
    ----------
    products : array of shape (b, b)
        z_i^T N z_j at the start. Changed.
    similar, tightness, least : arrays of shape (b,)
        As in project_in_turn; squared distances below ``least`` are left alone.
    change : array of shape (b, b)
        Zeros; gets C of the new metric N + Y^T C Y, where the rows of Y are N z_i.
    """
    size = products.shape[0]
    # Row i of mixing @ Y is N z_i for the metric reached so far.
    mixing = np.eye(size)
    changed = False
    for i in range(size):
        distance = products[i, i]
        if not distance > least[i]:
            continue
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
        changed = True
        weight = (stretch - 1.0) / distance
        for j in range(i + 1, size):
            scale = weight * products[i, j]
            for k in range(i + 1, size):
                products[j, k] += scale * products[i, k]
            for k in range(i + 1):
                mixing[j, k] += scale * mixing[i, k]
        for j in range(i + 1):
            scale = weight * mixing[i, j]
            for k in range(i + 1):
                change[j, k] += scale * mixing[i, k]
    return changed
