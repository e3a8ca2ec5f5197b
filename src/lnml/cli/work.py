"""The work of ``compare`` and ``study`` between reading and writing; its imports are slow."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs

from lnml.errors import InputError
from lnml.evaluation.checks import check_depth
from lnml.evaluation.crossval import Progress, run_problem
from lnml.evaluation.explanation import explain
from lnml.evaluation.forecast import forecast
from lnml.evaluation.plan import LARGE, Plan
from lnml.evaluation.portrait import portray
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.problem import Problem, Split
from lnml.evaluation.results import Comparison, Provenance
from lnml.evaluation.retrieval import read_score
from lnml.evaluation.store import FoldStore
from lnml.kernels.cpu.threads import limited_threads, thread_count
from lnml.registry import find_method, methods_by_name
from lnml.tables import Preparation, Table
from lnml.version import __version__

# The fits for the pictures may take as long as those of the comparison, and this long always.
PICTURE_SECONDS = 5.0
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def compare_table(
    table: Table,
    splits: Sequence[Split],
    keys: Sequence[str],
    settings: Mapping[str, Any],
    *,
    folder: Path | None,
    n_jobs: int,
    progress: Progress | None,
    pictures: bool = True,
    client: Any = None,
    plan: Plan | None = None,
    tell: Callable[[str], None] | None = None,
) -> tuple[Comparison, Portrait | None]:
    """Cross-validate methods on a table and fit it once more for the pictures.

    If ``folder`` is given, finished folds are stored there and not repeated. With a Dask
    ``client`` folds run on the workers of its cluster; the pictures are made here. If the table
    is large and folds run here, ``tell`` hears beforehand how long that will take.
    """
    seed, k, device = settings["seed"], settings["k"], settings["device"]
    score = read_score(settings["score"])
    preparation = Preparation(scale=settings["scale"], pca=settings["pca"])
    try:
        smallest = min(len(train) for train, _ in splits)
        if k != "auto" and k > smallest:
            raise ValueError(f"--k {k} is more than the {smallest} training rows of a fold")
        check_depth(score, smallest)
        problem = Problem(
            table.name,
            table.features,
            table.labels,
            splits,
            preparation,
            prepare_for=_own_preparations(keys, preparation),
            digest=table.fingerprint,
            most_rows={} if plan is None else plan.most_rows(map(find_method, keys)),
        )
        methods = methods_by_name(keys, seed, device)
        with tempfile.TemporaryDirectory() if folder is None else nullcontext(folder) as place:
            store = FoldStore(Path(place))
            store.open({"data": table.fingerprint, **settings, "lnml": __version__})
            with warnings.catch_warnings():
                # Warnings, such as those of small classes, would appear in every fold.
                warnings.simplefilter("ignore")
                if tell is not None and client is None and smallest > LARGE:
                    for said in _forecast(problem, methods, store, n_jobs, k, seed):
                        tell(said)
                where: Any = {"n_jobs": n_jobs, "client": client, "progress": progress}
                found = run_problem(problem, methods, store, k=k, seed=seed, score=score, **where)
            portrait = store.read_portrait() if pictures else None
            if portrait is None and pictures:
                matrix = preparation.fit(table.features).transform(table.features)
                limit = max(PICTURE_SECONDS, sum(result.seconds for result in found.results))
                portrait = portray(matrix, table.labels, seed=seed, device=device, seconds=limit)
                explained = explain(problem, found, methods, seed=seed)
                portrait = replace(portrait, explanation=explained)
                store.write_portrait(portrait)
    except ValueError as error:
        # Estimators say in their own words what is wrong with the data.
        raise InputError(str(error)) from error
    return found, portrait


def _forecast(
    problem: Problem,
    methods: Mapping[str, Any],
    store: FoldStore,
    n_jobs: int,
    k: Any,
    seed: int,
) -> list[str]:
    """Say how long the folds will take that the store does not hold; nothing if there are none."""
    folds = range(len(problem.splits))
    missing = {name: sum(not store.has(fold, name) for fold in folds) for name in methods}
    if not any(missing.values()):
        return []
    at_once = min(effective_n_jobs(n_jobs), max(missing.values()))
    with limited_threads(max(1, thread_count() // at_once)):
        return [forecast(problem, methods, missing, n_jobs=at_once, k=k, seed=seed)]


def _own_preparations(keys: Sequence[str], common: Preparation) -> dict[str, Preparation]:
    """Return the preparations of methods that need another scale, by display name."""
    made: dict[str, Preparation] = {}
    found = {}
    for method in map(find_method, keys):
        if method.scale is not None and method.scale != common.scale:
            scaled = Preparation(scale=method.scale, pca=common.pca)
            # Methods that share an object share its matrices, too.
            found[method.name] = made.setdefault(method.scale, scaled)
    return found


def provenance(settings: Mapping[str, Any]) -> Provenance:
    """Return how the results of this command were made."""
    return Provenance(
        # Arguments may hold bytes that are no text.
        command=shlex.join(["lnml", *sys.argv[1:]]).encode(errors="backslashreplace").decode(),
        settings=settings,
        versions={
            "lnml": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
