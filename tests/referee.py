"""Judge what a fit claims about itself: its objective, its bound, and its warnings.

The objective is computed again by ``references``; ``attained`` looks for metrics below the bound.
Of the library only the public estimators are used.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
from adversary import PATTERNS
from attained import witnesses
from references import LONG, LogDet, of_rows

import lnml

LEARNERS = {
    "LMNN": lambda: lnml.LMNN(),
    "LNML": lambda: lnml.LNML(lnml.LMNN(), k_min=1, k_av=2, k_max=3),
    "MCML": lambda: lnml.MCML(),
    "MMC": lambda: lnml.MMC(),
    "MMC, diagonal": lambda: lnml.MMC(diagonal=True),
    "SupportVectorMetric": lambda: lnml.SupportVectorMetric(),
    "RelativeComparisons": lambda: lnml.RelativeComparisons(),
    "NCA": lambda: lnml.NCA(),
    "ITML": lambda: lnml.ITML(),
}
# Learners whose problem does not depend on the columns, so that a fit in others is a witness.
INVARIANT = ("LMNN", "LNML", "MCML", "MMC")
# How far objective_ may be off, relative to the objective or the floor of the gap.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
# How far the sum of roots of MMC may be off one.
ROOT_SUM = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
# A bound may exceed a metric's objective by this share, and by the allowance of both.
SLACK = 1e-12
# Warnings of the data, not of the proof.
OF_THE_DATA = ("classes too small", "identical points of different classes")


@dataclass
class Verdict:
    """What the referee found about one fit.

    Attributes
    ----------
    learner, pattern, name : str
        What was fitted to what.
    refusal : str
        The message of the ValueError, if the fit raised one.
    gap, tol : float
        The gap that is claimed, and the one that was asked for; the gap of NCA is None.
    error : float
        Relative error of the objective.
    warned : bool
        Whether a warning said that something is not proved.
    violations : list of str
        What is wrong.
    """

    learner: str
    pattern: str
    name: str
    refusal: str = ""
    gap: float | None = None
    tol: float = 0.0
    error: float = 0.0
    warned: bool = False
    violations: list = field(default_factory=list)

    def __str__(self):
        return f"{self.learner} on {self.name}: " + "; ".join(self.violations)


def learners_of(number, count):
    """The learners that a problem is given to: over the problems of a pattern they take turns."""
    names = list(LEARNERS)
    turn = number // len(PATTERNS)
    return [names[(turn * count + number + i) % len(names)] for i in range(count)]


def fit(name, X, y, rng, penalty=0.0):
    """Fit a learner; return the model, the objective, and messages of its warnings.

    ITML does not say which pairs it drew, so the referee draws them. A trace penalty is set for
    learners that have one.
    """
    estimator = LEARNERS[name]()
    if penalty:
        (estimator.estimator if name == "LNML" else estimator).set_params(trace_penalty=penalty)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name == "ITML":
            pairs, similar = _pairs(X, y, rng)
            model = estimator.fit_pairs(pairs, np.where(similar, 1, -1))
        else:
            model = estimator.fit(X, y)
    if name == "ITML":
        vectors = pairs[:, 0].astype(LONG) - pairs[:, 1].astype(LONG)
        objective = LogDet(vectors, similar, model.bounds_, model.gamma)
    else:
        objective = of_rows(model, name, X, y)
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return model, objective, told


def _pairs(X, y, rng, count=80):
    """Random pairs of different rows (m x 2 x d), and whether they are of one class."""
    first = rng.integers(0, len(y), count)
    second = (first + rng.integers(1, len(y), count)) % len(y)
    return np.stack([X[first], X[second]], axis=1), y[first] == y[second]


def judge(problem, learner, *, n_maps=2, refit=False, given=None, penalty=0.0):
    """Fit a learner to a problem and check all that it claims.

    Parameters
    ----------
    problem : adversary.Problem
        The data.
    learner : str
        A key of LEARNERS.
    n_maps : int
        In how many changes of columns metrics are searched for.
    refit : bool
        Whether the library's own fit in changed columns is a witness, too.
    given : callable, optional
        From the fitted model, its objective and the data to other witnesses.
    penalty : float
        ``trace_penalty`` of the learner.
    """
    rng = np.random.default_rng([problem.number, list(LEARNERS).index(learner)])
    verdict = Verdict(learner, problem.pattern, problem.name)
    X, y = problem.X, problem.y
    try:
        model, objective, told = fit(learner, X, y, rng, *([penalty] if penalty else []))
    except ValueError as error:
        verdict.refusal = str(error)
        return verdict
    verdict.gap, verdict.tol = model.duality_gap_, model.tol
    verdict.warned = any(not any(text in message for text in OF_THE_DATA) for message in told)
    slack = _check_objective(verdict, model, objective, X.dtype)
    if learner == "NCA":
        return verdict
    _check_gap(verdict)
    fits = [_refit(learner, model, y)] if refit and learner in INVARIANT else []
    known = given(model, objective, X, y) if given else []
    found = witnesses(objective, X, model.components_, rng, n_maps=n_maps, fitted=fits, given=known)
    _check_bound(verdict, model, objective, found, slack)
    return verdict


def claimed_bound(model, objective):
    """The bound that objective_ and duality_gap_ stand for."""
    value = LONG(model.objective_)
    # The gap is a double: rounded once, it says no more than that.
    gap = LONG(model.duality_gap_) * (1 + 4 * LONG(np.finfo(np.float64).eps))
    return value - gap * max(value, LONG(objective.floor))


def objective_error(model, objective):
    """Relative error of objective_ at components_, and that error as a share of what is allowed."""
    exact = objective.at(model.components_)
    dtype = np.asarray(model.components_).dtype
    unit = max(abs(exact.value), LONG(objective.floor))
    error = abs(LONG(model.objective_) - exact.value)
    allowed = TOLERANCE[dtype] * unit + exact.allowance
    if model.objective_ == 0.0:
        allowed += objective.vanishing(model.components_)
    if not error <= allowed:
        share = np.inf
    else:
        share = float(error / allowed) if allowed > 0 else 0.0
    if error <= exact.allowance or (share <= 1.0 and model.objective_ == 0.0):
        return 0.0, share
    return float(error / unit) if unit > 0 else np.inf, share


def _check_objective(verdict, model, objective, dtype):
    """Compare the objective; return how far a bound may be off because of it."""
    if np.asarray(model.components_).dtype != dtype:
        verdict.violations.append("components_ are of another type than the data")
    if not (np.isfinite(model.components_).all() and np.isfinite(model.objective_)):
        verdict.error = np.inf
        verdict.violations.append("components_ or objective_ are not finite")
        return 0.0
    verdict.error, share = objective_error(model, objective)
    exact = objective.at(model.components_)
    if hasattr(objective, "roots") and exact.value > 0:
        roots = objective.roots(((objective.V @ model.components_.astype(LONG).T) ** 2).sum(axis=1))
        # Components are rounded, and a root by no more than their rounding times |v|.
        rounding = np.finfo(dtype).eps * np.sqrt(
            ((np.abs(objective.V) @ np.abs(model.components_).T) ** 2).sum(axis=1)
        )
        if abs(roots - 1) > ROOT_SUM[np.dtype(dtype)] + rounding[objective.apart].sum():
            verdict.violations.append(f"the roots sum to {float(roots):.9g} instead of one")
    if share <= 1.0:
        return abs(LONG(model.objective_) - exact.value)
    verdict.violations.append(
        f"objective_ {model.objective_:.9g} is {float(exact.value):.9g} at components_, "
        f"a relative error of {verdict.error:.1e}"
    )
    return 0.0


def _check_gap(verdict):
    """A gap is a share, and a large one is told."""
    if verdict.gap is None or not 0.0 <= verdict.gap <= 1.0:
        verdict.violations.append(f"duality_gap_ is {verdict.gap}")
        verdict.gap = np.inf
    elif verdict.gap > verdict.tol and not verdict.warned:
        verdict.violations.append(f"duality_gap_ {verdict.gap:.1e} exceeds tol without a warning")


def _check_bound(verdict, model, objective, found, slack):
    """No metric may have an objective below the bound; the worst witness is named."""
    bound, worst = claimed_bound(model, objective), (LONG(0), "", LONG(0))
    for name, L in found:
        if not np.isfinite(L).all():
            continue
        exact = objective.at(L)
        if not np.isfinite(exact.value):
            continue
        excess = bound - exact.value * (1 + LONG(SLACK)) - exact.allowance - slack
        worst = max(worst, (excess, name, exact.value), key=lambda entry: entry[0])
    if worst[0] > 0:
        verdict.violations.append(
            f"the bound {float(bound):.9g} exceeds {float(worst[2]):.9g}, attained by {worst[1]}"
        )


def _refit(learner, model, y):
    """A fit of the library to other columns, with the same target neighbours."""

    def components(Z):
        estimator = lnml.LMNN() if learner == "LNML" else LEARNERS[learner]()
        targets = getattr(model, "target_neighbors_", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return estimator.fit(Z, y, target_neighbors=targets).components_
            except ValueError:
                return None

    return components
