"""Neighbourhood components analysis: the expected number of wrong random neighbours."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from lnml.conditioning import Conditioning
from lnml.kernels.protocol import Kernels
from lnml.objectives.moments import cheaper_moment


class NCATask:
    """Sum over rows of 1 - p_i, p_i the chance that a row's random neighbour is of its class.

    Row i chooses j with probability proportional to exp(-D_ij). scikit-learn
    maximises the sum of the p_i: the same problem. See docs/nca.md.

    Parameters
    ----------
    kernels : Kernels
        The device.
    conditioning : Conditioning
        The data in coordinates where within-class scatter is the identity.
    """

    def __init__(self, kernels: Kernels, conditioning: Conditioning) -> None:
        self.kernels = kernels
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.precision = float(np.finfo(self.points.data.dtype).eps)

    def value(self, components: np.ndarray) -> float:
        """Return the expected number of rows with a neighbour of another class."""
        embedding = self.kernels.embed(self.points, components)
        share, _ = self.kernels.class_softmax(embedding, embedding.coordinates[:, :0])
        return float((1.0 - share).sum())

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (r x d)."""
        embedding = self.kernels.embed(self.points, components)
        share, moment = cheaper_moment(
            lambda values: self.kernels.class_softmax(embedding, values), embedding, components
        )
        return float((1.0 - share).sum()), 2.0 * moment

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple t of M = L^T L with about the least value along the ray; 1 if none is better."""
        scatter = self.kernels.gram(self.points.data, self.points.data)
        n = self.points.n_rows
        spread = 2.0 * float(np.vdot(components @ scatter, components)) / n
        pull = float(np.vdot(components * self.pull, components)) / n
        if spread <= 0:
            return 1.0
        # From all distances near zero to all neighbours but the nearest lost.
        bounds = np.log([1e-3 / spread, 1e3 / max(pull, 1e-6 * spread)])
        found = minimize_scalar(
            lambda log_scale: self.value(np.exp(log_scale / 2) * components),
            bounds=bounds,
            options={"xatol": 0.1},
        )
        return float(np.exp(found.x)) if found.fun < self.value(components) else 1.0
