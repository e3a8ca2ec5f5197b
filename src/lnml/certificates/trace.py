"""The trace penalty, t tr M, which LMNN, MCML and MMC may have beside their pull.

Coordinates W of such a proof are a basis of all metrics of some columns, and rows do not differ
in the others. Let M be a metric and M' = W A W^T its part in these columns: it has the same
distances as M, no larger trace, and tr M' = <W^T W, A>.
"""

from __future__ import annotations

import numpy as np

from lnml.certificates.arithmetic import LONG, gamma
from lnml.certificates.matrices import Matrix
from lnml.certificates.problem import Problem, demand


def trace_weight(problem: Problem) -> LONG:
    """Return t; zero if there is no penalty."""
    return LONG(problem.certificate.parameters.get("trace_weight", 0.0))


def trace_value(problem: Problem, components: np.ndarray) -> LONG:
    """T tr M of components (r, d), up to gamma(size of components)."""
    return LONG(trace_weight(problem) * (components.astype(LONG) ** 2).sum())


def with_trace(problem: Problem, scatter: Matrix, factor: LONG | int = 1) -> Matrix:
    """Return a matrix in coordinates W plus factor * t W^T W."""
    weight = LONG(factor * trace_weight(problem))
    if weight == 0:
        return scatter
    W = problem.certificate.coordinates.astype(LONG)
    # Other directions would have to be projected on, and rounding could pass for a trace.
    demand(
        np.count_nonzero(W.any(axis=1)) == W.shape[1],
        "with a trace penalty, coordinates may leave out nothing but columns",
    )
    sizes = np.abs(W).T @ np.abs(W)
    return scatter.plus(Matrix(weight * (W.T @ W), weight * gamma(2 * len(W) + 8) * sizes))
