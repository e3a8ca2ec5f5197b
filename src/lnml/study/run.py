"""Run the study, one data set after the other; finished folds are stored and not repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lnml.datasets import MissingDataError
from lnml.evaluation.crossval import Progress, run_problem
from lnml.evaluation.portrait import portray
from lnml.evaluation.problem import FoldData, Problem
from lnml.evaluation.results import Comparison, Portrait
from lnml.evaluation.store import FoldStore
from lnml.registry import find_method, on_device
from lnml.study.problems import ALSO_WITHOUT_PCA, WITHOUT_PCA, StudyData
from lnml.version import __version__


def run_data(
    data: StudyData,
    folder: Path,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> tuple[Comparison, Portrait]:
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
    """
    problem = data.problem(seed)
    if device is not None:
        problem = replace(problem, shares={})
    store = FoldStore(folder / data.name)
    store.open(
        {
            "data": problem.summary().fingerprint,
            "folds": len(problem.splits),
            "seed": seed,
            "n_components": data.n_components,
            "device": device,
            "lnml": __version__,
        }
    )
    methods = {name: on_device(made, device) for name, made in data.methods(seed).items()}
    found = run_problem(problem, methods, store, seed=seed, n_jobs=n_jobs, progress=progress)
    portrait = store.read_portrait()
    if portrait is None:
        portrait = _portrait(problem, seed, device)
        store.write_portrait(portrait)
    found = replace(found, data=replace(found.data, name=data.title))
    return _with_twins(found, data), portrait


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


def _with_twins(found: Comparison, data: StudyData) -> Comparison:
    """List Euclidean and ITML under both names if there is no PCA, since both are the same."""
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
    found : dict of StudyData to (Comparison, Portrait)
        By data set.
    absent : dict of StudyData to str
        Why a data set could not be run.
    """

    found: Mapping[StudyData, tuple[Comparison, Portrait]]
    absent: Mapping[StudyData, str]


def run_study(
    chosen: Sequence[StudyData],
    folder: Path,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    device: str | None = None,
    bar: Callable[[str], AbstractContextManager[Progress | None]] = lambda _: nullcontext(),
) -> StudyResults:
    """Run several data sets in turn; see :func:`run_data`.

    ``bar`` maps the title of a data set to a context, which gives a function that is called with
    the progress.
    """
    found, absent = {}, {}
    for data in chosen:
        try:
            with bar(data.title) as progress:
                found[data] = run_data(
                    data, folder, seed=seed, n_jobs=n_jobs, device=device, progress=progress
                )
        except MissingDataError as error:
            absent[data] = str(error)
    if not found:
        raise MissingDataError("; ".join(absent.values()))
    return StudyResults(found, absent)
