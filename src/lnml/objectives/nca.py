"""Neighbourhood components analysis: the expected number of wrong random neighbours."""

from __future__ import annotations

import numpy as np

from lnml.core.solution import Proof
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.base import Form, Task, cheaper_moment
from lnml.objectives.conditioning import Conditioning, class_pull, whiten_pull
from lnml.objectives.softmax_proof import prove_nca
from lnml.objectives.trace import PenalisedObjective, Ridge

# Typical squared distances within a class between which a fit makes progress, and a good one.
SMALLEST, TYPICAL, LARGEST = 0.01, 10.0, 100.0

# A metric must be better than the zero metric by this share.
LEAST_GAIN = 1e-6


class NCAObjective(PenalisedObjective):
    """Sum over rows of 1 - p_i, p_i the chance that a row's random neighbour is of its class.

    Row i chooses j with probability proportional to exp(-D_ij). scikit-learn
    maximises the sum of the p_i: the same problem. See docs/nca.md.

    Parameters
    ----------
    training : TrainingSet
        The data.
    trace_penalty : float
        rho: the trace of the metric costs like so many times the pull of isotropic data.
    """

    form = Form.SMOOTH

    def __init__(self, training: TrainingSet, trace_penalty: float = 0.0) -> None:
        self.training = training
        self.dtype = training.points.dtype
        self.ridge = Ridge.of(training, trace_penalty, training.points.n_rows)

    def task(self, targets: None = None) -> NCATask:
        """Return the task; there are no targets but the classes."""
        return self.penalised(targets, self.ridge)

    def penalised(self, targets: None, ridge: Ridge) -> NCATask:
        """See :class:`lnml.objectives.trace.PenalisedObjective`."""
        kernels, points = self.training.kernels, self.training.points
        conditioning = whiten_pull(kernels, points, class_pull(points), ridge.weight)
        return NCATask(kernels, conditioning, ridge.weight)

    def refuse_zero(self, objective: float) -> None:
        """Refuse what is no better than the zero metric, where a penalty is the cause."""
        points = self.training.points
        sizes = points.class_sizes
        at_zero = float((sizes * (points.n_rows - sizes)).sum()) / (points.n_rows - 1.0)
        if self.ridge.weight > 0.0 and objective >= (1.0 - LEAST_GAIN) * at_zero:
            raise ValueError(
                f"trace_penalty={self.ridge.rho:g} is too large for these data: the fit ended at "
                f"a metric that is no better than the zero metric, which says nothing. Choose a "
                f"smaller penalty, well below max_trace_penalty(X, y)"
            )

    def prove(
        self, task: NCATask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (r x d) as returned; nothing bounds it."""
        return prove_nca(self.training, components, care, self.ridge)


class NCATask(Task):
    """The NCA objective in coordinates where within-class scatter is the identity.

    See :class:`lnml.solvers.smooth.SmoothTask`.

    Parameters
    ----------
    kernels : Kernels
        The device.
    conditioning : Conditioning
        The data in these coordinates.
    ridge : float
        Weight of the trace of the metric.

    Attributes
    ----------
    precision : float
        Relative rounding of the data's type.
    rounding : float
        A value below this counts as zero, the least possible value.
    """

    def __init__(self, kernels: Kernels, conditioning: Conditioning, ridge: float = 0.0) -> None:
        super().__init__(conditioning)
        self.kernels = kernels
        self.points = conditioning.points
        self.pull = conditioning.pull
        self.precision = self.points.precision
        self.rounding = self.precision * self.points.n_rows
        self.ridge = ridge * (conditioning.matrix.T @ conditioning.matrix)

    def value_and_gradient(self, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (r x d)."""
        embedding = self.kernels.embed(self.points, components)
        wrong, moment = cheaper_moment(
            lambda full: self.kernels.class_softmax(embedding, full=full), components
        )
        penalised = components @ self.ridge
        return wrong + float(np.vdot(penalised, components)), 2.0 * (moment + penalised)

    def best_scale(self, components: np.ndarray) -> float:
        """Multiple of M = L^T L at which rows see more than their nearest neighbour.

        1 where the typical squared distance within a class is between SMALLEST
        and LARGEST, else what makes it TYPICAL (docs/nca.md).
        """
        within = float(np.vdot(components * self.pull, components)) / self.points.n_rows
        if within <= 0 or SMALLEST <= within <= LARGEST:
            return 1.0
        return TYPICAL / within

    def slope_at_zero(self) -> np.ndarray:
        """See :class:`lnml.objectives.trace.PenalisedTask`: all partners are equally likely."""
        points = self.points
        each = 1.0 / (points.n_rows - 1.0)
        own = each * (points.class_sizes - 1.0)
        slope = self.kernels.pair_scatter(points, each * (1.0 - own), -each * own)
        return slope + self.ridge
