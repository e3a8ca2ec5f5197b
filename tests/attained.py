"""Metrics whose objective no honest bound can exceed, found without the library's solvers.

A lower bound over all metrics lies below the objective of every metric. So each metric found here,
by whatever means, is a witness. Searches run in float64 in columns that suit the data; what they
find is mapped back to the user's columns, and judged there, in ``numpy.longdouble``. Only linear
changes of the columns are used: a metric in such columns is a metric in the user's.
"""

import numpy as np
from references import LONG
from scipy.optimize import minimize

SCALES = (0.5, 0.8, 0.95, 0.99, 1.01, 1.05, 1.25, 2.0)
STEPS = 80
# Widths over which a search rounds kinks, one after the other.
SMOOTHINGS = (0.3, 0.03, 0.003, 0.0)
# A column whose residual is this many roundings of the column itself is a copy of others.
ROUNDINGS = 2.0**-48


def column_maps(X, *, diagonal=False):
    """Linear changes of the columns (d x e, longdouble) to columns of unit spread, by name.

    ``spread`` divides by standard deviations, ``middle`` by the spread of the middle half of the
    rows, which codes and outliers do not move. ``residuals`` and ``middle residuals`` also take
    out of every column what those before it explain.
    """
    X = np.asarray(X).astype(LONG)
    X = X - X.mean(axis=0)
    low, middle, high = np.percentile(X.astype(float), (25, 50, 75), axis=0)
    spread = X.std(axis=0)
    half = np.where(high > low, high - low, spread)
    usual = (np.abs(X - middle) <= 10 * half).all(axis=1)
    if usual.sum() < X.shape[1] + 3:
        usual[:] = True
    maps = {"spread": _divide(spread), "middle": _divide(half)}
    if not diagonal:
        maps["residuals"] = _residuals(X)
        maps["middle residuals"] = _residuals(X[usual])
    return {name: matrix for name, matrix in maps.items() if matrix.shape[1]}


def _divide(spread):
    """Columns divided by their spread, without those that have none."""
    kept = np.flatnonzero(spread > 0)
    return np.eye(spread.size, dtype=LONG)[:, kept] / spread[kept]


def _residuals(X):
    """Every column less its projection on those before it, at unit spread: Gram-Schmidt, twice."""
    X = X - X.mean(axis=0)
    d, columns, found = X.shape[1], [], []
    for k in range(d):
        vector, coefficients = X[:, k].copy(), np.eye(d, dtype=LONG)[k]
        size = np.sqrt((vector**2).sum())
        for _ in range(2):
            for unit, known in zip(columns, found, strict=True):
                part = vector @ unit
                vector, coefficients = vector - part * unit, coefficients - part * known
        length = np.sqrt((vector**2).sum())
        if length > ROUNDINGS * size:
            columns.append(vector / length)
            found.append(coefficients / length)
    return np.sqrt(LONG(len(X))) * np.array(found).reshape(-1, d).T


class Mapped:
    """An objective in float64 and in other columns, as a function of components in these.

    Parameters
    ----------
    objective : references.Objective
        The objective in the user's columns.
    matrix : ndarray of shape (d, e)
        The change of columns.
    """

    def __init__(self, objective, matrix):
        self.objective = objective
        self.matrix = matrix
        self.T = matrix.astype(float)
        self.V = (objective.V @ matrix).astype(float)
        self.smoothing = 0.0

    def __call__(self, flat):
        """Value and gradient; a diagonal metric is given by its diagonal."""
        e = self.V.shape[1]
        L = np.diag(flat) if self.objective.diagonal else flat.reshape(-1, e)
        rows = self.V @ L.T
        value, slopes = self.objective.terms((rows**2).sum(axis=1), self.smoothing)
        free, in_user = self.objective.free(L @ self.T.T)
        G = (slopes[:, None] * self.V).T @ self.V + self.T.T @ in_user @ self.T
        gradient = 2.0 * L @ G
        gradient = np.diag(gradient) if self.objective.diagonal else gradient.ravel()
        total = float(value + free)
        if not (np.isfinite(total) and np.isfinite(gradient).all()):
            return 1e300, np.zeros(flat.size)
        return total, np.asarray(gradient, dtype=float)

    def start(self, components=None):
        """The components (d columns) in the new columns, or the identity of these."""
        e = self.T.shape[1]
        L = np.eye(e)
        if components is not None:
            back = np.linalg.pinv(self.T)
            L = np.asarray(components, dtype=float) @ back.T
            L = np.linalg.qr(L, mode="r") if len(L) > e else np.vstack([L, np.zeros((e, e))])[:e]
        return np.linalg.norm(L, axis=0) if self.objective.diagonal else L.ravel()

    def minimum(self, start, steps=STEPS):
        """Components in the user's columns that a few steps of L-BFGS reach."""
        found = best_multiple(self, start)
        for smoothing in SMOOTHINGS if self.objective.kinks else (0.0, 0.0):
            self.smoothing = smoothing
            found = minimize(self, found, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
        L = np.diag(found) if self.objective.diagonal else found.reshape(-1, self.V.shape[1])
        return L.astype(LONG) @ self.matrix.T


def best_multiple(function, start):
    """The best multiple of a start, over twelve orders of magnitude."""
    multiples = 10.0 ** np.arange(-6.0, 6.1, 0.5)
    values = [function(start * multiple)[0] for multiple in multiples]
    return start * multiples[int(np.argmin(values))]


def witnesses(objective, X, components, rng, *, n_maps=2, fitted=(), given=()):
    """Yield names and metrics (components in longdouble) that a bound must not exceed.

    Parameters
    ----------
    objective : references.Objective
        What was minimised.
    X : ndarray of shape (n, d)
        The data, for changes of columns.
    components : ndarray
        What the fit returned.
    rng : Generator
        For perturbations, and for which changes of columns are tried.
    n_maps : int
        How many changes of columns a search runs in.
    fitted : callables
        Each fits a metric in changed columns (longdouble rows to components there), or gives None.
    given : list of (name, components)
        Metrics that are known otherwise.
    """
    L = np.asarray(components).astype(LONG)
    yield "the fit", L
    for scale in SCALES:
        yield f"{scale} M", np.sqrt(LONG(scale)) * L
    yield from given
    maps = column_maps(X, diagonal=objective.diagonal)
    if objective.regular:
        maps = {name: T for name, T in maps.items() if T.shape[0] == T.shape[1]}
        maps = maps or {"no map": np.eye(L.shape[1], dtype=LONG)}
    chosen = rng.permutation(list(maps))[:n_maps]
    best, least = L, objective.at(L).value
    for name in chosen:
        task = Mapped(objective, maps[name])
        for begin in (None, components):
            metric = task.minimum(task.start(begin))
            value = objective.at(metric).value
            best, least = (metric, value) if value < least else (best, least)
            yield f"search in {name}", metric
    matrix = maps[chosen[0]]
    for fit in fitted:
        metric = fit((np.asarray(X).astype(LONG) @ matrix).astype(float))
        if metric is not None:
            yield f"fit in {chosen[0]}", np.asarray(metric).astype(LONG) @ matrix.T
    for _ in range(3):
        yield "perturbed", _perturbed(objective, best, matrix, rng)


def _perturbed(objective, L, matrix, rng):
    """A metric with a little more along a random direction, of those that are allowed."""
    e, d = matrix.shape[1], L.shape[1]
    share = 10.0 ** rng.uniform(-5, -1)
    if objective.regular:
        return L @ (np.eye(d) + share * rng.standard_normal((d, d)))
    typical = np.sqrt(((objective.V @ L.T) ** 2).sum(axis=1).mean())
    if objective.diagonal:
        more = ((share * typical * rng.random(e)) ** 2 * matrix**2).sum(axis=1)
        return np.diag(np.sqrt((L**2).sum(axis=0) + more))
    return np.vstack([L, share * typical * (rng.standard_normal((1, e)) @ matrix.T)])
