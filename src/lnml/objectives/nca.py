"""Neighbourhood components analysis: the expected number of wrong random neighbours."""

from __future__ import annotations

import numpy as np

from lnml.core.solution import Proof
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, Task, cheaper_moment
from lnml.objectives.conditioning import Conditioning, whiten_pull
from lnml.objectives.softmax_proof import prove_nca

# Typical squared distances within a class between which a fit makes progress, and a good one.
SMALLEST, TYPICAL, LARGEST = 0.01, 10.0, 100.0


class NCAObjective:
    """Sum over rows of 1 - p_i, p_i the chance that a row's random neighbour is of its class.

    Row i chooses j with probability proportional to exp(-D_ij). scikit-learn
    maximises the sum of the p_i: the same problem. See docs/nca.md.

    Parameters
    ----------
    training : TrainingSet
        The data.
    """

    form = Form.SMOOTH

    def __init__(self, training: TrainingSet) -> None:
        self.training = training
        self.dtype = training.points.dtype

    def task(self, targets: None = None) -> NCATask:
        """Return the task; there are no targets but the classes."""
        kernels, points = self.training.kernels, self.training.points
        return NCATask(kernels, whiten_pull(kernels, points, None))

    def prove(
        self, task: NCATask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned; nothing bounds it."""
        return prove_nca(self.training, components, care)


class NCATask(Task):
    """The NCA objective in coordinates where within-class scatter is the identity.

    See :class:`lnml.solvers.smooth.SmoothTask`.

    Parameters
    ----------
    kernels : Kernels
        The device.
    conditioning : Conditioning
        The data in these coordinates.

    Attributes
    ----------
    precision : float
        Relative rounding of the data's type.
    rounding : float
        A value below this counts as zero, the least possible value.
    """

    def __init__(self, kernels: Kernels, conditioning: Conditioning) -> None:
        super().__init__(conditioning)
        self.kernels = kernels
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.precision = self.points.precision
        self.rounding = self.precision * self.points.n_rows

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (r x d)."""
        embedding = self.kernels.embed(self.points, components)
        share, moment = cheaper_moment(
            lambda full: self.kernels.class_softmax(embedding, full=full), components
        )
        return float((1.0 - share).sum()), 2.0 * moment

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple of M = L^T L at which rows see more than their nearest neighbour.

        1 where the typical squared distance within a class is between SMALLEST
        and LARGEST, else what makes it TYPICAL (docs/nca.md).
        """
        within = float(np.vdot(components * self.pull, components)) / self.points.n_rows
        if within <= 0 or SMALLEST <= within <= LARGEST:
            return 1.0
        return TYPICAL / within
