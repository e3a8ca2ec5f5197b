"""The methods that are compared: one line each.

Estimators are looked up in ``lnml`` when they are made, so a method whose class is missing fails
by itself and does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import lnml
from lnml.registry import find_method

SVM_GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.001, 0.01, 0.1, 1.0]}
EUCLIDEAN = "euclidean"
RECOMMENDED = "auto"


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    name : str
        As tables show it.
    make : callable
        Gives an unfitted estimator for a seed; None for the Euclidean metric.
    cost : float
        Guess of its time relative to LMNN's. The longest work starts first.
    is_classifier : bool
        Whether it predicts by itself. The others give a space, in which the nearest
        training row decides.
    """

    name: str
    make: Callable[[int], Any]
    cost: float = 1.0
    is_classifier: bool = False


def seeded(estimator: Any, seed: int) -> Any:
    """Give an estimator its seed, if it draws random numbers."""
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=seed)
    return estimator


def _svm(seed: int) -> GridSearchCV:
    return GridSearchCV(SVC(), SVM_GRID, cv=StratifiedKFold(3, shuffle=True, random_state=seed))


# A key names result files. Add a line to try a variant, or use --variant.
METHODS: dict[str, Method] = {
    EUCLIDEAN: Method("Euclidean", lambda _: None, 0.01),
    "lmnn": Method("LMNN", lambda _: lnml.LMNN()),
    "nca": Method("NCA", lambda _: lnml.NCA()),
    "ln-lmnn": Method("LN-LMNN", lambda _: lnml.LNML(lnml.LMNN()), 4.0),
    "ln-lmnn-cv": Method("LN-LMNN (CV)", lambda seed: find_method("ln-lmnn-cv").make(seed), 15.0),
    "lmnn-rho": Method("LMNN(rho=0.1)", lambda _: lnml.LMNN(trace_penalty=0.1)),
    "averaged": Method(
        "Averaged LN-LMNN(rho=0.1)",
        lambda seed: seeded(lnml.AveragedMetric(lnml.LNML(lnml.LMNN(trace_penalty=0.1))), seed),
        30.0,
    ),
    "default": Method("AveragedMetric", lambda seed: seeded(lnml.AveragedMetric(), seed), 10.0),
    RECOMMENDED: Method("AutoMetric", lambda seed: seeded(lnml.AutoMetric(), seed), 60.0),
    "svm": Method("RBF SVM", _svm, 1.0, is_classifier=True),
    "forest": Method(
        "Random forest",
        lambda seed: RandomForestClassifier(300, random_state=seed),
        0.5,
        is_classifier=True,
    ),
    "boosting": Method(
        "HistGradientBoosting",
        lambda seed: HistGradientBoostingClassifier(random_state=seed),
        1.0,
        is_classifier=True,
    ),
}


def variant(name: str, expression: str) -> Method:
    """Return a metric written as an expression in names of lnml, as LNML(LMNN(tol=1e-4))."""

    def make(seed: int) -> Any:
        names = {name: getattr(lnml, name) for name in lnml.__all__}
        return seeded(eval(expression, names), seed)

    return Method(name, make, 30.0)


def label(key: str) -> str:
    """Return a method as tables show it."""
    return METHODS[key].name if key in METHODS else key
