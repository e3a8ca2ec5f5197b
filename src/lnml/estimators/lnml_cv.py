"""LNML with neighbourhood sizes chosen by inner cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.parallel import Parallel, delayed

from lnml.core.checks import check_between, check_integer
from lnml.core.monitor import Monitor
from lnml.core.warn import warn_user
from lnml.estimators.base import Learned, MetricLearner, solution_of
from lnml.estimators.coupled import CoupledEstimator, coupled, coupled_base, coupled_device
from lnml.estimators.cv_results import CandidateFit, search_results
from lnml.estimators.cv_search import FoldSearch
from lnml.estimators.lnml import LNML
from lnml.estimators.validation import (
    TrainingRows,
    check_learnable,
    check_training_data,
    refuse_unknown,
)
from lnml.kernels.protocol import Kernels
from lnml.learning.assignment import Sizes, check_sizes

# docs/lnml_cv.md explains how these follow from the paper.
FLEXIBLE_GRID = ((3, 3, 3), (1, 3, 4), (1, 3, 5), (2, 3, 4), (2, 3, 5))
FLEXIBLE_FOLDS = 2
FIXED_GRID = tuple((k, k, k) for k in (3, 5, 7, 10, 20, 30))
FIXED_FOLDS = 5

# Fitted attributes of the refitted LNML that the search offers as its own.
DELEGATED = (
    "target_neighbors_",
    "n_target_neighbors_",
    "target_costs_",
    "estimator_",
    "classes_",
)


class LNMLCV(CoupledEstimator):
    """LNML that chooses its neighbourhood sizes by cross-validation.

    Every candidate of ``grid`` is fitted on the training part of every fold and
    judged by nearest-neighbour classification of the rest. LNML with the best
    sizes is then fitted on all rows. Candidates of a fold share their data and
    the ranking of partners at the start, which makes this cheaper than a grid
    search around :class:`LNML`. Each starts from the same metric, unless
    ``warm_grid`` is set (docs/lnml_cv.md).

    Parameters
    ----------
    estimator : metric learner, default=None
        As in :class:`LNML`: LMNN (the default), MCML or another.
    grid : sequence of (k_min, k_av, k_max), default=None
        Candidates. By default (3, 3, 3), (1, 3, 4), (1, 3, 5), (2, 3, 4) and
        (2, 3, 5). For a base estimator that needs equal sizes (MCML) they are
        (k, k, k) for k = 3, 5, 7, 10, 20 and 30.
    cv : int, splitter or iterable of (train, test), default=None
        Inner folds. A number makes that many, stratified and shuffled with
        ``random_state``. By default 2, or 5 for a base estimator that needs
        equal sizes.
    scoring : str or callable, default=None
        Any scorer of scikit-learn for a classifier. By default the accuracy.
    scoring_neighbors : int, default=1
        Neighbours that vote in the classifier whose score is compared. Not a
        neighbourhood size of LNML.
    n_jobs : int, default=None
        Processes over the folds, as in joblib.
    max_rounds : int, default=100
        Most rounds of every fit.
    cv_rounds : int, default=None
        Most rounds of the fits of the inner cross-validation. Few are often enough
        to tell candidates apart. None means ``max_rounds``.
    choose_rounds : bool, default=False
        Also choose after how many rounds to stop: candidates are scored after
        every round, and the final fit ends after as many as scored best. On some
        small data late rounds lower the objective and the accuracy
        (docs/lnml_cv.md).
    tol : float, default=1e-3
        Tolerance of the last metric of the final fit.
    cv_tol : float, default=1e-2
        Tolerance of the fits of the inner cross-validation, unless ``tol`` is larger.
        Candidates can be told apart long before a metric is exact.
    warm_grid : bool, default=False
        Start all candidates but the first from the metric that the first one
        found in the same fold, and the final fit from the metric that the best
        one found in the first fold. This is faster, but it leads to other
        neighbourhoods, which are much worse on some data (docs/lnml_cv.md). With
        False, and ``cv_tol`` equal to ``tol``, every fit is the same as that of
        :class:`LNML` alone.
    callback : callable, default=None
        Called with a :class:`lnml.core.monitor.FitState` after every inner fold, and after every
        round of the final fit. Return True to choose from the folds so far, or to end the final
        fit with the metric so far.
    verbose : int, default=0
        Show a live line on stderr for every fit.
    random_state : int or RandomState, default=0
        Seed of the folds, where ``cv`` is a number.
    device : str, torch.device or None, default=None
        Where the fit runs: 'cpu', 'cuda', 'cuda:1', ... (a GPU needs ``lnml[torch]``).
        None uses the device of the base estimator. If that is None, too, a tensor is
        fitted on its own device and other data on the CPU (docs/gpu.md).

    Attributes
    ----------
    cv_results_ : dict
        As in :class:`sklearn.model_selection.GridSearchCV`: ``params``,
        ``param_k_min``, ..., ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_fit_time``, ....
    best_index_ : int
        The best candidate; the first of the grid among equals.
    best_params_ : dict
        Its ``k_min``, ``k_av`` and ``k_max``. With ``choose_rounds`` also the
        ``max_rounds`` chosen; this is the given value if the last round was best.
    best_score_ : float
        Its mean score.
    best_estimator_ : LNML
        LNML with these sizes, fitted on all rows.
    n_splits_ : int
        Number of inner folds.
    components_, target_neighbors_, n_target_neighbors_, target_costs_, objective_, \
duality_gap_, certificate_, converged_, history_, n_iter_, estimator_, classes_
        Those of ``best_estimator_``, see :class:`LNML`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from lnml import LNMLCV
    >>> from lnml.datasets import load_dataset
    >>> wine = load_dataset("wine")
    >>> model = LNMLCV(grid=[(3, 3, 3), (1, 3, 5)]).fit(wine.data, wine.target)
    >>> sorted(model.best_params_)
    ['k_av', 'k_max', 'k_min']
    >>> model.cv_results_["mean_test_score"].shape
    (2,)
    """

    not_on_cluster_because = "its folds are cut from rows on this machine"

    def __init__(
        self,
        estimator: Any = None,
        *,
        grid: Any = None,
        cv: Any = None,
        scoring: Any = None,
        scoring_neighbors: int = 1,
        n_jobs: int | None = None,
        max_rounds: int = 100,
        cv_rounds: int | None = None,
        choose_rounds: bool = False,
        tol: float = 1e-3,
        cv_tol: float = 1e-2,
        warm_grid: bool = False,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
        device: Any = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.scoring = scoring
        self.scoring_neighbors = scoring_neighbors
        self.n_jobs = n_jobs
        self.max_rounds = max_rounds
        self.cv_rounds = cv_rounds
        self.choose_rounds = choose_rounds
        self.tol = tol
        self.cv_tol = cv_tol
        self.warm_grid = warm_grid
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, **unknown: Any) -> Self:
        """Choose the sizes and learn metric and neighbourhoods with them.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data, float32 or float64 (others become float64).
        y : array-like of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        refuse_unknown(type(self).__name__, unknown, "X and y")
        base = coupled_base(self.estimator)
        device = coupled_device(self.device, base, X)

        def learn(kernels: Kernels, monitor: Monitor) -> Learned:
            rows = check_training_data(self, X, y)
            grid, fixed = self._candidates(base, rows, kernels)
            splits = self._splits(rows, fixed)
            search = self._search(base, device, grid, min(len(train) for train, _ in splits))
            folds = self._folds(search, rows, splits)
            chosen = self._choice(grid, folds)
            start = folds[0][chosen["best_index_"]].components
            model = self._refit(X, y, chosen["best_params_"], start)
            attributes = {name: getattr(model, name) for name in DELEGATED}
            attributes |= {**chosen, "best_estimator_": model, "n_splits_": len(folds)}
            solution = replace(solution_of(model), converged=self._met_its_rule(model))
            # The final fit has warned already, if there was a reason.
            return Learned(
                solution,
                solution.components.dtype,
                attributes,
                limit="",
                certificate=model.certificate_,
            )

        return self._fit(X, learn)

    def _folds(
        self,
        search: FoldSearch,
        rows: TrainingRows,
        splits: list[tuple[np.ndarray, np.ndarray]],
    ) -> list[list[CandidateFit]]:
        """Run the inner folds; report each, and end early if the callback says so."""
        labels = rows.labels[rows.codes]
        jobs = [
            delayed(search.run)(rows.X, labels, number, *split)
            for number, split in enumerate(splits)
        ]
        # As many at a time as there are processes, so that a callback can stop in between.
        step = effective_n_jobs(self.n_jobs) if self.callback is not None else len(jobs)
        # Every fit has a live line of its own, so this one has none.
        monitor = Monitor(type(self).__name__, callback=self.callback)
        folds: list[list[CandidateFit]] = []
        for lo in range(0, len(jobs), step):
            for fits in Parallel(n_jobs=self.n_jobs)(jobs[lo : lo + step]):
                folds.append(fits)
                scores = [max(fit.scores) for fit in fits]
                best = fits[int(np.argmax(scores))]
                record = {"fold": len(folds) - 1, "scores": scores}
                if monitor.step(record, best.components.copy):
                    return folds
        return folds

    def _refit(self, X: Any, y: Any, best_params: dict[str, Any], start: np.ndarray) -> LNML:
        """Fit the best candidate on all rows, from the metric of a fold or from M0."""
        model = LNML(
            self.estimator,
            **{"max_rounds": self.max_rounds, **best_params},
            tol=self.tol,
            callback=self.callback,
            verbose=self.verbose,
            device=self.device,
        )
        with warnings.catch_warnings():
            if model.max_rounds < self.max_rounds:
                # Stopping at this round was chosen. `_met_its_rule` checks the metric.
                warnings.simplefilter("ignore", ConvergenceWarning)
            return model._fit_from(X, y, start if self.warm_grid else None)

    def _met_its_rule(self, model: LNML) -> bool:
        """Whether the final fit converged; after the rounds chosen its last metric decides."""
        if model.converged_ or model._stopped or model.max_rounds == self.max_rounds:
            return model.converged_
        exact = model.duality_gap_ is not None and model.duality_gap_ <= self.tol
        if not exact:
            warn_user(
                f"the metric of the last round, number {model.max_rounds}, did not meet "
                f"tol={self.tol:g}: raise the base estimator's max_iter, or accept a larger tol",
                ConvergenceWarning,
            )
        return exact

    def _candidates(
        self, base: MetricLearner, rows: TrainingRows, kernels: Kernels
    ) -> tuple[list[Sizes], bool]:
        """Return the checked grid, and whether the base estimator needs equal sizes."""
        coupling = coupled(clone(base), rows.X, rows.codes, kernels)
        fixed = coupling.problem(Sizes(*FLEXIBLE_GRID[0])).fixed_row_sizes
        given = self.grid
        if given is None:
            given = FIXED_GRID if fixed else FLEXIBLE_GRID
        try:
            triples = [tuple(candidate) for candidate in given]
        except TypeError:
            triples = []
        if not triples or any(len(triple) != 3 for triple in triples):
            raise ValueError(
                f"grid must be a sequence of (k_min, k_av, k_max), for example "
                f"[(3, 3, 3), (1, 3, 5)]; got {self.grid!r}"
            )
        grid = [check_sizes(*triple) for triple in triples]
        for sizes in grid:
            coupling.check(sizes)
        return grid, fixed

    def _splits(self, rows: TrainingRows, fixed: bool) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the folds; each training part must be fit for learning."""
        cv = self.cv
        if cv is None:
            cv = FIXED_FOLDS if fixed else FLEXIBLE_FOLDS
        if isinstance(cv, Integral):
            n_folds = check_integer("cv", cv, 2)
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
        else:
            splitter = check_cv(cv)
        splits = list(splitter.split(rows.codes, rows.codes))
        for number, (train, _) in enumerate(splits):
            try:
                present, codes = np.unique(rows.codes[train], return_inverse=True)
                check_learnable(rows.X[train], rows.labels[present], codes)
            except ValueError as error:
                raise ValueError(
                    f"the training part of inner fold {number} cannot be used, {error}. "
                    f"Choose other folds (cv), or leave out classes of one or two rows"
                ) from error
        return splits

    def _search(
        self, base: MetricLearner, device: str, grid: list[Sizes], n_rows: int
    ) -> FoldSearch:
        """Check the other parameters and gather what a fold of at least n_rows needs."""
        n_neighbors = check_integer("scoring_neighbors", self.scoring_neighbors, 1)
        if n_neighbors > n_rows:
            raise ValueError(
                f"scoring_neighbors={n_neighbors} exceeds the {n_rows} rows that the training part "
                f"of an inner fold has: choose fewer"
            )
        classifier = KNeighborsClassifier(n_neighbors)
        plain = self.scoring is None and n_neighbors == 1
        return FoldSearch(
            base=base,
            device=device,
            grid=grid,
            classifier=classifier,
            scorer=None if plain else check_scoring(classifier, scoring=self.scoring),
            tol=max(
                check_between("tol", self.tol, 0.0, 1.0),
                check_between("cv_tol", self.cv_tol, 0.0, 1.0),
            ),
            max_rounds=self._most_rounds(),
            every_round=bool(self.choose_rounds),
            warm=self.warm_grid,
            verbose=self.verbose,
        )

    def _most_rounds(self) -> int:
        """Return the most rounds of a candidate's fit."""
        most = check_integer("max_rounds", self.max_rounds, 1)
        return most if self.cv_rounds is None else check_integer("cv_rounds", self.cv_rounds, 1)

    def _choice(self, grid: list[Sizes], folds: Sequence[Sequence[CandidateFit]]) -> dict[str, Any]:
        """Return the results of the search and the best candidate, as fitted attributes."""
        most = self.max_rounds if self.choose_rounds else None
        results = search_results(grid, folds, most)
        best = int(results["rank_test_score"].argmin())
        unfinished = sum(not fit.converged for fold in folds for fit in fold)
        if unfinished and self.cv_rounds is None:
            warn_user(
                f"{unfinished} of {len(grid) * len(folds)} fits of the inner cross-validation "
                f"stopped at max_rounds={self.max_rounds} or before their metric met a tolerance "
                f"of {max(self.tol, self.cv_tol):g}: raise max_rounds or the base estimator's "
                f"max_iter, or accept a larger cv_tol",
                ConvergenceWarning,
            )
        return {
            "cv_results_": results,
            "best_index_": best,
            "best_params_": results["params"][best],
            "best_score_": float(results["mean_test_score"][best]),
        }
