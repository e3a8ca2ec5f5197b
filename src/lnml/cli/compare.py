"""``lnml compare``: find the best distance for a table, and whether its lead is real."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import keeping_folds, show, show_notes
from lnml.cli.cluster import Cluster, check_cluster, perhaps_connected
from lnml.cli.device import check_device, fold_jobs
from lnml.cli.options import (
    Categories,
    Components,
    Data,
    Device,
    Drop,
    DropClass,
    Force,
    Jobs,
    Label,
    Quiet,
    Resume,
    Scale,
    Seed,
    Voters,
    read_learned,
    read_voters,
)
from lnml.cli.progress import fold_bar
from lnml.cli.reading import reads_tables
from lnml.errors import InputError
from lnml.files import atomic_output, check_output
from lnml.registry import (
    CLASSIFIERS,
    check_methods,
    compared_by_default,
    find_method,
    method_names,
)

EXAMPLES = (
    "lnml compare iris.csv --label species",
    "lnml compare wine.parquet --label cultivar --scale standard --methods euclidean,lmnn,ln-lmnn",
    "lnml compare iris.csv --label species --k auto --references",
    "lnml compare iris.csv --label species --score map@r",
    "lnml compare big.csv --label kind --resume work/ -o big.html   (go on after an interruption)",
    "lnml compare big.csv --label kind --cluster tcp://scheduler:8786   (folds on its workers)",
)

# What to do after an interruption.
GO_ON = "run the same command again to go on"


def _complete_names(incomplete: str) -> list[str]:
    """Return what a list of methods that ends in the middle of a name may become."""
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in method_names()]


Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="NAMES",
        help=f"Names separated by commas, from {', '.join(method_names())}.",
        autocompletion=_complete_names,
        show_default="the eight methods of the paper and euclidean-scaled",
    ),
]
References = Annotated[
    bool,
    typer.Option(
        "--references",
        help="Also run classifiers that give no distance, for reference: "
        f"{', '.join(method.key for method in CLASSIFIERS)}.",
    ),
]
JudgedBy = Annotated[
    str,
    typer.Option(
        "--score",
        metavar="NAME",
        help="What metrics are judged by beside accuracy: recall@1, recall@5 and so on, map@r or "
        "r-precision.",
        autocompletion=lambda: ["accuracy", "recall@1", "recall@5", "map@r", "r-precision"],
    ),
]
Folds = Annotated[
    int, typer.Option("--folds", metavar="N", help="Folds of the cross-validation.", min=2)
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="REPORT",
        help="HTML file to write; the JSON file beside it has the same name.",
        show_default="name of DATA, or stdin, with .html, in this folder",
    ),
]

LearnFrom = Annotated[
    str,
    typer.Option(
        "--learn-from",
        metavar="auto|all|N",
        help="Most training rows of a fold that slow methods learn from; auto means 5,000 where "
        "there are more than 10,000, and all otherwise.",
        autocompletion=lambda: ["auto", "all"],
    ),
]
NoPictures = Annotated[
    bool,
    typer.Option(
        "--no-pictures",
        help="Leave out the pictures of the data, what the metric learned, and the rows whose "
        "labels look wrong, which come from fits of their own.",
    ),
]


@reads_tables
def compare(
    data: Data,
    reading: Any,
    label: Label = None,
    methods: Methods = None,
    references: References = False,
    k: Voters = "1",
    score: JudgedBy = "accuracy",
    folds: Folds = 10,
    learn_from: LearnFrom = "auto",
    scale: Scale = "none",
    pca: Components = None,
    drop: Drop = [],  # noqa: B006 - Typer copies it
    drop_class: DropClass = [],  # noqa: B006 - the same
    categories: Categories = [],  # noqa: B006 - the same
    output: Report = None,
    no_pictures: NoPictures = False,
    resume: Resume = None,
    jobs: Jobs = None,
    device: Device = None,
    cluster: Cluster = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Cross-validate metric learners on the rows of DATA and say which one is best.

    All methods see the same folds; each is judged by the k-nearest-neighbour rule. Differences are
    tested by McNemar's exact test. With --score they are also judged by how well they find rows of
    the same class, without a test. The result is a table here, a report that any browser shows, and
    a JSON file. Classifiers that give no distance have a table of their own.
    """
    page, stored = _outputs(data, output, force)
    keys = _method_keys(methods, scale, references)
    judging = {"k": read_voters(k), "score": _read_score(score)}
    wanted = read_learned(learn_from)
    check_cluster(cluster, device=device, jobs=jobs)
    place = check_device(device)
    from lnml.tables import read_table
    from lnml.tables.telling import telling_notes

    choice: Any = {"reading": reading, "categories": categories, "drop_classes": drop_class}
    table = read_table(data, label, drop, **choice)
    from lnml.cli.work import compare_table, provenance
    from lnml.evaluation.problem import possible_folds

    splits, about_folds = possible_folds(table.labels, folds, seed)
    plan, about_plan = _plan(wanted, splits, keys, quiet)
    told = _told(drop, drop_class, categories, reading.missing)
    settings = {"label": table.label, "folds": len(splits), **judging, "scale": scale, "pca": pca}
    settings |= {**told, "plan": plan["plan"].setting, "seed": seed, "device": place}
    work: Any = {"folder": resume, "pictures": not no_pictures, "n_jobs": fold_jobs(jobs, place)}
    with keeping_folds(resume, GO_ON), perhaps_connected(cluster, quiet=quiet) as there:
        with fold_bar(data.name, quiet=quiet) as progress:
            work |= {"client": there.client, "progress": progress, **plan}
            found, portrait = compare_table(table, splits, keys, settings, **work)
    notes, doubts = (*table.notes, *about_folds), telling_notes(table)
    show_notes((*notes, *doubts), quiet=quiet)
    about = _table_options(data, label, pca, drop, drop_class, categories, reading)
    judged = _judging_options(k, score, folds, seed, learn_from)
    advice = _advise(found, about, scale, methods, judged, page)
    said: Any = {"notes": (*notes, *about_plan), "warnings": doubts, "advice": advice}
    origin = provenance(settings | there.setting)
    _write(page, stored, found, portrait, origin, **said, force=force)
    if not quiet:
        show(_summary(found, judging["k"], page, stored, advice.command))


def _plan(
    wanted: Any, splits: Any, keys: Sequence[str], quiet: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return how many rows slow methods learn from and how to tell a time; say the plan."""
    from lnml.evaluation.plan import make_plan

    plan = make_plan(wanted, splits)
    note = plan.note(map(find_method, keys))
    notes = [] if note is None else [note]
    show_notes(notes, quiet=quiet)
    return {"plan": plan, "tell": None if quiet else lambda said: show_notes([said])}, notes


def _read_score(name: str) -> str:
    from lnml.evaluation.retrieval import read_score

    try:
        return read_score(name).name
    except ValueError as error:
        raise InputError(f"--score: {error}") from error


def _told(
    drop: Sequence[str], classes: Sequence[str], categories: Sequence[str], missing: Sequence[str]
) -> dict[str, str | None]:
    """Return what the user said about the table, for the record."""
    said = {
        "dropped columns": drop,
        "dropped classes": classes,
        "columns of categories": categories,
        "read as missing": missing,
    }
    return {name: ", ".join(values) or None for name, values in said.items()}


def _table_options(
    data: Path,
    label: str | None,
    pca: float | None,
    drop: Sequence[str],
    classes: Sequence[str],
    categories: Sequence[str],
    reading: Any,
) -> list[str]:
    """Return the table and what the user said about it, as ``fit`` and ``compare`` take it."""
    once = {
        "--label": label,
        "--pca": None if pca is None else f"{pca:g}",
        "--delimiter": reading.delimiter,
        "--decimal": reading.decimal,
        "--encoding": reading.encoding,
    }
    often = {
        "--drop": drop,
        "--drop-class": classes,
        "--categories": categories,
        "--missing": reading.missing,
    }
    given = [(option, value) for option, value in once.items() if value is not None]
    given += [(option, value) for option, values in often.items() for value in values]
    return [str(data), *(word for pair in given for word in pair)]


def _judging_options(k: str, score: str, folds: int, seed: int, learn_from: str) -> dict[str, str]:
    """Return how methods were judged, where the user said so: what to compare next is, too."""
    said = {"--k": k, "--score": score, "--folds": str(folds), "--seed": str(seed)}
    said["--learn-from"] = learn_from
    usual = {"--k": "1", "--score": "accuracy", "--folds": "10", "--seed": "0"}
    usual["--learn-from"] = "auto"
    return {option: value for option, value in said.items() if value != usual[option]}


def _advise(
    found: Any,
    table: Sequence[str],
    scale: str,
    methods: str | None,
    judged: dict[str, str],
    page: Path,
) -> Any:
    from lnml.report.advice import advise

    stem = str(page.with_suffix(""))
    return advise(found, table, scale=scale, methods=methods, judging=judged, stem=stem)


def _outputs(data: Path, output: Path | None, force: bool) -> tuple[Path, Path]:
    """Return the names of report and results, or say why these cannot be written."""
    name = "stdin" if str(data) == "-" else data.name.split(".")[0]
    page = output or Path(f"{name}.html")
    stored = page.with_suffix(".json")
    if page.suffix.lower() == stored.suffix:
        raise InputError(
            f"{page}: the report is an HTML page; the results beside it are called {stored}: "
            f"write -o {page.with_suffix('.html')}"
        )
    for path in (page, stored):
        check_output(path, force=force, inputs=[data])
    return page, stored


def _method_keys(names: str | None, scale: str, references: bool) -> list[str]:
    if names is None:
        keys = list(compared_by_default(scale))
    else:
        named = [key.strip() for key in names.split(",") if key.strip()]
        if not named:
            raise InputError(
                f"--methods {names!r} names no method: leave it out to compare the usual ones, or "
                f"name some of {', '.join(method_names())}"
            )
        keys = check_methods(named)
    if all(find_method(key).classifier for key in keys):
        raise InputError(f"{', '.join(keys)}: no distance to compare; name at least one as well")
    return [*keys, *(m.key for m in CLASSIFIERS if references and m.key not in keys)]


def _write(
    page: Path,
    stored: Path,
    found: Any,
    portrait: Any,
    origin: Any,
    *,
    notes: Sequence[str],
    warnings: Sequence[str],
    advice: Any,
    force: bool,
) -> None:
    from dataclasses import asdict

    from lnml.report.page import write_report

    content = {"provenance": asdict(origin), "comparison": found.to_json()}
    with atomic_output(stored, replace=force) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")
    try:
        write_report(
            page,
            [found],
            portraits={} if portrait is None else {found.data.name: portrait},
            provenance=origin,
            notes=notes,
            warnings=warnings,
            advice=advice,
            replace=force,
        )
    except BaseException:
        stored.unlink(missing_ok=True)
        raise


def _summary(found: Any, k: int | str, page: Path, stored: Path, command: str) -> str:
    from lnml.report.layout import accuracy_table, classifier_table
    from lnml.report.leaderboard import votes_used
    from lnml.report.retrieval import score_table
    from lnml.report.solved import unfinished_fits
    from lnml.report.verdict import verdict_on_data

    chosen = "; ".join(f"{method} {votes_used(found, method)}" for method in found.metrics)
    judged = score_table(found)
    lines = [
        *([judged.to_text(), "", judged.verdict, "", "Accuracy:"] if judged else []),
        accuracy_table([found]).to_text(),
        *(["", classifier_table(found)] if found.classifiers else []),
        "",
        verdict_on_data(found, 0.05).text,
        *([f"k of the votes: {chosen}"] if k == "auto" else []),
        *unfinished_fits(found),
        "",
        f"next: {command}",
        f"report: {page}",
        f"results: {stored}",
    ]
    return "\n".join(lines)
