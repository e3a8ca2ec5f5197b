"""The small contract through which neighbourhood learning couples with a metric learner.

An estimator offers ``metric_problem(training)``; the object it returns is a
:class:`MetricProblem`. docs/contract.md shows a new metric learner in full.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lnml.core.monitor import Monitor
from lnml.core.pairs import Pattern
from lnml.core.solution import Solution


class MetricProblem(Protocol):
    """What a metric learner asks of a metric, in the form LNML needs (paper, eq. 2).

    The objective is the sum over target pairs of the pair cost F_ij(M), plus a
    term that does not depend on the pairs.

    Attributes
    ----------
    fixed_row_sizes : bool
        Whether the form holds only if every row has the same number of targets.
    cost_grows_with_distance : bool
        Whether, within a row, F_ij never falls when D_ij grows. The nearest
        partners are then the cheapest, and no other pair needs a cost.

    Examples
    --------
    The problem of LMNN is one:

    >>> import numpy as np
    >>> from lnml import LMNN
    >>> from lnml.contract import TrainingSet, nearest_neighborhoods
    >>> from lnml.kernels import get_kernels
    >>> X, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> training = TrainingSet.from_labels(X, codes, get_kernels())
    >>> problem = LMNN().metric_problem(training)
    >>> problem.fixed_row_sizes, problem.cost_grows_with_distance
    (False, True)
    >>> targets = nearest_neighborhoods(training, np.eye(1), 1)
    >>> problem.solve(targets, np.eye(1), tol=1e-3).gap <= 1e-3
    True
    """

    fixed_row_sizes: bool
    cost_grows_with_distance: bool

    def pair_costs(self, components: np.ndarray, pairs: Pattern) -> Any:
        """F_ij for every pair of a pattern of same-class pairs, at a metric."""

    def free_term(self, components: np.ndarray) -> float:
        """Return the part of the objective that does not depend on the neighbourhoods."""

    def solve(
        self,
        targets: Any,
        components: np.ndarray,
        *,
        tol: float,
        state: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Return a metric no worse than ``components`` for the given neighbourhoods."""
