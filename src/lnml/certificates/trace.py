"""The trace penalty, t tr M, which LMNN, MCML and MMC may have beside their pull.

Let U be the directions that are left out and P the projection on what is orthogonal to them.
Rows do not differ along U, so PMP has the same distances as M, and no larger trace. And
tr PMP = <(PW)^T PW, A> for PMP = PW A (PW)^T.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import LONG, gamma
from lnml.certificates.coordinates import without
from lnml.certificates.matrices import Matrix
from lnml.certificates.problem import Problem


def trace_weight(problem: Problem) -> LONG:
    """Return t; zero if there is no penalty."""
    return LONG(problem.certificate.parameters.get("trace_weight", 0.0))


def trace_value(problem: Problem, components: np.ndarray) -> LONG:
    """T tr M of components (r, d), up to gamma(size of components)."""
    return LONG(trace_weight(problem) * (components.astype(LONG) ** 2).sum())


def with_trace(problem: Problem, scatter: Matrix, factor: LONG | int = 1) -> Matrix:
    """Return a matrix in coordinates W plus factor * t (PW)^T PW."""
    weight = LONG(factor * trace_weight(problem))
    if weight == 0:
        return scatter
    W = without(problem.left_out, problem.certificate.coordinates.astype(LONG))
    sizes = np.abs(W).T @ np.abs(W)
    return scatter.plus(Matrix(weight * (W.T @ W), weight * gamma(2 * len(W) + 8) * sizes))
