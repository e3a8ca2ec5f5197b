"""Write what follows from the registry: the tables of methods, and the names that lnml exports.

    python docs/figures/make_tables.py

A test fails where a file is not as this script would write it.
"""

from pathlib import Path

import lnml
from lnml.contract import MetricLearner
from lnml.registry import (
    LEARNERS,
    Learner,
    Method,
    built_in,
    compared_by_default,
)

ROOT = Path(__file__).parents[2]
BEGIN, END = "begin: written by docs/figures/make_tables.py", "end: docs/figures/make_tables.py"
# LMNN, the base that LNML has by default, comes first.
ORDER = ["lmnn", *(entry.key for entry in LEARNERS if entry.key != "lmnn")]
AROUND = (
    "| `LNML(estimator)` | learns neighbourhoods and metric in turn ([page](lnml.md)), with "
    "any of the above but {} | duality gap of the last metric | |",
    "| `LNMLCV(estimator)` | LNML that chooses neighbourhood sizes, and on request the number of "
    "rounds, by cross-validation ([page](lnml_cv.md)) | duality gap of the last metric | |",
    "| `AveragedMetric(estimator)` | the mean of metrics from subsamples "
    "([page](averages.md)) | duality gap of each of them | |",
    "| `AutoMetric(estimator)` | the one to start with: such a mean, of what serves rows left out "
    "best ([page](generalisation.md)) | duality gap of each of them | |",
)


def exports() -> str:
    """Imports for type checkers, and __all__."""
    modules: dict[str, list[str]] = {}
    for name, module in sorted(lnml._MODULES.items()):
        modules.setdefault(module, []).append(name)
    imports = [f"    from {m} import {', '.join(names)}" for m, names in sorted(modules.items())]
    # As ruff sorts them: capitals, then classes, then functions.
    names = sorted(lnml._MODULES, key=lambda name: (not name.isupper(), name))
    listed = "\n".join(f'    "{name}",' for name in names)
    return "\n".join(["if TYPE_CHECKING:", *imports, "", "__all__ = [", listed, "]"])


def learners_table() -> str:
    """Estimators, with what they prove and what else they can be fitted to."""
    lines = ["| estimator | method | what is proved | can also learn from |", "|---|---|---|---|"]
    for entry in sorted(LEARNERS, key=lambda entry: ORDER.index(entry.key)):
        summary = f"{entry.summary} ([page]({entry.page}))"
        lines.append(f"| `{entry.class_name}` | {summary} | {entry.proof} | {also_fits(entry)} |")
    refused = [entry.class_name for entry in LEARNERS if entry.estimator_class.not_coupled_because]
    return "\n".join([*lines, *(line.format(" and ".join(refused)) for line in AROUND)])


def also_fits(entry: Learner) -> str:
    """Input other than classes that a learner takes."""
    found = entry.estimator_class
    kinds = [kind for kind in ("pairs", "triplets") if hasattr(found, f"fit_{kind}")]
    if issubclass(found, MetricLearner):
        kinds.append("given target neighbours")
    return ", ".join(kinds)


def methods_table() -> str:
    """Methods of the command line."""
    lines = ["| name | method | compared without `--methods` |", "|---|---|---|"]
    for key, method in built_in().items():
        lines.append(f"| `{key}` | {method.name}: {method.summary} | {when_compared(method)} |")
    return "\n".join(lines)


def when_compared(method: Method) -> str:
    """Whether a method is compared if none is named."""
    if method.classifier:
        return "with `--references`: no distance"
    if method.key in compared_by_default("standard"):
        return "yes"
    return "unless `--scale standard`" if method.key in compared_by_default("none") else ""


BLOCKS = {
    "src/lnml/__init__.py": ("# {}", exports),
    "docs/methods.md": ("<!-- {} -->", learners_table),
    "docs/cli.md": ("<!-- {} -->", methods_table),
}


def written(path: str) -> str:
    """Return a file as it should be."""
    comment, make = BLOCKS[path]
    text = (ROOT / path).read_text(encoding="utf-8")
    begin, end = comment.format(BEGIN), comment.format(END)
    head, rest = text.split(begin)
    gap = "\n" if path.endswith(".py") else "\n\n"
    return f"{head}{begin}{gap}{make()}{gap}{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    for path in BLOCKS:
        (ROOT / path).write_text(written(path), encoding="utf-8")
