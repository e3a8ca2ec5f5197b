"""A large classification problem whose structure is known.

Every class is a mixture of several modes in a few informative directions. Some
other directions have strong spread but no information, and the rest is weak noise. A
random rotation mixes them all, so that no feature is informative on its own. The best
metric sees the informative directions only.
"""

from __future__ import annotations

import numpy as np

CHUNK = 100_000


def make_mixture(
    n_samples: int,
    *,
    n_features: int = 128,
    n_classes: int = 100,
    n_modes: int = 5,
    n_informative: int = 16,
    n_nuisance: int = 8,
    separation: float = 2.6,
    nuisance: float = 4.0,
    noise: float = 0.3,
    seed: int = 0,
    part: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw labelled points; a seed gives a problem, and another ``part`` other points of it.

    Parameters
    ----------
    n_samples : int
        Number of points.
    n_features, n_classes, n_modes : int
        Features, classes, and modes of each class.
    n_informative, n_nuisance : int
        Directions in which classes differ (spread within a mode: one), and
        directions of strong spread in which they do not.
    separation : float
        Spread of the modes in each informative direction.
    nuisance, noise : float
        Spread of the nuisance directions and of all that are left.
    seed, part : int
        Seeds of the problem and of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,)
    """
    problem = np.random.default_rng(seed)
    modes = np.zeros((n_classes * n_modes, n_features))
    modes[:, :n_informative] = separation * problem.standard_normal((len(modes), n_informative))
    spread = np.full(n_features, noise)
    spread[:n_informative] = 1.0
    spread[n_informative : n_informative + n_nuisance] = nuisance
    rotation = np.linalg.qr(problem.standard_normal((n_features, n_features)))[0]
    modes, mixing = modes @ rotation, (spread[:, None] * rotation).astype(np.float32)
    draw = np.random.default_rng([seed, 1 + part])
    chosen = draw.integers(len(modes), size=n_samples)
    X = np.empty((n_samples, n_features), dtype=np.float32)
    for low in range(0, n_samples, CHUNK):
        rows = slice(low, low + CHUNK)
        around = draw.standard_normal((len(chosen[rows]), n_features), dtype=np.float32)
        X[rows] = modes[chosen[rows]] + around @ mixing
    return X, chosen % n_classes
