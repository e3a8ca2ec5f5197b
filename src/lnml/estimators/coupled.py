"""The base estimator inside LNML and LNMLCV."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRouter

from lnml.core.checks import kind_of
from lnml.estimators.base import MetricEstimator, MetricLearner
from lnml.estimators.lmnn import LMNN
from lnml.kernels import device_of, get_kernels
from lnml.kernels.protocol import Kernels
from lnml.kernels.training import TrainingSet
from lnml.learning.coupling import Coupling


class CoupledEstimator(MetricEstimator):
    """Base of the estimators that learn neighbourhoods for a base estimator."""

    estimator: Any

    @property
    def not_on_cluster_because(self) -> str:  # type: ignore[override]
        """See :class:`lnml.estimators.base.MetricEstimator`: the base learner decides."""
        base = LMNN() if self.estimator is None else self.estimator
        return str(getattr(base, "not_on_cluster_because", "its base learner is none of lnml"))

    def kernels_for(self, X: Any) -> Kernels:
        """Kernels of the device that is named here or by the base estimator, else of X."""
        return get_kernels(coupled_device(self.device, self.estimator, X))

    def get_metadata_routing(self) -> MetadataRouter:
        """Neighbourhoods are learned, so nothing is routed to the base estimator."""
        return MetadataRouter(owner=self)


def coupled_base(estimator: Any) -> MetricLearner:
    """Return a clone of the base estimator (LMNN where there is none), if it can be coupled."""
    base = LMNN() if estimator is None else estimator
    if isinstance(base, type):
        raise TypeError(f"LNML cannot couple with {kind_of(base)}")
    reason = getattr(base, "not_coupled_because", "")
    if reason or not isinstance(base, MetricLearner):
        raise TypeError(
            f"LNML cannot couple with {type(base).__name__}{reason and f', because {reason}'}: "
            f"neighbourhood learning needs an objective that is a sum of costs of target "
            f"pairs, offered by a subclass of lnml.contract.MetricLearner through "
            f"metric_problem(training); docs/contract.md shows how"
        )
    base = clone(base)
    base.check_parameters()
    return base


def coupled_device(device: Any, estimator: Any, X: Any) -> str:
    """Return the device for data X: the one named, else that of the base estimator or of X."""
    return device_of(getattr(estimator, "device", None) if device is None else device, X)


def coupled(base: MetricLearner, X: Any, codes: np.ndarray, kernels: Kernels) -> Coupling:
    """Couple a base estimator with checked data X (n, d) and class codes (n,)."""
    training = TrainingSet.from_labels(X, codes, kernels)
    start = base.initial_components(X, codes)
    return Coupling(type(base).__name__, base.metric_problem, training, start)
