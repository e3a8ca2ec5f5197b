"""The LogDet objective of ITML, with slack: its value, its dual, and the metric between them.

See docs/itml.md, whose notation is used here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from lnml.core.solution import Proof
from lnml.objectives.base import FLOOR_SHARE, Form, Task
from lnml.proofs.logdet import logdet_bound, logdet_objective


class Constraints(NamedTuple):
    """Bounds on squared distances, each in units of its bound.

    Attributes
    ----------
    vectors : ndarray of shape (m, r)
        w = v / sqrt(bound) of every pair, none of them zero.
    similar : ndarray of bool, shape (m,)
        Whether w^T M w should be at most 1; otherwise at least 1.
    """

    vectors: np.ndarray
    similar: np.ndarray


class Metric(NamedTuple):
    """A metric M = F^T F and what it costs.

    Attributes
    ----------
    factor : ndarray of shape (r, r)
        F.
    log_det : float
        log det M.
    images : ndarray of shape (m, r)
        z = F w of every constraint.
    distances : ndarray of shape (m,)
        q = |z|^2.
    violated : ndarray of bool, shape (m,)
        Whether q is on the wrong side of 1.
    objective : float
        The primal objective, with the best slack.
    """

    factor: np.ndarray
    log_det: float
    images: np.ndarray
    distances: np.ndarray
    violated: np.ndarray
    objective: float


class Projected(NamedTuple):
    """Dual variables, the metric that belongs to them, and what they prove.

    Attributes
    ----------
    tightness : ndarray of shape (m,)
        Bound over slack bound: in (0, 1] for similar pairs, >= 1 for others.
    metric : Metric
        The metric that makes the Lagrangian least.
    bound : float
        The dual objective: no metric has a lower objective.
    """

    tightness: np.ndarray
    metric: Metric
    bound: float


class LogDetObjective:
    """LogDet(M, I) plus gamma times the slack of bounds on distances.

    Parameters
    ----------
    constraints : Constraints
        The bounds, in the coordinates of the data.
    gamma : float
        Weight of the slack, above 0.
    dtype : dtype
        Type in which components are returned.
    """

    form = Form.LOGDET

    def __init__(self, constraints: Constraints, gamma: float, dtype: Any = np.float64) -> None:
        self.constraints = constraints
        self.dtype = np.dtype(dtype)
        self.gamma = gamma

    def task(self, targets: None = None) -> LogDetTask:
        """Return the task; there are no targets but the constraints."""
        return LogDetTask(self.constraints, self.gamma)

    def prove(
        self, task: LogDetTask, found: np.ndarray, components: np.ndarray, care: int = 0
    ) -> Proof:
        """Return the objective of components (d x d) as returned, and the proved bound."""
        vectors, similar = self.constraints
        value = logdet_objective(vectors, similar, self.gamma, components)
        tightness = task.dual.tightness
        bound = logdet_bound(
            task.constraints.vectors, tightness, self.gamma, task.dual.metric.factor
        )
        return Proof(
            value.value,
            value.error,
            # LogDet(M, I) and slack are never negative.
            max(bound, 0.0),
            floor=FLOOR_SHARE * task.unit,
            method="itml",
            parameters={"gamma": self.gamma},
            duals={
                "tightness": tightness,
                "similar": similar,
                "factor": task.to_original(task.dual.metric.factor, 0),
            },
        )


class LogDetTask(Task):
    """The objective in the span of the constraint vectors.

    See :func:`lnml.solvers.bregman.solve_logdet`.

    Attributes
    ----------
    constraints : Constraints
        The bounds, in an orthonormal basis of the span where that is smaller.
    gamma : float
        Weight of the slack.
    """

    def __init__(self, constraints: Constraints, gamma: float) -> None:
        span = Span(constraints.vectors)
        super().__init__(span)
        self.constraints = Constraints(span.coordinates, constraints.similar)
        self.gamma = gamma
        # The dual variables that prove the best bound so far.
        self.dual = self.projected(np.ones(constraints.similar.size))
        # A slack of one for each constraint: what a gap is relative to, if all can be met.
        self.unit = gamma * constraints.similar.size

    def metric(self, factor: np.ndarray, log_det: float) -> Metric:
        """Return the metric of a factor, with its distances and its objective."""
        vectors, similar = self.constraints
        images = vectors @ factor.T
        distances = np.square(images).sum(axis=1)
        violated = np.where(similar, distances > 1.0, distances < 1.0)
        prior = max(np.square(factor).sum() - factor.shape[0] - log_det, 0.0)
        slack = _divergence(distances[violated]).sum()
        objective = float(prior + self.gamma * slack)
        return Metric(factor, log_det, images, distances, violated, objective)

    def projected(self, tightness: np.ndarray) -> Projected:
        """Return the metric that belongs to dual variables, and the bound they prove.

        Raises
        ------
        numpy.linalg.LinAlgError
            If no metric belongs to them.
        """
        factor, log_det = _metric_of(self.constraints.vectors, self.gamma * (1.0 - tightness))
        metric = self.metric(factor, log_det)
        kept = np.where(metric.violated, 0.0, _divergence(metric.distances))
        gap = self.gamma * float((_divergence(metric.distances * tightness) - kept).sum())
        found = Projected(tightness, metric, metric.objective - max(gap, 0.0))
        if not hasattr(self, "dual") or found.bound > self.dual.bound:
            self.dual = found
        return found


class Span:
    """Coordinates of constraint vectors in their span, lengths and angles unchanged.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        Constraint vectors.

    Attributes
    ----------
    coordinates : ndarray of shape (m, min(m, d))
        The same vectors.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self.basis: np.ndarray | None = None
        coordinates = vectors
        if vectors.shape[0] < vectors.shape[1]:
            self.basis, coefficients = np.linalg.qr(vectors.T)
            coordinates = coefficients.T
        self.coordinates = np.ascontiguousarray(coordinates)

    def to_conditioned(self, components: np.ndarray) -> np.ndarray:
        """Return the identity: projections start from the Euclidean metric."""
        return np.eye(self.coordinates.shape[1])

    def to_original(self, components: np.ndarray, n_rows: int) -> np.ndarray:
        """Symmetric components (d x d) of a metric that is the identity outside the span."""
        root = symmetric_root(components)
        if self.basis is None:
            return root
        found = self.basis @ (root - np.eye(len(root))) @ self.basis.T
        found.flat[:: found.shape[0] + 1] += 1.0
        return found


def symmetric_root(factor: np.ndarray) -> np.ndarray:
    """Symmetric positive definite square root of F^T F."""
    _, values, rows = np.linalg.svd(factor)
    return np.asarray((rows.T * values) @ rows)


def _metric_of(vectors: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Factor and log-determinant of the inverse of I + sum of c_i w_i w_i^T.

    The positive terms are added by orthogonal transformations and the negative
    ones taken away in coordinates where the rest is the identity: that keeps
    its digits where vectors of very different lengths meet.
    """
    size = vectors.shape[1]
    pulled, pushed = weights > 0.0, weights < 0.0
    rows = np.sqrt(weights[pulled])[:, None] * vectors[pulled]
    # Long rows first: then a Householder QR keeps the digits of the short ones.
    rows = rows[np.argsort(-np.abs(rows).max(axis=1, initial=0.0), kind="stable")]
    upper = np.linalg.qr(np.vstack([rows, np.eye(size)]), mode="r")
    taken = solve_triangular(
        upper, (np.sqrt(-weights[pushed])[:, None] * vectors[pushed]).T, trans="T"
    )
    lower = np.linalg.cholesky(np.eye(size) - taken @ taken.T)
    factor = solve_triangular(lower, solve_triangular(upper, np.eye(size), trans="T"), lower=True)
    log_det = -2.0 * float(np.log(np.abs(np.diag(upper) * np.diag(lower))).sum())
    return factor, log_det


def _divergence(ratio: np.ndarray) -> np.ndarray:
    """LogDet divergence x - 1 - log x of positive numbers from 1, accurate near x = 1."""
    excess = ratio - 1.0
    near = np.abs(excess) < 0.5
    return np.asarray(excess - np.where(near, np.log1p(np.where(near, excess, 0.0)), np.log(ratio)))
