"""``lnml study``: repeat the paper's tables, with our numbers beside the paper's."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from lnml.cli.app import keeping_folds, show
from lnml.cli.cluster import Cluster, check_cluster, perhaps_connected
from lnml.cli.device import check_device, fold_jobs
from lnml.cli.options import Device, Force, Jobs, Quiet, Seed
from lnml.cli.progress import fold_bar
from lnml.errors import InputError

EXAMPLES = (
    "lnml study",
    "lnml study --all -o study   (hours; go on after an interruption with --resume)",
    "lnml study --data letter --data isolet -o study --resume",
    "lnml study --all --cluster tcp://scheduler:8786   (folds on its workers)",
)


Everything = Annotated[
    bool, typer.Option("--all", help="Also run the large data sets, not only the five small.")
]
DataSets = Annotated[
    list[str],
    typer.Option(
        "--data",
        metavar="NAME",
        help="Run only this data set; may be repeated.",
        show_default=False,
    ),
]
Folder = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="Folder for report, tables and finished folds."
    ),
]
GoOn = Annotated[
    bool, typer.Option("--resume", help="Continue, and keep the finished folds in the folder.")
]


def study(
    everything: Everything = False,
    data: DataSets = [],  # noqa: B006 - Typer copies it
    output: Folder = Path("lnml-study"),
    resume: GoOn = False,
    jobs: Jobs = None,
    device: Device = None,
    cluster: Cluster = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Repeat the study of the paper: accuracies, significance and scores beside the paper's.

    The small data sets come with lnml. The large ones must be in the directory that the
    environment variable LNML_DATA names; Isolet and MNIST are fetched from OpenML otherwise.
    On a GPU all methods learn from all rows of MNIST. On a CPU NCA and MCML learn from a tenth.
    """
    if resume and force:
        raise InputError("--resume keeps finished folds, --force starts anew: give one of them")
    check_cluster(cluster, device=device, jobs=jobs)
    place = check_device(device)
    from lnml.cli.work import provenance
    from lnml.study.pages import chosen_data, write_study
    from lnml.study.run import clear_study, run_study

    chosen = chosen_data(data, everything)
    folder = _folder(output, resume or force)
    if force:
        clear_study(folder / "folds")
    go_on = "run the same command with --resume to go on"
    with (
        keeping_folds(folder / "folds", go_on),
        perhaps_connected(cluster, quiet=quiet) as there,
        warnings.catch_warnings(),
    ):
        # Fits that did not converge are counted and shown with the results.
        warnings.simplefilter("ignore")
        found = run_study(
            chosen,
            folder / "folds",
            seed=seed,
            n_jobs=fold_jobs(jobs, place),
            device=place,
            bar=lambda title: fold_bar(title, quiet=quiet),
            client=there.client,
        )
    names = ", ".join(d.name for d in found.found)
    settings = {"data": names, "folds": 10, "k": 1, "seed": seed, "device": place}
    origin = provenance(settings | there.setting)
    written = write_study(folder, found, origin, replace=resume or force)
    if not quiet:
        show(written)


def _folder(output: Path, used: bool) -> Path:
    """Make the folder for results, or say why it cannot be used."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name a folder")
    try:
        if output.is_dir() and any(output.iterdir()) and not used:
            raise InputError(
                f"{output} is not empty: go on with it (--resume), start anew in it (--force), or "
                f"name another folder (-o)"
            )
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be used: {error.strerror}") from error
    return output
