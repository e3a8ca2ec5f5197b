"""The trace penalty: rho * 2 W v * tr M, a ridge on the components (docs/trace_penalty.md).

W is the weight of all that pulls, v the mean variance of the data. The penalty acts like a
share rho of more target pairs, in random directions. Beside a pull scatter S it is S + ridge I,
so that every direction has some pull.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from lnml.core.points import Points
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.scatter import ColumnUnits, TotalScatter, whitened
from lnml.proofs.differences import Moment, entrywise
from lnml.proofs.objective import Value
from lnml.proofs.rounding import gamma


class PenalisedTask(Protocol):
    """What is asked of an objective in coordinates that whiten its pull and ridge."""

    # Any: linear coordinates, with their inverse.
    coordinates: Any

    def slope_at_zero(self) -> np.ndarray:
        """Gradient in M at M = 0 (e x e), ridge included, in units of the weight of the pull."""


class Ridge(NamedTuple):
    """A trace penalty in the units of the data.

    Attributes
    ----------
    rho : float
        ``trace_penalty`` of the estimator; 0 for none.
    unit : float
        2 W v: what a ``trace_penalty`` of one is.
    """

    rho: float = 0.0
    unit: float = 0.0

    @classmethod
    def of(cls, training: TrainingSet, rho: float, weight: float) -> Ridge:
        """Measure the data; ``weight`` is W."""
        if rho == 0.0:
            return cls()
        return cls.finite(rho, 2.0 * weight * mean_variance(training.kernels, training.points))

    @classmethod
    def finite(cls, rho: float, unit: float) -> Ridge:
        """Return a penalty whose weight is a number."""
        found = cls(rho, unit)
        if not np.isfinite(found.weight):
            raise ValueError(
                f"trace_penalty={rho:g} times the squares of X overflows float64: choose a "
                f"smaller penalty, or rescale X"
            )
        return found

    @property
    def weight(self) -> float:
        """Factor of tr M beside a pull scatter."""
        return self.rho * self.unit

    def value(self, components: np.ndarray) -> Value:
        """Return the penalty of components (r x d), with its rounding."""
        trace = float(np.vdot(components, components))
        return Value(self.weight * trace, gamma(components.size + 2) * self.weight * trace)

    def moment(self, coordinates: np.ndarray) -> Moment:
        """Return the penalty as a scatter in coordinates W (d x e): weight * W^T W."""
        squares = self.weight * np.square(coordinates).sum(axis=0) * (1.0 + 1e-12)
        matrix = self.weight * (coordinates.T @ coordinates)
        return Moment(matrix, squares, entrywise(gamma(len(coordinates) + 4), squares))

    @property
    def parameters(self) -> dict[str, float]:
        """What a certificate says about it: nothing, if there is none."""
        return {"trace_weight": self.weight} if self.weight > 0.0 else {}

    def limit(self, task: PenalisedTask) -> float:
        """Return the rho from which the zero metric is the best; exact up to rounding of rho."""
        inverse = task.coordinates.inverse
        raw = inverse.T @ task.slope_at_zero() @ inverse
        seen = np.flatnonzero(inverse.any(axis=0))
        least = float(np.linalg.eigvalsh(raw[np.ix_(seen, seen)] / self.unit)[0])
        return self.rho - least


NO_RIDGE = Ridge()


class PenalisedObjective(ABC):
    """Base of the objectives that a trace penalty can make best at the zero metric."""

    ridge: Ridge

    # Any: the task is what the objective's solver expects, and a PenalisedTask.
    @abstractmethod
    def penalised(self, targets: Any, ridge: Ridge) -> Any:
        """Return the task under a penalty, whatever it is."""

    def not_at_zero(self, targets: Any) -> Any:
        """Return the task; refuse a penalty under which no metric is better than zero."""
        task, rho = self.penalised(targets, self.ridge), self.ridge.rho
        if rho == 0.0 or rho < self.ridge.limit(task):
            return task
        most = self.max_trace_penalty(targets)
        if most == 0.0:
            raise ValueError(
                "no metric is better than the zero metric on these data, under which all rows "
                "are the same: the classes do not differ, or columns have very different scales; "
                "scale the columns first"
            )
        raise ValueError(
            f"trace_penalty={rho:g} is too large for these data: from {most:.3g} on the zero "
            f"metric is the best one, and says nothing. Choose a smaller penalty; 0.1 of that, "
            f"{0.1 * most:.2g}, is still a strong one"
        )

    def max_trace_penalty(self, targets: Any) -> float:
        """Return the rho from which the zero metric is the best; zero: it always is."""
        # A rho far above the result would leave none of its digits.
        one = self.ridge._replace(rho=1.0)
        return max(one.limit(self.penalised(targets, one)), 0.0)


def mean_variance(kernels: Kernels, points: Points) -> float:
    """Return tr Sigma / e: the mean variance over the e directions in which the rows vary."""
    units = ColumnUnits.of(kernels, points)
    columns = np.eye(points.n_features)[:, np.isfinite(units.scale)]
    varying = whitened(TotalScatter(kernels, units), columns, columns.shape[1])
    count = max(varying.directions.shape[1], 1)
    return float(np.square(units.unscale).sum()) / count
