"""Run the study, one data set after the other; finished folds are stored and not repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lnml.datasets import MissingDataError
from lnml.evaluation.crossval import Progress, run_problem
from lnml.evaluation.explanation import explain
from lnml.evaluation.portrait import portray
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.problem import FoldData, Problem
from lnml.evaluation.results import Comparison
from lnml.evaluation.store import FoldStore
from lnml.registry import find_method, on_device
from lnml.study.problems import ALSO_WITHOUT_PCA, LARGE, SMALL, WITHOUT_PCA, StudyData
from lnml.version import __version__

Found = tuple[Comparison, Portrait | None]


def run_data(
    data: StudyData,
    folder: Path,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Found:
    """Cross-validate the methods of one data set and fit it once more for the pictures.

    Parameters
    ----------
    data : StudyData
        The data set.
    folder : path
        Finished work is stored here, in one folder for each data set.
    seed : int, default=0
        Seed of folds and methods.
    n_jobs : int, default=None
        Folds that run at the same time, as in joblib.
    device : str, default=None
        Where fits run. With a GPU all methods learn from all training rows.
    progress : callable, optional
        Called with the numbers of finished fits and of all fits.
    client : distributed.Client, optional
        Cluster whose workers run the folds.
    """
    problem = data.problem(seed)
    if device is not None:
        problem = replace(problem, shares={})
    store = FoldStore(folder / data.name)
    summary = problem.summary()
    store.open(
        {
            "data": summary.fingerprint,
            "folds": len(problem.splits),
            "n_components": data.n_components,
            **_settings(seed, device),
        }
    )
    store.write_summary(summary)
    methods = {name: on_device(made, device) for name, made in data.methods(seed).items()}
    where: Any = {"n_jobs": n_jobs, "client": client}
    found = run_problem(problem, methods, store, seed=seed, progress=progress, **where)
    portrait = store.read_portrait()
    if portrait is None:
        portrait = replace(
            _portrait(problem, seed, device),
            explanation=explain(problem, found, methods, seed=seed),
        )
        store.write_portrait(portrait)
    return _titled(found, data), portrait


def stored_data(data: StudyData, folder: Path, *, seed: int = 0) -> Found | None:
    """Return what is in the folder about a data set, which need not be there itself.

    None if there is nothing, or if a fold is missing.
    """
    store = FoldStore(folder / data.name)
    summary = store.read_summary()
    if summary is None:
        return None
    wanted = [(f, m) for m in data.methods(seed) for f in range(store.description()["folds"])]
    if not all(store.has(fold, method) for fold, method in wanted):
        return None
    found = Comparison(summary, tuple(store.read(fold, method) for fold, method in wanted))
    return _titled(found, data), store.read_portrait()


def clear_study(folder: Path) -> None:
    """Remove all finished folds of a study, and nothing else."""
    for data in (*SMALL, *LARGE):
        FoldStore(folder / data.name).clear()
    with suppress(OSError):
        folder.rmdir()


def _settings(seed: int, device: str | None) -> dict[str, str | int | None]:
    """Return what all data sets of one report must have in common."""
    return {"seed": seed, "device": device, "lnml": __version__}


def _portrait(problem: Problem, seed: int, device: str | None) -> Portrait:
    """Fit for the pictures to all rows, or to the training rows if there is a default split."""
    if len(problem.splits) == 1:
        rows = problem.splits[0][0]
    else:
        rows = np.arange(len(problem.labels))
    whole = replace(problem, splits=[(rows, rows[:1])])
    X, _ = FoldData(whole, 0).matrices("LN-LMNN")
    found = portray(X, problem.labels[rows], seed=seed, device=device)
    return replace(found, rows=rows[found.rows])


def _titled(found: Comparison, data: StudyData) -> Comparison:
    """Name the data set as tables do.

    Euclidean and ITML get both of their names if there is no PCA, since both are the same.
    """
    found = replace(found, data=replace(found.data, name=data.title))
    if not data.large or data.n_components is not None:
        return found
    twins = [
        replace(result, method=name + WITHOUT_PCA)
        for name in (find_method(key).name for key in ALSO_WITHOUT_PCA)
        if name in found.methods
        for result in found.of(name)
    ]
    return replace(found, results=(*found.results, *twins))


@dataclass(frozen=True)
class StudyResults:
    """What a run of the study found.

    Attributes
    ----------
    found : dict of StudyData to (Comparison, Portrait or None)
        By data set, also those that earlier runs have finished in the same folder.
    absent : dict of StudyData to str
        Why a data set could not be run.
    unfinished : tuple of StudyData
        Data sets of earlier runs that miss some of their folds.
    """

    found: Mapping[StudyData, Found]
    absent: Mapping[StudyData, str]
    unfinished: tuple[StudyData, ...] = ()


def run_study(
    chosen: Sequence[StudyData],
    folder: Path,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    device: str | None = None,
    bar: Callable[[str], AbstractContextManager[Progress | None]] = lambda _: nullcontext(),
    client: Any = None,
) -> StudyResults:
    """Run several data sets in turn; see :func:`run_data`.

    What earlier runs have finished in the folder is part of the results.

    ``bar`` maps the title of a data set to a context, which gives a function that is called with
    the progress.
    """
    known = {data.name: data for data in (*SMALL, *LARGE, *chosen)}
    begun = [d for d in known.values() if FoldStore(folder / d.name).description()]
    for data in begun:
        # The report could not say of each data set how its results were made.
        FoldStore(folder / data.name).check(_settings(seed, device))
    options: Any = {"seed": seed, "n_jobs": n_jobs, "device": device, "client": client}
    found: dict[StudyData, Found] = {}
    absent: dict[StudyData, str] = {}
    for data in chosen:
        try:
            with bar(data.title) as progress:
                found[data] = run_data(data, folder, progress=progress, **options)
        except MissingDataError as error:
            absent[data] = str(error)
    earlier = {data: stored_data(data, folder, seed=seed) for data in begun if data not in found}
    found |= {data: kept for data, kept in earlier.items() if kept is not None}
    if not any(data in found for data in chosen):
        raise MissingDataError("; ".join(absent.values()))
    return StudyResults(
        {data: found[data] for data in known.values() if data in found},
        {data: why for data, why in absent.items() if data not in found},
        tuple(data for data, kept in earlier.items() if kept is None),
    )
