"""``lnml fit``: learn a metric from a table and store it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show, show_notes, show_warnings
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
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Learn a metric from the labelled rows of DATA and write it to a file.

    The file holds the metric, the rules that turn columns into numbers, and
    the training rows in the learned space. It is safe to load from strangers.
    """
    check_output(output, force=force, inputs=[data])
    given = {"k_min": k_min, "k_av": k_av, "k_max": k_max}
    sizes = {name: size for name, size in given.items() if size is not None}
    if method is None:
        method = SIZED_METHOD if sizes else DEFAULT_METHOD
    check_methods([method])
    voters = None if k is None else read_voters(k)
    place = check_device(device)
    from lnml.tables import Preparation, read_table

    table = read_table(
        data, label, drop, reading=reading, categories=categories, drop_classes=drop_class
    )
    estimator = make_estimator(method, sizes, seed, place)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preparation = Preparation(scale=scale or _default_scale(method), pca=pca)
        model = _fit(table, method, estimator, preparation, quiet, k=voters, seed=seed)
    # Shown only now, because an error, also one that only the fit finds, must be a single line.
    show_notes(table.notes, quiet=quiet)
    show_warnings(caught)
    from lnml.models import save_model

    save_model(output, model, replace=force)
    if not quiet:
        show(_summary(model, output))


def _default_scale(method: str) -> str:
    """Return how columns of numbers are scaled if the user does not say."""
    return find_method(method).scale or "none"


def _fit(
    table: Any, method: str, estimator: Any, preparation: Any, quiet: bool, **voting: Any
) -> Any:
    from lnml.models import fit_model

    with live_line(f"{method} on {len(table.labels)} rows", quiet=quiet) as update:
        if update is not None and "callback" in (estimator.get_params() if estimator else {}):
            estimator.set_params(callback=update)
        try:
            return fit_model(table, method, estimator, preparation, **voting)
        except ValueError as error:
            # Estimators say in their own words what is wrong with sizes and data.
            raise InputError(str(error)) from error


def _summary(model: Any, output: Path) -> str:
    parts = [f"{model.method}, {len(model.rows)} rows, {len(model.classes)} classes"]
    if model.fit["objective"] is not None:
        parts.append(f"objective {model.fit['objective']:.6g}")
    if model.fit["gap"] is not None:
        parts.append(f"gap {model.fit['gap']:.1e}")
    if model.k is not None:
        parts.append(f"k {model.k}")
    parts.append(f"{model.fit['seconds']:.1f} s")
    reason = model.fit.get("reason")
    return f"{output}: {', '.join(parts)}" + (f"\nchosen: {reason}" if reason else "")
