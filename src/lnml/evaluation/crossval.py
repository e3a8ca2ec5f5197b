"""Compare several metrics on the same folds by the nearest-neighbour rule.

Classifiers that give no distance may take part, for reference.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import delayed

from lnml.core.checks import ColumnError, check_integer
from lnml.evaluation.checks import check_depth, check_methods, check_rows, check_voters
from lnml.evaluation.peak import peak_memory
from lnml.evaluation.problem import FoldData, Problem, stratified_folds, stratified_sample
from lnml.evaluation.results import Comparison, FoldResult
from lnml.evaluation.retrieval import ACCURACY, Score, read_score, score_rows
from lnml.evaluation.spread import Spread
from lnml.evaluation.store import FoldStore, StoreError
from lnml.evaluation.warmup import warm_up
from lnml.evaluation.workers import end_with, make_parallel
from lnml.learning.knn import predict_nearest
from lnml.learning.votes import cross_validated_votes

Methods = Mapping[str, Any]
Voters = int | Literal["auto"]
# Called with the numbers of finished and of all (fold, method) pairs.
Progress = Callable[[int, int], None]


class Rule(NamedTuple):
    """How methods are judged: neighbours that vote, seed of what is drawn, and the score."""

    k: Voters
    seed: int
    score: Score


def compare(
    X: Any,
    y: Any,
    methods: Methods,
    *,
    name: str = "data",
    n_folds: int = 10,
    seed: int = 0,
    k: Voters = 1,
    score: str = ACCURACY,
    scaled: Sequence[str] = (),
    n_jobs: int | None = None,
) -> Comparison:
    """Cross-validate metric learners on the same folds.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Data.
    y : array-like of shape (n,)
        Class labels.
    methods : mapping of str to estimator or None
        Metric learners by name; None is the Euclidean metric. An estimator that has a
        ``predict`` but no ``transform`` is a classifier. It takes part for reference.
    name : str, default="data"
        Name of the data.
    n_folds : int, default=10
        Folds, stratified by class and shuffled.
    seed : int, default=0
        Seed of the shuffle.
    k : int or "auto", default=1
        Neighbours that vote. With "auto" each method chooses them in each fold from the training
        rows, by three inner folds with a fit each (:mod:`lnml.learning.votes`). A fitted method
        that has an ``n_neighbors_`` uses that.
    score : {'accuracy', 'recall@K', 'map@r', 'r-precision'}, default='accuracy'
        What metrics are judged by beside accuracy: a score of retrieval, where the test rows of a
        fold ask and its training rows are found (:mod:`lnml.evaluation.retrieval`). ``mean_score``
        of the comparison has it. Classifiers have none.
    scaled : sequence of str, default=()
        Methods that see columns of mean 0 and variance 1, as of the training part of a fold.
    n_jobs : int, default=None
        Folds that run at the same time, as in joblib.

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> wine = load_dataset("wine")
    >>> found = compare(wine.data, wine.target, {"Euclidean": None, "LMNN": LMNN()}, n_folds=3)
    >>> found.accuracy("LMNN") > found.accuracy("Euclidean")
    True
    """
    check_methods(methods, scaled)
    judged = read_score(score)
    features, labels = check_rows(X, y, methods)
    splits = stratified_folds(labels, check_integer("n_folds", n_folds, 2), seed)
    fewest = min(len(train) for train, _ in splits)
    check_voters(k, fewest)
    check_depth(judged, fewest)
    problem = Problem(
        name,
        features,
        labels,
        splits,
        prepare_for=dict.fromkeys(scaled, StandardScaler()),
    )
    with tempfile.TemporaryDirectory() as folder:
        store = FoldStore(Path(folder))
        return run_problem(problem, methods, store, k=k, seed=seed, score=judged, n_jobs=n_jobs)


def run_problem(
    problem: Problem,
    methods: Methods,
    store: FoldStore,
    *,
    k: Voters = 1,
    seed: int = 0,
    score: Score = read_score(ACCURACY),  # noqa: B008 - it cannot be changed
    n_jobs: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Comparison:
    """Run the folds that the store does not hold yet, in parallel, and return all results.

    Each result is stored as soon as it is known. With a Dask ``client``, fits run on the workers
    of its cluster, and not in processes of this machine.
    """
    rule = Rule(k, seed, score)
    _check_stored(problem, methods, store)
    todo = [
        fold
        for fold in range(len(problem.splits))
        if not all(store.has(fold, method) for method in methods)
    ]
    total = len(problem.splits) * len(methods)
    with _reporting(store, total, progress) if progress else nullcontext():
        if client is not None:
            _run_on_cluster(client, problem, todo, methods, store, rule)
        else:
            # A single fold runs in this process, where its fits can use all threads.
            computed = make_parallel(1 if len(todo) == 1 else n_jobs)(
                delayed(_run_fold)(problem, fold, methods, store, rule, os.getpid())
                for fold in todo
            )
            for result in chain.from_iterable(computed):
                if not store.has(result.fold, result.method):
                    store.write(result)
    results = [store.read(f, m) for m in methods for f in range(len(problem.splits))]
    return Comparison(problem.summary(), tuple(results))


def _check_stored(problem: Problem, methods: Methods, store: FoldStore) -> None:
    """Refuse a damaged result before the work, not after it."""
    for fold, (_, test) in enumerate(problem.splits):
        for method in methods:
            if store.has(fold, method) and not np.array_equal(store.read(fold, method).test, test):
                raise StoreError(
                    f"fold {fold} of {method} in {store.folder} has other test rows: delete its "
                    f"file to compute it again"
                )


def _run_fold(
    problem: Problem,
    fold: int,
    methods: Methods,
    store: FoldStore,
    rule: Rule,
    parent: int,
) -> list[FoldResult]:
    """Run the methods that the store lacks; a worker on another machine does not see its folder."""
    end_with(parent)
    data = FoldData(problem, fold)
    found = []
    for name, method in methods.items():
        if not store.has(fold, name):
            found.append(_run_method(name, method, data, fold, rule))
            if store.folder.is_dir():
                store.write(found[-1])
    return found


def _run_on_cluster(
    client: Any,
    problem: Problem,
    folds: Sequence[int],
    methods: Methods,
    store: FoldStore,
    rule: Rule,
) -> None:
    """Let workers run each method in each fold; results are written here."""
    tasks = {
        f"fold {fold} of {name}": (fold, name, method, rule)
        for fold in folds
        for name, method in methods.items()
        if not store.has(fold, name)
    }
    with closing(Spread(client, _run_one, problem, tasks).results()) as results:
        for result in results:
            store.write(result)


def _run_one(problem: Problem, fold: int, name: str, method: Any, rule: Rule) -> FoldResult:
    return _run_method(name, method, FoldData(problem, fold), fold, rule)


def _run_method(name: str, method: Any, data: FoldData, fold: int, rule: Rule) -> FoldResult:
    inside, outside = data.matrices(name)
    known, wanted = data.problem.labels[data.train], data.problem.labels[data.test]

    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        if method is None:
            return None
        rows = stratified_sample(y, data.problem.learned_rows(name, y.size), rule.seed)
        with warnings.catch_warnings():
            # Such fits are counted through converged_ and reported with the results.
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                return clone(method).fit(X[rows], y[rows])
            except ColumnError as error:
                raise error.named(data.columns(name).names) from error

    warm_up(method, inside)
    start = time.perf_counter()
    with peak_memory() as peak:
        model = fit(inside, known)
    seconds = time.perf_counter() - start
    values = None
    if _is_classifier(model):
        voters, predicted = None, model.predict(outside)
    else:
        voters = _voters(rule.k, model)
        voters = voters or cross_validated_votes(fit, inside, known, seed=rule.seed)
        if model is not None:
            inside, outside = model.transform(inside), model.transform(outside)
        predicted = predict_nearest(inside, known, outside, voters)
        if rule.score.name != ACCURACY:
            values = score_rows(rule.score, inside, known, outside, wanted)
    return FoldResult(
        method=name,
        fold=fold,
        test=data.test,
        correct=predicted == wanted,
        converged=bool(getattr(model, "converged_", True)),
        seconds=seconds,
        peak_mb=peak.megabytes,
        gap=getattr(model, "duality_gap_", None),
        chosen=getattr(model, "best_params_", {}),
        reason=getattr(model, "reason_", ""),
        k=voters,
        classifier=voters is None,
        score=rule.score.name,
        values=values,
        predicted=np.searchsorted(np.unique(data.problem.labels), predicted),
        n_learned=None if method is None else data.problem.learned_rows(name, known.size),
    )


def _is_classifier(model: Any) -> bool:
    return hasattr(model, "predict") and not hasattr(model, "transform")


def _voters(k: Voters, model: Any) -> int | None:
    """Return how many neighbours vote; None if that is still to be chosen."""
    if k != "auto":
        return k
    own = getattr(model, "n_neighbors_", None)
    return None if own is None else int(own)


@contextmanager
def _reporting(store: FoldStore, total: int, progress: Progress) -> Iterator[None]:
    """Report twice a second how many results there are; the workers write them by themselves."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            progress(store.count(), total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        progress(store.count(), total)
