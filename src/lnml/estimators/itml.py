"""Information-theoretic metric learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from lnml.core.chance import own_generator
from lnml.core.checks import check_between, check_integer, refuse_overflow
from lnml.core.monitor import Monitor
from lnml.core.warn import warn_user
from lnml.estimators.base import Learned, MetricEstimator
from lnml.estimators.metric import check_pairs
from lnml.estimators.validation import (
    check_bounds,
    check_pair_labels,
    check_percentiles,
    check_training_data,
    refuse_unknown,
    set_features,
)
from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import host_array
from lnml.objectives.logdet import Constraints, LogDetObjective
from lnml.solvers.path import solve

# Pairs of rows whose distances are looked at for the percentiles: all of them up
# to this number, else so many at random (their rank is then right to 0.2 points).
POPULATION = 20_000
# Numbers held at a time while their distances are computed: few enough for a cache.
BLOCK = 2**17
# A squared distance below this share of its bound counts as zero.
IDENTICAL = 1e-200


class ITML(MetricEstimator):
    """Information-theoretic metric learning, solved to a proved optimality gap.

    The metric nearest to the Euclidean one (in LogDet divergence) that keeps
    pairs of the same class within a distance and pairs of different classes
    beyond another, with slack: minimises
    ``LogDet(M, I) + gamma * sum_i LogDet(xi_i, b_i)`` over metrics M and slack
    bounds xi, where ``v_i^T M v_i <= xi_i`` and b_i = u for similar pairs,
    ``v_i^T M v_i >= xi_i`` and b_i = l for dissimilar ones. All bounds are on
    *squared* distances. The problem is convex and the result positive definite.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack: large values insist on the bounds, small ones on
        the Euclidean metric.
    n_constraints : int, default=None
        Number of pairs that ``fit`` draws; 20 c^2 for c classes by default.
    percentiles : (float, float), default=(5, 95)
        Percentiles of the squared Euclidean distances that u and l are set to.
        In ``fit`` these are the distances of all pairs of two different training
        rows (20,000 pairs at random where there are more), in ``fit_pairs`` those
        of the given pairs; pairs of identical points are not counted.
    bounds : (float, float), default=None
        u and l, squared distances; replaces ``percentiles``.
    max_iter : int, default=1000
        Most iterations: up to ten sweeps of projections over the constraints, then
        Newton steps.
    tol : float, default=1e-3
        Largest relative duality gap, (objective - bound) / max(objective, floor).
    callback : callable, default=None
        Called after every iteration with a :class:`lnml.core.monitor.FitState`;
        return True to stop with the best metric so far.
    verbose : int, default=0
        Show a live line on stderr.
    random_state : int, RandomState or None, default=None
        Seed of the pairs that ``fit`` draws; None draws others each time. NumPy's global
        generator is neither used nor changed.
    device : str or torch.device, default=None
        As for the other estimators. The metric is always solved on the host (the CPU); of
        a tensor only the pairs that are drawn leave its device.

    Attributes
    ----------
    components_ : ndarray of shape (d, d)
        L, the symmetric square root of M; the learned squared distance is the
        sum of squares of L (a - b).
    bounds_ : tuple of float
        u and l.
    n_constraints_ : int
        Constraints used: what was drawn or given, less pairs of identical points.
    pairs_ : ndarray of int, shape (m, 2)
        The two rows of each constraint (``fit`` only).
    objective_ : float
        The objective above at ``components_`` as returned and the best slack.
    duality_gap_ : float
        Proved, for these pairs and bounds: no metric has an objective below
        ``objective_ - duality_gap_ * max(objective_, floor)``, where the floor is
        a millionth of gamma for each constraint (docs/itml.md).
    certificate_ : Certificate or None
        The proof, for :func:`lnml.certificates.verify`; see ``certificate``. None after
        ``fit_pairs``.
    converged_ : bool
        Whether the gap is at most ``tol``.
    history_ : list of dict
        What the solver saw, one record per iteration: objective, bound, gap, n_active
        (constraints not kept), seconds.
    n_iter_ : int
        Number of iterations.
    classes_ : ndarray
        Class labels; absent after ``fit_pairs``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Davis, Kulis, Jain, Sra, Dhillon. Information-theoretic metric learning.
    ICML 2007.

    Examples
    --------
    >>> from lnml import ITML
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = ITML(random_state=0).fit(wine.data, wine.target)
    >>> model.n_constraints_, model.duality_gap_ <= 1e-3
    (180, True)
    """

    not_coupled_because = (
        "its objective has no target pairs: it bounds the distances of random pairs of rows"
    )

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        n_constraints: int | None = None,
        percentiles: Any = (5, 95),
        bounds: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.gamma = gamma
        self.n_constraints = n_constraints
        self.percentiles = percentiles
        self.bounds = bounds
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Learn the metric from random pairs of rows.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n, d)
            Training data, float32 or float64 (others become float64).
        y : array-like of shape (n,)
            Class labels: pairs of the same class are similar.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X and y")

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            rows = check_training_data(self, X, y)
            rng = own_generator(self.random_state)
            n_rows, n_pairs = rows.X.shape[0], 20 * rows.labels.size**2
            if self.n_constraints is not None:
                n_pairs = check_integer("n_constraints", self.n_constraints, 1)
            first, second = _random_pairs(n_rows, n_pairs, rng)
            bounds = self._bounds(rows.X, *_population(n_rows, rng))
            similar = rows.codes[first] == rows.codes[second]
            ends = host_array(rows.X[first]), host_array(rows.X[second])
            learned = self._learn(*ends, similar, bounds, monitor, {"classes_": rows.classes})
            return _with_pairs(learned, np.stack([first, second], axis=1), n_rows)

        return self._fit(X, learn)

    def fit_pairs(self, pairs: Any, labels: Any) -> Self:
        """Learn the metric from given pairs of points.

        Parameters
        ----------
        pairs : array-like of shape (m, 2, d)
            Pairs of points.
        labels : array-like of shape (m,)
            1 for a similar pair, -1 for a dissimilar one.

        Returns
        -------
        self
        """

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            ends = check_pairs(host_array(pairs))
            refuse_overflow("pairs", ends)
            similar = check_pair_labels(host_array(labels), len(ends)) == 1
            points = np.concatenate([ends[:, 0], ends[:, 1]])
            rows = np.arange(len(ends))
            bounds = self._bounds(points, rows, rows + len(ends))
            set_features(self, ends.shape[2])
            return self._learn(ends[:, 0], ends[:, 1], similar, bounds, monitor, {})

        return self._fit(pairs, learn)

    def _bounds(self, X: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        """Return u and l: given, or percentiles over pairs of rows that differ."""
        if self.bounds is not None:
            return check_bounds(self.bounds)
        percentiles = check_percentiles(self.percentiles)
        distances = _squared_distances(X, first, second)
        distances = distances[distances > 0.0]
        if distances.size == 0:
            raise ValueError(
                "all pairs are of identical points, so their distances have no percentiles: "
                "give bounds=(u, l) or other data"
            )
        low, high = np.percentile(distances, percentiles)
        return float(low), float(high)

    def _learn(
        self,
        first: np.ndarray,
        second: np.ndarray,
        similar: np.ndarray,
        bounds: tuple[float, float],
        monitor: Monitor,
        attributes: dict[str, Any],
    ) -> Learned:
        """Solve for pairs of points (m x d each)."""
        gamma = check_between("gamma", self.gamma, 0.0, np.inf)
        tol = check_between("tol", self.tol, 0.0, 1.0)
        max_iter = check_integer("max_iter", self.max_iter, 1)
        constraints, distinct = _constraints(first, second, similar, bounds)
        solution = solve(
            LogDetObjective(constraints, gamma, first.dtype),
            None,
            np.eye(first.shape[1]),
            tol=tol,
            max_iter=max_iter,
            monitor=monitor,
        )
        count = constraints.similar.size
        attributes = {**attributes, "bounds_": bounds, "n_constraints_": count}
        assert solution.proof is not None
        solution.proof.duals["bounds"] = np.where(constraints.similar, *bounds)
        solution.proof.duals["pairs"] = np.flatnonzero(distinct)
        return Learned(solution, first.dtype, attributes)


def _with_pairs(learned: Learned, pairs: np.ndarray, n_rows: int) -> Learned:
    """Return what was learned, its constraints named by pairs of rows."""
    assert learned.solution.proof is not None
    duals = learned.solution.proof.duals
    duals["pairs"] = pairs[duals["pairs"]]
    attributes = {**learned.attributes, "pairs_": duals["pairs"]}
    return replace(learned, attributes=attributes, order=np.arange(n_rows))


def _random_pairs(
    n_rows: int, n_pairs: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of two different rows, all equally likely, drawn independently."""
    first = rng.randint(n_rows, size=n_pairs)
    return first, (first + rng.randint(1, n_rows, size=n_pairs)) % n_rows


def _population(n_rows: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of rows, or a random sample if there are too many."""
    if n_rows * (n_rows - 1) // 2 <= POPULATION:
        first, second = np.triu_indices(n_rows, k=1)
        return first, second
    return _random_pairs(n_rows, POPULATION, rng)


def _squared_distances(X: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances of pairs of rows, from differences in float64."""
    distances = np.empty(first.size)
    step = max(1, BLOCK // X.shape[1])
    for low in range(0, first.size, step):
        part = slice(low, low + step)
        ends = host_array(X[first[part]]), host_array(X[second[part]])
        difference = np.subtract(*ends, dtype=np.float64)
        distances[part] = np.einsum("ij,ij->i", difference, difference)
    return distances


def _constraints(
    first: np.ndarray, second: np.ndarray, similar: np.ndarray, bounds: tuple[float, float]
) -> tuple[Constraints, np.ndarray]:
    """Constraints in units of their bounds, without pairs of identical points; which are kept.

    Every metric keeps those of similar pairs. No metric keeps those of dissimilar
    pairs, and a warning counts them.
    """
    vectors = np.subtract(first, second, dtype=np.float64)
    vectors /= np.sqrt(np.where(similar, *bounds))[:, None]
    distinct = np.square(vectors).sum(axis=1) > IDENTICAL
    n_impossible = int(np.count_nonzero(~distinct & ~similar))
    if not distinct.any():
        raise ValueError(
            "all constraints are on pairs of identical points, whose distance no metric "
            "changes: raise n_constraints or give other pairs"
        )
    if n_impossible:
        warn_user(
            f"{n_impossible} of {similar.size} constraints ask for a distance between identical "
            f"points of different classes, which no metric gives: they are left out"
        )
    return Constraints(vectors[distinct], similar[distinct]), distinct
