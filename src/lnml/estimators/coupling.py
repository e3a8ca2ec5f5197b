"""A metric learner and its data, coupled with the learning of neighbourhoods."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from lnml.estimators.base import MetricLearner
from lnml.estimators.lmnn import LMNN
from lnml.kernels import device_of
from lnml.kernels.protocol import Kernels, Ranked
from lnml.neighborhoods.assignment import Sizes
from lnml.neighborhoods.learned import (
    Assignment,
    assign_at_metric,
    choose_ranked,
    rank_at_metric,
)
from lnml.objectives.contract import TrainingSet
from lnml.solvers.alternation import Alternation, alternate
from lnml.solvers.monitor import Monitor


def coupled_base(estimator: Any) -> MetricLearner:
    """Return a clone of the base estimator (LMNN where there is none), if it can be coupled."""
    base = LMNN() if estimator is None else estimator
    reason = getattr(base, "not_coupled_because", "")
    if reason or not isinstance(base, MetricLearner):
        raise TypeError(
            f"LNML cannot couple with {type(base).__name__}{reason and f', because {reason}'}: "
            f"neighbourhood learning needs an objective that is a sum of costs of target "
            f"pairs, offered by a subclass of lnml.estimators.base.MetricLearner through "
            f"metric_problem(training); docs/contract.md shows how"
        )
    return clone(base)


def coupled_device(device: Any, base: MetricLearner, X: Any) -> str:
    """Return the device for data X: the one named, else that of the base estimator or of X."""
    return device_of(base.device if device is None else device, X)


class Coupling:
    """What LNML needs of its data and base estimator, for any neighbourhood sizes.

    Parameters
    ----------
    base : MetricLearner
        The base estimator; asked for its problem and its first metric.
    X : ndarray or tensor of shape (n, d)
        Checked data.
    codes : ndarray of shape (n,)
        Class codes, each of 0 .. n_classes - 1 present.
    kernels : Kernels
        The device.

    Attributes
    ----------
    training : TrainingSet
        The data, sorted and on the device.
    problem : MetricProblem
        The metric problem.
    start : ndarray of shape (r, d)
        Components of M0.
    """

    def __init__(self, base: MetricLearner, X: Any, codes: np.ndarray, kernels: Kernels) -> None:
        self.name = type(base).__name__
        self.training = TrainingSet.from_labels(X, codes, kernels)
        self.problem = base.metric_problem(self.training)
        self.start = base.initial_components(X, codes)
        self._shared: tuple[np.ndarray, Ranked] | None = None

    def check(self, sizes: Sizes) -> None:
        """Refuse sizes that differ between rows where the problem needs fixed ones."""
        if self.problem.fixed_row_sizes and not sizes.k_min == sizes.k_av == sizes.k_max:
            raise ValueError(
                f"{self.name} needs k_min = k_av = k_max: its objective divides by the size "
                f"of each neighbourhood, so sizes cannot be traded between rows; got "
                f"k_min={sizes.k_min}, k_av={sizes.k_av}, k_max={sizes.k_max}"
            )

    def share_ranking(self, start: np.ndarray, k_max: int) -> None:
        """Rank partners once for all fits from this start with sizes up to ``k_max``.

        A problem with fixed row sizes may let costs depend on the size
        (docs/contract.md), so it has nothing to share here.
        """
        if not self.problem.fixed_row_sizes:
            ranked = rank_at_metric(self.problem, self.training, start, k_max)
            self._shared = (start, ranked)

    def learn(
        self,
        sizes: Sizes,
        start: np.ndarray,
        *,
        tol: float,
        max_rounds: int,
        monitor: Monitor,
    ) -> Alternation:
        """Learn metric and neighbourhoods; see :func:`lnml.solvers.alternation.alternate`."""

        def assign(components: np.ndarray) -> Assignment:
            if self._shared is not None and components is self._shared[0]:
                ranked = self._shared[1]
                return choose_ranked(self.problem, self.training, components, ranked, sizes)
            return assign_at_metric(self.problem, self.training, components, sizes)

        return alternate(
            self.problem,
            assign,
            start,
            tol=tol,
            max_rounds=max_rounds,
            monitor=monitor,
        )

    def target_costs(self, found: Alternation) -> sparse.csr_array:
        """Cost of every learned target pair at the learned metric, in the user's row numbers."""
        kernels = self.training.kernels
        costs = kernels.to_host(self.problem.pair_costs(found.solution.components, found.targets))
        rows, columns = (self.training.order[part] for part in found.targets.to_host().pairs())
        n = self.training.order.size
        graph = sparse.csr_array((costs, (rows, columns)), shape=(n, n))
        graph.sort_indices()
        return graph
