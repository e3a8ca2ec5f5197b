"""The methods that can be compared, by name, with the settings of the paper."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from lnml.errors import unknown_name
from lnml.estimators.itml import ITML
from lnml.estimators.lmnn import LMNN
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.mcml import MCML
from lnml.estimators.mmc import MMC
from lnml.estimators.nca import NCA
from lnml.estimators.relative_comparisons import RelativeComparisons
from lnml.estimators.support_vector import SupportVectorMetric
from lnml.evaluation.nearest import predict_nearest
from lnml.metric import MahalanobisMetric

# The paper chooses ITML's slack from these by two-fold cross-validation.
ITML_SLACKS = tuple(10.0**i for i in range(-4, 5))
# Candidates are compared after so many sweeps: large slacks take hundreds of iterations to prove
# what ten have found (docs/itml.md). The chosen one is solved to its optimum.
ITML_CANDIDATE_ITERATIONS = 10


class TunedMetric(MahalanobisMetric):
    """A metric learner whose parameters are chosen by inner cross-validation.

    Each point of the grid is fitted on the training part of each inner fold and
    judged by the accuracy of the nearest-neighbour rule on the rest; the first of
    the best is fitted on all rows.

    Parameters
    ----------
    estimator : estimator
        The metric learner.
    grid : dict of str to sequence
        Parameters to try.
    cv : int, default=2
        Inner folds, stratified and shuffled.
    random_state : int, default=0
        Seed of the shuffle.
    candidate_params : dict, default=None
        Parameters of the candidates alone, such as a smaller ``max_iter``.

    Attributes
    ----------
    best_params_ : dict
        The parameters chosen.
    best_estimator_ : estimator
        Fitted on all rows.
    components_, converged_
        Those of ``best_estimator_``.
    """

    def __init__(
        self,
        estimator: Any,
        grid: Mapping[str, Sequence[Any]],
        *,
        cv: int = 2,
        random_state: int = 0,
        candidate_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.random_state = random_state
        self.candidate_params = candidate_params

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedMetric:
        """Choose the parameters, then learn the metric from all rows."""
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.random_state)
        splits = list(folds.split(X, y))
        candidates = list(ParameterGrid(dict(self.grid)))
        scores = [self._score(parameters, X, y, splits) for parameters in candidates]
        self.best_params_ = candidates[int(np.argmax(scores))]
        self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y)
        self.components_ = self.best_estimator_.components_
        self.converged_ = self.best_estimator_.converged_
        self.duality_gap_ = self.best_estimator_.duality_gap_
        self.n_features_in_ = X.shape[1]
        return self

    def _score(
        self,
        parameters: dict[str, Any],
        X: np.ndarray,
        y: np.ndarray,
        splits: list[tuple[np.ndarray, np.ndarray]],
    ) -> float:
        candidate = clone(self.estimator).set_params(**(self.candidate_params or {}))
        candidate.set_params(**parameters)
        right = 0
        for train, test in splits:
            with warnings.catch_warnings():
                # A candidate need not be finished to be judged; the final fit warns.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = clone(candidate).fit(X[train], y[train])
            inside, outside = model.transform(X[train]), model.transform(X[test])
            right += int((predict_nearest(inside, y[train], outside) == y[test]).sum())
        return right / len(y)


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    name : str
        As tables show it.
    summary : str
        One line for a list of methods.
    make : callable
        Gives an unfitted estimator for a seed; None for the Euclidean metric.
    """

    name: str
    summary: str
    make: Callable[[int], Any]


METHODS: dict[str, Method] = {
    "mcml": Method("MCML", "maximally collapsing metric learning", lambda _: MCML()),
    "ln-mcml": Method(
        "LN-MCML", "MCML with learned neighbourhoods, 3 each", lambda _: LNML(MCML())
    ),
    "lmnn": Method("LMNN", "large margin nearest neighbours", lambda _: LMNN()),
    "ln-lmnn": Method(
        "LN-LMNN", "LMNN with learned neighbourhoods, 3 each", lambda _: LNML(LMNN())
    ),
    "ln-lmnn-cv": Method(
        "LN-LMNN (CV)",
        "the same, sizes chosen by cross-validation",
        lambda seed: LNMLCV(LMNN(), random_state=seed),
    ),
    "euclidean": Method("Euclidean", "no learning", lambda _: None),
    "nca": Method("NCA", "neighbourhood components analysis", lambda _: NCA()),
    "itml": Method(
        "ITML",
        "information-theoretic metric learning, slack chosen by cross-validation",
        lambda seed: TunedMetric(
            ITML(random_state=seed),
            {"gamma": ITML_SLACKS},
            random_state=seed,
            candidate_params={"max_iter": ITML_CANDIDATE_ITERATIONS},
        ),
    ),
    "ln-lmnn-cv-rounds": Method(
        "LN-LMNN (CV, rounds)",
        "LN-LMNN, sizes and number of rounds chosen by cross-validation",
        lambda seed: LNMLCV(LMNN(), choose_rounds=True, random_state=seed),
    ),
    "ln-mcml-cv": Method(
        "LN-MCML (CV)",
        "LN-MCML, number of neighbours chosen by cross-validation",
        lambda seed: LNMLCV(MCML(), random_state=seed),
    ),
    "mmc": Method("MMC", "Xing et al.", lambda _: MMC()),
    "support-vector": Method("SupportVector", "Nguyen & Guo", lambda _: SupportVectorMetric()),
    "relative": Method(
        "RelativeComparisons", "Schultz & Joachims, diagonal", lambda _: RelativeComparisons()
    ),
}

# In the order of the paper's Table 2.
PAPER_METHODS = ("mcml", "ln-mcml", "lmnn", "ln-lmnn", "ln-lmnn-cv", "euclidean", "nca", "itml")


def check_methods(keys: Iterable[str]) -> list[str]:
    """Return the keys of known methods, each once, or say which is unknown."""
    keys = list(dict.fromkeys(keys))
    for key in keys:
        if key not in METHODS:
            raise unknown_name("method", key, METHODS)
    if not keys:
        raise ValueError(f"no method to compare: name some of {', '.join(METHODS)}")
    return keys


def methods_by_name(keys: Iterable[str], seed: int, device: str | None = None) -> dict[str, Any]:
    """Return unfitted estimators by display name; None for the Euclidean metric."""
    made = {METHODS[key].name: METHODS[key].make(seed) for key in check_methods(keys)}
    return {name: on_device(method, device) for name, method in made.items()}


def on_device(estimator: Any, device: str | None) -> Any:
    """Let an estimator, and those within it, fit on a device; None leaves it as it is.

    Examples
    --------
    >>> from lnml import LMNN, LNML
    >>> on_device(LNML(LMNN()), "cuda").device
    'cuda'
    """
    if estimator is not None and device is not None:
        names = [name for name in estimator.get_params() if name.split("__")[-1] == "device"]
        estimator.set_params(**dict.fromkeys(names, device))
    return estimator
