"""Objectives of fitted metrics in extended precision, straight from the formulas in docs/.

Nothing here imports the library. An objective is a function of the squared distances of pairs and,
for some methods, of the metric itself. Distances come from differences of the user's rows: the
difference first, then L v, all in ``numpy.longdouble``. Where that is no wider than float64, the
allowance of an evaluation still covers its rounding.
"""

from dataclasses import dataclass

import numpy as np

LONG = np.longdouble
# Half the distance from 1 to the next number of float64.
UNIT = 2.0**-53
# How much of the zero metric's objective a gap is measured against at least (docs/lmnn.md).
FLOOR = 1e-6


@dataclass(frozen=True)
class Evaluation:
    """An objective and what one rounding of every product and summand of it explains."""

    value: float
    allowance: float


def distance_allowance(L, V, lengths):
    """What float64 may lose of D = |L v|^2 when it computes L v in the obvious way.

    Each entry of L v is a sum of d products. Its rounding error is at most e = (d + 2) u times the
    same sum over absolute values, |L| |v|, and the rounding of L to float64 doubles that. So |L v|
    is right to 2 e, and D to 4 |L v| e + 4 e^2.
    """
    e = entry_rounding(L, V, UNIT)
    return 4.0 * lengths * e + 4.0 * e**2


def entry_rounding(L, V, unit):
    """Length of the vector of rounding errors of L v, for every row v of V."""
    absolute = np.abs(V) @ np.abs(L).T
    return (V.shape[1] + 2) * unit * np.sqrt((absolute**2).sum(axis=1))


class Objective:
    """A function f(D, M) that a method minimises over metrics.

    Attributes
    ----------
    V : longdouble array of shape (m, d)
        Differences of the pairs whose distances enter.
    at_zero : float
        The objective that the floor of the gap is a millionth of; None if the gap has no floor.
    diagonal : bool
        Whether only diagonal metrics are allowed.
    regular : bool
        Whether only metrics of full rank are allowed.
    kinks : bool
        Whether the objective has kinks.
    trace : float
        Factor of tr M, where there is a trace penalty (docs/trace_penalty.md).
    """

    diagonal = False
    regular = False
    kinks = False
    at_zero = None
    trace = 0.0

    def __init__(self, V):
        self.V = V

    @property
    def floor(self):
        """Least denominator of the gap."""
        return 0.0 if self.at_zero is None else FLOOR * float(self.at_zero)

    def terms(self, D, smoothing=0.0):
        """Value of the part that depends on distances, and its slopes by them.

        Kinks are rounded over this width, for searches.
        """
        raise NotImplementedError

    def sensitivity(self, D, delta):
        """How much this part may change if every D changes by its delta, and by summation."""
        raise NotImplementedError

    def free(self, L):
        """Value of the part that depends on M alone, and its gradient in M."""
        return self.trace * (L**2).sum(), L.dtype.type(self.trace) * np.eye(L.shape[1])

    def free_allowance(self, L):
        """What rounding may change of that."""
        return (L.size + 4) * UNIT * self.trace * (L**2).sum()

    def at(self, components):
        """Evaluate at components exactly as they are, whatever their type."""
        L = np.asarray(components).astype(LONG)
        D = ((self.V @ L.T) ** 2).sum(axis=1)
        delta = distance_allowance(L, self.V, np.sqrt(D))
        value = self.terms(D)[0] + self.free(L)[0]
        return Evaluation(value, float(self.sensitivity(D, delta) + self.free_allowance(L)))

    def vanishing(self, components):
        """What an objective of zero may become when the components are rounded to their type.

        Rounded components do not make equal what exact ones do: every L v may be off by some
        roundings of the longest.
        """
        components = np.asarray(components)
        L, unit = components.astype(LONG), float(np.finfo(components.dtype).eps) / 2
        D = ((self.V @ L.T) ** 2).sum(axis=1)
        longest = entry_rounding(L, self.V, unit).max()
        return float(self.sensitivity(D, np.full(D.size, 4.0 * longest**2)))


class Hinges(Objective):
    """Weighted pull and push over triplets, plus 1/2 |M|_F^2 for some methods.

    LMNN (docs/lmnn.md) has pull 1 - mu and push mu; SupportVectorMetric and RelativeComparisons
    (docs/frobenius.md) have no pull, push C and the norm.
    """

    kinks = True

    def __init__(self, X, y, P, *, pull, push, norm=False, diagonal=False):
        n = len(y)
        super().__init__(all_differences(X))
        i, j = np.nonzero(P)
        t, l = np.nonzero(y[i][:, None] != y)
        self.targets = i * n + j
        self.near, self.far = self.targets[t], i[t] * n + l
        self.pull, self.push, self.norm, self.diagonal = pull, push, norm, diagonal
        self.at_zero = push * t.size

    def terms(self, D, smoothing=0.0):
        h = np.maximum(1 + D[self.near] - D[self.far], 0)
        alpha = (h > 0) * 1.0 if smoothing == 0.0 else np.minimum(h / smoothing, 1).astype(float)
        hinges = alpha * (h - 0.5 * smoothing * alpha)
        slopes = self.pull * np.bincount(self.targets, minlength=D.size)
        slopes = slopes + self.push * np.bincount(self.near, alpha, minlength=D.size)
        slopes -= self.push * np.bincount(self.far, alpha, minlength=D.size)
        return self.pull * D[self.targets].sum() + self.push * hinges.sum(), slopes

    def sensitivity(self, D, delta):
        h, both = 1 + D[self.near] - D[self.far], delta[self.near] + delta[self.far]
        kinks = h > -both - UNIT
        size = 1 + D[self.near] + D[self.far]
        push = (both + 2 * UNIT * size)[kinks].sum()
        return self.pull * delta[self.targets].sum() + self.push * push

    def free(self, L):
        M = L.T @ L
        return (0.5 * (M**2).sum(), M) if self.norm else super().free(L)

    def free_allowance(self, L):
        M, absolute = L.T @ L, np.abs(L).T @ np.abs(L)
        if not self.norm:
            return super().free_allowance(L)
        return 2 * (len(L) + 2) * UNIT * (np.abs(M) * absolute).sum()


class Divergence(Objective):
    """MCML: the sum over rows of KL(p0 | p), p0 uniform over the targets (docs/mcml.md)."""

    def __init__(self, X, y, P=None):
        super().__init__(all_differences(X))
        self.n = len(y)
        P = same_class(y) if P is None else np.asarray(P) != 0
        self.k = P.sum(axis=1)
        self.p0 = P / np.maximum(self.k, 1)[:, None].astype(LONG)
        self.rows = self.k > 0
        self.log_k = np.log(np.maximum(self.k, 1).astype(LONG))
        self.at_zero = (np.log(LONG(self.n - 1)) - self.log_k)[self.rows].sum()

    def terms(self, D, smoothing=0.0):
        D = D.reshape(self.n, self.n)
        log_z, q = log_softmax(D)
        p0 = self.p0.astype(D.dtype)
        value = ((p0 * D).sum(axis=1) + log_z - self.log_k.astype(D.dtype))[self.rows].sum()
        return value, ((p0 - q) * self.rows[:, None]).ravel()

    def sensitivity(self, D, delta):
        D, delta = D.reshape(self.n, self.n), delta.reshape(self.n, self.n)
        log_z, q = log_softmax(D)
        size = (self.p0 * D).sum(axis=1) + np.abs(log_z) + self.log_k + 1
        first = np.abs(self.p0 - q) * delta + q * np.minimum(delta, 1) * delta
        return (first.sum(axis=1) + 4 * UNIT * size)[self.rows].sum()


class RootRatio(Objective):
    """MMC: D over similar pairs, at the multiple of M whose dissimilar roots sum to one.

    The best multiple of M has the objective <S, M> / (sum of roots)^2 (docs/mmc.md). A trace
    penalty t is like one more similar pair along each axis, of length sqrt(t).
    """

    def __init__(self, X, y, P=None, diagonal=False, trace=0.0):
        V = all_differences(X)
        axes = np.sqrt(LONG(trace)) * np.eye(V.shape[1], dtype=LONG)
        super().__init__(np.vstack([V, axes]))
        similar = (same_class(y) if P is None else np.asarray(P) != 0).ravel()
        self.similar = np.concatenate([similar, np.ones(len(axes), dtype=bool)])
        self.apart = np.concatenate([(y[:, None] != y).ravel(), np.zeros(len(axes), dtype=bool)])
        self.diagonal = diagonal
        # The floor is 1e-12 of the Euclidean objective.
        euclidean = self.terms((self.V**2).sum(axis=1))[0]
        self.at_zero = 1e-6 * euclidean if np.isfinite(euclidean) else None

    def roots(self, D):
        """Sum of the roots."""
        return np.sqrt(D[self.apart]).sum()

    def terms(self, D, smoothing=0.0):
        similar, g = D[self.similar].sum(), self.roots(D)
        if not g > 0:
            return LONG(np.inf), np.zeros(D.size)
        value = similar / g**2
        with np.errstate(divide="ignore"):
            inverse = np.where(self.apart & (D > 0), 1 / np.sqrt(D), 0)
        return value, self.similar / g**2 - value / g * inverse

    def sensitivity(self, D, delta):
        g, tiny = self.roots(D), np.finfo(LONG).tiny
        value = D[self.similar].sum() / g**2
        roots = (delta / np.sqrt(np.maximum(np.maximum(D, delta), tiny)))[self.apart].sum()
        return delta[self.similar].sum() / g**2 + 2 * value / g * roots + 8 * UNIT * value


class Choice(Objective):
    """NCA: the expected number of rows that choose a row of another class (docs/nca.md)."""

    def __init__(self, X, y):
        super().__init__(all_differences(X))
        self.n, self.same = len(y), np.asarray(y)[:, None] == y
        self.at_zero = (~self.same).sum() / (self.n - 1)

    def terms(self, D, smoothing=0.0):
        _, q = log_softmax(D.reshape(self.n, self.n))
        inside = (q * self.same).sum(axis=1)
        slopes = q * np.where(self.same, 1 - inside[:, None], -inside[:, None])
        return (q * ~self.same).sum(), slopes.ravel()

    def sensitivity(self, D, delta):
        q = log_softmax(D.reshape(self.n, self.n))[1]
        rounding = q.ravel() * np.minimum(delta, 1) * delta
        return (np.abs(self.terms(D)[1]) * delta + rounding).sum() + 4 * UNIT * self.n


class LogDet(Objective):
    """ITML: LogDet divergence from the identity and that of violated bounds (docs/itml.md)."""

    regular = True

    def __init__(self, vectors, similar, bounds, gamma):
        vectors = np.asarray(vectors).astype(LONG)
        kept = (vectors != 0).any(axis=1)
        super().__init__(vectors[kept])
        self.similar, self.gamma = np.asarray(similar)[kept], gamma
        self.b = np.where(self.similar, *(LONG(bound) for bound in bounds))
        self.at_zero = gamma * len(self.V)

    def terms(self, D, smoothing=0.0):
        b = self.b.astype(D.dtype)
        with np.errstate(divide="ignore"):
            ratio = np.where((b < D) == self.similar, D / b, 1)
            value = self.gamma * (ratio - np.log(ratio) - 1).sum()
            return value, self.gamma * np.where(ratio == 1, 0, 1 / b - 1 / D)

    def sensitivity(self, D, delta):
        size = D / self.b + np.abs(np.log(D / self.b)) + 1
        return (np.abs(self.terms(D)[1]) * delta).sum() + 4 * UNIT * self.gamma * size.sum()

    def free(self, L):
        inverse, log_det = inverse_and_log_det(L)
        value = (L**2).sum() - 2 * log_det - L.shape[1]
        return value, np.eye(len(L)) - inverse @ inverse.T

    def free_allowance(self, L):
        inverse, log_det = inverse_and_log_det(L)
        spread = (np.abs(inverse) * np.abs(L).T).sum()
        d = len(L)
        return 4 * (d + 2) * UNIT * ((L**2).sum() + spread + np.abs(log_det) + d)


def all_differences(X):
    """x_i - x_j of all ordered pairs, in the order of i * n + j."""
    X = np.asarray(X).astype(LONG)
    return (X[:, None] - X[None]).reshape(-1, X.shape[1])


def same_class(y):
    """Mask of the pairs of two different rows of one class."""
    y = np.asarray(y)
    return (y[:, None] == y) & ~np.eye(y.size, dtype=bool)


def log_softmax(D):
    """Log of the sum over j != i of exp(-D_ij), and the probabilities, zero at j = i."""
    off = np.where(np.eye(len(D), dtype=bool), np.inf, D)
    least = off.min(axis=1, keepdims=True)
    weights = np.exp(least - off)
    total = weights.sum(axis=1, keepdims=True)
    return (np.log(total) - least)[:, 0], weights / total


def inverse_and_log_det(L):
    """Inverse and log |det| of a square matrix by elimination, in its own type."""
    d = len(L)
    A, log_det = np.hstack([L, np.eye(d, dtype=L.dtype)]), L.dtype.type(0)
    for k in range(d):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        if A[pivot, k] == 0:
            return np.full_like(L, np.inf), L.dtype.type(-np.inf)
        A[[k, pivot]] = A[[pivot, k]]
        log_det += np.log(np.abs(A[k, k]))
        A[k] /= A[k, k]
        others = np.arange(d) != k
        A[others] -= A[others, k, None] * A[k]
    return A[:, d:], log_det


def trace_unit(X, weight):
    """2 W v for a weight W: v is the mean variance over the directions in which rows vary.

    Columns are standardised first. Rows do not vary along a direction if the rounding of the
    largest values of its columns explains their spread (docs/lmnn.md).
    """
    rounding = np.finfo(np.asarray(X).dtype).eps / 2
    X = np.asarray(X).astype(LONG)
    X = X[:, (X != X[0]).any(axis=0)]
    deviations = X - X.mean(axis=0)
    spread = np.sqrt((deviations**2).mean(axis=0))
    noise = rounding * np.abs(X).max(axis=0) / spread
    _, sizes, directions = np.linalg.svd((deviations / spread).astype(float), full_matrices=False)
    explained = np.sqrt((directions**2) @ (noise.astype(float) ** 2))
    # The singular values themselves are rounded, in float64.
    least = np.maximum(6 * np.sqrt(len(X)) * explained, 1e-14 * len(X) * sizes[0])
    return 2 * weight * (spread**2).sum() / (sizes > least).sum()


def trace_weight(name, penalty, X, y, P=None):
    """Factor of tr M for a ``trace_penalty``, beside a pull of weight one."""
    P = same_class(y) if P is None else np.asarray(P) != 0
    rows, pairs = (P.sum(axis=1) > 0).sum(), P.sum()
    weight = {"MCML": rows, "NCA": len(y)}.get(name, pairs)
    return penalty * trace_unit(X, weight) if penalty else LONG(0)


def of_rows(model, name, X, y):
    """The objective that a fit to rows and classes claims to have minimised."""
    y = np.asarray(y)
    P = model.target_neighbors_.toarray() if hasattr(model, "target_neighbors_") else None
    base = model.estimator_ if name == "LNML" else model
    trace = trace_weight(name, getattr(base, "trace_penalty", 0.0), X, y, P)
    if name in ("LMNN", "LNML"):
        mu = base.push_weight
        objective = Hinges(X, y, P, pull=1.0 - mu, push=mu)
        objective.trace = (1.0 - mu) * trace
        return objective
    if name in ("SupportVectorMetric", "RelativeComparisons"):
        only_weights = name == "RelativeComparisons"
        return Hinges(X, y, P, pull=0.0, push=model.C, norm=True, diagonal=only_weights)
    if name.startswith("MMC"):
        return RootRatio(X, y, P, diagonal=model.diagonal, trace=trace)
    objective = {"MCML": lambda: Divergence(X, y, P), "NCA": lambda: Choice(X, y)}[name]()
    objective.trace = trace
    return objective
