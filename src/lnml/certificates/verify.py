"""Check a certificate from nothing but the certificate and the data.

All sums are computed again, in long double, with bounds of their rounding errors. Nothing is
imported from the rest of the library, so that a mistake there cannot hide here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lnml.certificates.arithmetic import LONG
from lnml.certificates.certificate import Certificate
from lnml.certificates.coordinates import check_coordinates
from lnml.certificates.logdet import itml_bound, itml_objective
from lnml.certificates.pairs import mcml_bound, mcml_objective, mmc_bound, mmc_objective
from lnml.certificates.problem import NotProvedError, Problem, Value, demand
from lnml.certificates.triplets import (
    frobenius_bound,
    frobenius_objective,
    lmnn_bound,
    lmnn_objective,
    weighted_basis_bound,
)

Objective = Callable[[Problem], Value]
Bound = Callable[[Problem], LONG]

FAMILIES: dict[str, tuple[Objective, Bound]] = {
    "lmnn": (lmnn_objective, lmnn_bound),
    "frobenius": (frobenius_objective, frobenius_bound),
    "weighted_basis": (frobenius_objective, weighted_basis_bound),
    "mcml": (mcml_objective, mcml_bound),
    "mmc": (mmc_objective, mmc_bound),
    "itml": (itml_objective, itml_bound),
}
# Methods whose bound is about metrics in the coordinates W, and those that may use a slack.
IN_COORDINATES = ("lmnn", "frobenius", "mcml", "mmc")
WITH_SLACK = ("lmnn", "frobenius", "mcml")

# Bound and gap may be stated in double, with this relative rounding.
STATED = 1e-12
# A gap is relative to the objective, or to this share of the objective without learning.
FLOOR = 1e-6
# A limit must be so many times the trace of the components.
LARGE = 1e3


class Verification(NamedTuple):
    """What :func:`verify` found.

    Attributes
    ----------
    objective, objective_error : float
        Objective of the components, and by how much it can be off. NaN where not computed.
    bound : float
        What is proved: no metric has a smaller objective. NaN where nothing is proved.
    gap : float
        Largest possible (objective - bound), relative to the objective or its floor.
    holds : bool
        Whether all that the certificate states was proved.
    reason : str
        The first thing that failed, in words; empty if the certificate holds.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> certificate = LMNN().fit(iris.data, iris.target).certificate_
    >>> found = verify(certificate, iris.data, iris.target)
    >>> found.holds, found.reason, found.bound <= found.objective
    (True, '', True)
    >>> verify(certificate, iris.data[::-1], iris.target).holds
    False
    """

    objective: float
    objective_error: float
    bound: float
    gap: float
    holds: bool
    reason: str


def verify(certificate: Certificate, X: Any, y: Any) -> Verification:
    """Check that a certificate proves what it states, for these data.

    Parameters
    ----------
    certificate : Certificate
        The claim and its proof.
    X : array-like of shape (n, d)
        The rows that the metric was learned from, in their order.
    y : array-like of shape (n,)
        Their classes.

    Returns
    -------
    verification : Verification

    Raises
    ------
    ValueError
        If certificate and data do not fit together.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = LMNN().fit(wine.data, wine.target)
    >>> found = verify(model.certificate_, wine.data, wine.target)
    >>> found.holds, found.gap <= 1e-3
    (True, True)
    """
    rows, codes = _checked_data(certificate, X, y)
    numbers = dict.fromkeys(("objective", "objective_error", "bound", "gap"), float("nan"))
    reason = ""
    try:
        _prove(certificate, rows, codes, numbers)
    except NotProvedError as error:
        reason = str(error)
    return Verification(**numbers, holds=not reason, reason=reason)


def _prove(
    certificate: Certificate, rows: np.ndarray, codes: np.ndarray, numbers: dict[str, float]
) -> None:
    """Go through the proof step by step, and note the numbers on the way."""
    objective_of, bound_of = FAMILIES[certificate.method]
    problem = Problem(certificate, rows, codes)
    value, error, trivial = objective_of(problem)
    # Numbers are stated and returned in double.
    error += np.finfo(np.float64).eps * value
    numbers |= {"objective": float(value), "objective_error": float(error)}
    allowed = error + certificate.objective_error
    demand(
        abs(value - LONG(certificate.objective)) <= allowed,
        f"the components have the objective {float(value):.15g}, not "
        f"{certificate.objective:.15g} as stated",
    )
    proved = LONG(0)
    # No objective is negative: a bound of zero needs no proof.
    if certificate.bound > 0.0:
        if certificate.method in IN_COORDINATES:
            problem.left_out = check_coordinates(certificate, rows)
        proved = np.maximum(bound_of(problem), 0)
        if certificate.slack > 0.0:
            _check_limit(problem)
            lowered = LONG(certificate.slack) * LONG(certificate.limit)
            proved = np.maximum(proved - lowered * (1 + LONG(STATED)), 0)
    numbers["bound"] = float(proved)
    if numbers["bound"] > proved:
        numbers["bound"] = float(np.nextafter(numbers["bound"], 0.0))
    floor = np.maximum(value, FLOOR * trivial)
    excess = np.maximum(value + error - proved, 0)
    numbers["gap"] = float(excess / floor) if floor > 0 else float(excess)
    demand(
        certificate.bound <= proved * (1 + LONG(STATED)),
        f"only the bound {float(proved):.15g} is proved, not {certificate.bound:.15g} as stated",
    )
    demand(
        certificate.bound <= (value + error) * (1 + LONG(STATED)),
        f"the bound {certificate.bound:.15g} is above the objective of the components: they are "
        f"not among the metrics that it is about",
    )
    # A gap counts the error of the objective. Else any objective could be stated, with a large one.
    demand(
        certificate.gap >= 1.0
        or floor <= 0
        or certificate.objective_error <= (certificate.gap + LONG(1e-6)) * floor,
        f"the stated error {certificate.objective_error:.3g} of the objective is larger than the "
        f"stated gap {certificate.gap:.3g} allows",
    )
    # The floor may be that of the stated objective. Beyond that, no stated error excuses a
    # smaller gap.
    stated = floor * (1 + LONG(1e-6)) + np.minimum(LONG(certificate.objective_error), floor)
    demand(
        value - LONG(certificate.bound) <= certificate.gap * stated + error + STATED * value,
        f"the stated gap {certificate.gap:.3g} is smaller than the difference of objective and "
        f"bound",
    )


def _check_limit(problem: Problem) -> None:
    """Refuse a limit that shuts out metrics of an ordinary size: almost nothing is proved then.

    It must be well above the trace of the components, and let rows be one apart along each of
    the coordinates.
    """
    certificate, W = problem.certificate, problem.certificate.coordinates
    lengths = np.linalg.norm(W, axis=0)
    inside = np.linalg.lstsq(W / lengths, certificate.components.T, rcond=None)[0]
    trace = float(((inside / lengths[:, None]).astype(LONG) ** 2).sum())
    spread = np.ptp(problem.images(W.T).high, axis=0)
    unit = (1 / spread[spread > 0] ** 2).max(initial=0)
    demand(
        certificate.limit >= np.maximum(LARGE * trace, unit),
        f"metrics beyond a trace of {certificate.limit:.3g} are not covered, and that is too small "
        f"a limit: the components have {trace:.3g}",
    )


def _checked_data(certificate: Certificate, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = np.asarray(X), np.asarray(y)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf" or not np.isfinite(rows).all():
        raise ValueError("X must be a matrix of finite numbers, one row for each example")
    d = certificate.components.shape[1]
    if rows.shape[1] != d:
        raise ValueError(f"X has {rows.shape[1]} columns, but the certificate is about {d}")
    if labels.shape != (len(rows),) or len(rows) < 2:
        raise ValueError(f"y must have one label for each of the {len(rows)} rows, two at least")
    if certificate.slack > 0.0 and certificate.method not in WITH_SLACK:
        raise ValueError(f"the proof of {certificate.method} has no slack")
    # Fits are to double; what is given in float32 stays as it is.
    return rows.astype(np.float64), np.unique(labels, return_inverse=True)[1].reshape(-1)
