"""``lnml fit``: learn a metric from a table and store it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show, show_notes, show_warnings
from lnml.cli.cluster import Cluster, check_cluster, connected
from lnml.cli.device import check_device
from lnml.cli.methods import NAMES, make_estimator
from lnml.cli.options import (
    Categories,
    Components,
    Data,
    Device,
    Drop,
    DropClass,
    Force,
    Label,
    Quiet,
    ScaleOfMethod,
    Seed,
    read_voters,
)
from lnml.cli.progress import live_line
from lnml.cli.reading import reads_tables
from lnml.core.text import rows_text
from lnml.errors import InputError
from lnml.files import check_output
from lnml.registry import DEFAULT_METHOD, check_methods, find_method

# What is learned if sizes of neighbourhoods are given, and no method.
SIZED_METHOD = "ln-lmnn"


def _size(name: str, meaning: str) -> Any:
    return typer.Option(name, metavar="K", help=meaning, show_default="3")


Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help=f"One of {', '.join(NAMES)}.",
        autocompletion=lambda: list(NAMES),
        show_default=f"{DEFAULT_METHOD}; {SIZED_METHOD} if sizes are given",
    ),
]

EXAMPLES = (
    "lnml fit iris.csv --label species -o iris.model",
    "lnml fit wine.parquet --label cultivar --scale standard --k-min 1 --k-max 5 -o wine.model",
    "lnml fit faces.npz --pca 50 --method lmnn -o faces.model",
    "lnml fit rows/ --label kind --cluster tcp://scheduler:8786 -o big.model   (Parquet files)",
)

StoredVoters = Annotated[
    str | None,
    typer.Option(
        "--k",
        metavar="K|auto",
        help="Neighbours that will vote; auto chooses them by inner folds, with a fit each.",
        show_default="none stored",
    ),
]


@reads_tables
def fit(
    data: Data,
    reading: Any,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="File to write.", show_default=False),
    ],
    label: Label = None,
    method: Method = None,
    k_min: Annotated[
        int | None, _size("--k-min", "Fewest neighbours a row may get (ln-...).")
    ] = None,
    k_av: Annotated[int | None, _size("--k-av", "Neighbours of a row on average (ln-...).")] = None,
    k_max: Annotated[
        int | None, _size("--k-max", "Most neighbours a row may get (ln-...).")
    ] = None,
    k: StoredVoters = None,
    scale: ScaleOfMethod = None,
    pca: Components = None,
    drop: Drop = [],  # noqa: B006 - Typer copies it
    drop_class: DropClass = [],  # noqa: B006 - the same
    categories: Categories = [],  # noqa: B006 - the same
    seed: Seed = 0,
    device: Device = None,
    cluster: Cluster = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Learn a metric from the labelled rows of DATA and write it to a file.

    The file holds the metric, the rules that turn columns into numbers, and
    the training rows in the learned space. It is safe to load from strangers.

    With --cluster, DATA is a Parquet file, a folder of such files, or a pattern in quotes. The
    workers read it, and rows stay with them, but for a sample that the file holds.
    """
    check_output(output, force=force, inputs=[data])
    check_cluster(cluster, device=device)
    given = {"k_min": k_min, "k_av": k_av, "k_max": k_max}
    sizes = {name: size for name, size in given.items() if size is not None}
    if method is None:
        method = SIZED_METHOD if sizes else DEFAULT_METHOD
    check_methods([method])
    voters = None if k is None else read_voters(k)
    estimator = make_estimator(method, sizes, seed, check_device(device))
    from lnml.tables import Preparation

    preparation = Preparation(scale=scale or _default_scale(method), pca=pca)
    preparation.check_parameters()
    job = Job(method, estimator, preparation, {"k": voters, "seed": seed}, quiet)
    choice: Any = {"reading": reading, "categories": categories, "drop_classes": drop_class}
    if cluster is None:
        model, notes = _fit_here(job, data, label, drop, choice)
    else:
        model, notes = _fit_there(job, cluster, data, output, label, drop, choice)
    # Shown only now, because an error, also one that only the fit finds, must be a single line.
    show_notes(notes, quiet=quiet)
    show_warnings(job.caught)
    from lnml.models import save_model

    save_model(output, model, replace=force)
    if not quiet:
        show(_summary(model, output))


@dataclass
class Job:
    """What is to be fitted: a method with its estimator and preparation, and how it votes.

    ``caught`` gets the warnings of the fit.
    """

    method: str
    estimator: Any
    preparation: Any
    voting: dict[str, Any]
    quiet: bool
    caught: list[Any] = field(default_factory=list)


def _fit_here(
    job: Job, data: Path, label: str | None, drop: list[str], choice: dict[str, Any]
) -> tuple[Any, Sequence[str]]:
    """Fit to a table that is read into memory; return the model and notes."""
    from lnml.models import fit_model
    from lnml.tables import read_table

    table = read_table(data, label, drop, **choice)
    return _fit(job, fit_model, table, len(table.labels)), table.notes


def _fit_there(
    job: Job,
    cluster: str,
    data: Path,
    output: Path,
    label: str | None,
    drop: list[str],
    choice: dict[str, Any],
) -> tuple[Any, Sequence[str]]:
    """Fit to rows that workers read; return the model and notes."""
    from lnml.models.clustered import KEPT_ROWS, check_on_cluster, fit_cluster_model
    from lnml.tables.cluster_table import read_cluster_table
    from lnml.tables.parquet_files import check_reading, find_files

    check_on_cluster(job.method, job.estimator, job.voting["k"])
    check_reading(choice["reading"])
    files, notes = find_files(data)
    check_output(output, force=True, inputs=[file.path for file in files])
    with connected(cluster) as found:
        with live_line(f"reading {len(files)} files", quiet=job.quiet):
            table = read_cluster_table(found.client, data, files, label, drop, **choice)
        found.tell(quiet=job.quiet)
        model = _fit(job, fit_cluster_model, table, table.n_rows)
    notes += table.notes
    if model.numbers is not None:
        notes.append(f"the model keeps {KEPT_ROWS} of the {model.n_rows} rows, a random sample")
    return model, notes


def _default_scale(method: str) -> str:
    """Return how columns of numbers are scaled if the user does not say."""
    return find_method(method).scale or "none"


def _fit(job: Job, fit_model: Callable[..., Any], table: Any, n_rows: int) -> Any:
    estimator = job.estimator
    with live_line(f"{job.method} on {n_rows} rows", quiet=job.quiet) as update:
        if update is not None and "callback" in (estimator.get_params() if estimator else {}):
            estimator.set_params(callback=update)
        try:
            with warnings.catch_warnings(record=True) as job.caught:
                warnings.simplefilter("always")
                # What Dask has to say is for programmers.
                warnings.filterwarnings("ignore", module="dask|distributed")
                return fit_model(table, job.method, estimator, job.preparation, **job.voting)
        except ValueError as error:
            # Estimators say in their own words what is wrong with sizes and data.
            raise InputError(str(error)) from error


def _summary(model: Any, output: Path) -> str:
    parts = [f"{model.method}, {rows_text(model.n_rows)}, {len(model.classes)} classes"]
    if model.fit["objective"] is not None:
        parts.append(f"objective {model.fit['objective']:.6g}")
    if model.fit["gap"] is not None:
        parts.append(f"gap {model.fit['gap']:.1e}")
    if model.k is not None:
        parts.append(f"k {model.k}")
    parts.append(f"{model.fit['seconds']:.1f} s")
    reason = model.fit.get("reason")
    return f"{output}: {', '.join(parts)}" + (f"\nchosen: {reason}" if reason else "")
