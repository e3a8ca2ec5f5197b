"""One HTML file that says which method is best, with the evidence."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lnml.core.text import shortened, visible
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.results import Comparison, Provenance
from lnml.files import atomic_output
from lnml.report.advice import Advice
from lnml.report.layout import COMPARED, Cell, accuracy_table
from lnml.report.names import Names
from lnml.report.pictures import Picture
from lnml.report.sections import make_group
from lnml.report.verdict import format_pvalue

Reference = Mapping[str, Mapping[str, float | Cell]]

# Results of more bytes are not part of the page: its reader would wait for them.
MOST_RESULT_BYTES = 1_500_000


def write_report(
    path: str | Path,
    comparisons: Sequence[Comparison] | Mapping[str, Sequence[Comparison]],
    *,
    portraits: Mapping[str, Portrait],
    provenance: Provenance,
    reference: Reference | None = None,
    reference_name: str = "paper",
    absent: Mapping[str, Mapping[str, str]] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    compared: Mapping[str, tuple[str, ...]] = COMPARED,
    alpha: float = 0.05,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    advice: Advice | None = None,
    replace: bool = True,
) -> None:
    """Write results as one HTML file that needs nothing else.

    The file appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        Where to write.
    comparisons : sequence of Comparison, or dict of str to sequence of Comparison
        One for each data set; a dict makes a table for each of its groups.
    portraits : dict of str to Portrait
        One fit for the pictures, by name of the data set; some may be missing.
    provenance : Provenance
        How the results were made.
    reference : dict of str to dict of str to float or Cell, optional
        Results of others in percent, by data set and method.
    reference_name : str, default="paper"
        What to call them.
    absent : dict of str to dict of str to str, optional
        Data sets without results of our own, and why, by title of a group
        (the title is empty if there is only one).
    columns : dict of str to sequence of str, optional
        The methods of a group in order, by its title. Other methods are left out
        of scores, tests and pictures. By default all, in order of appearance.
    compared : dict of str to tuple of str
        Which methods the signs beside an accuracy are about.
    alpha : float, default=0.05
        Level of all tests.
    notes : sequence of str
        Sentences for the end of the page.
    warnings : sequence of str
        Sentences for its beginning, beside the verdict.
    advice : Advice, optional
        What to run next.
    replace : bool, default=True
        Whether an older file is replaced, or this one refused.
    """
    groups = comparisons if isinstance(comparisons, Mapping) else {"": comparisons}
    groups = {title: list(found) for title, found in groups.items() if found}
    if not groups:
        raise ValueError("a report needs at least one comparison")
    shown = []
    for number, (title, found) in enumerate(groups.items()):
        methods = (columns or {}).get(title)
        if methods is not None:
            found = [_only(comparison, methods) for comparison in found]
        table = accuracy_table(
            found,
            methods=methods,
            compared=compared,
            reference=reference,
            reference_name=reference_name,
            absent=(absent or {}).get(title),
            alpha=alpha,
        )
        markup = Markup(table.to_html())
        shown.append(make_group(title, str(number), found, markup, portraits, compared, alpha))
    style, script = _template("page.css"), _template("page.js")
    page = (
        _environment()
        .get_template("page.html")
        .render(
            groups=shown,
            sections=[section for group in shown for section in group.sections],
            provenance=provenance,
            alpha=alpha,
            advice=advice,
            notes=list(notes),
            warnings=list(warnings),
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            results=_results_link(groups, provenance),
        )
    )
    with atomic_output(path, replace=replace) as temporary:
        temporary.write_text(visible(page, lines=True), encoding="utf-8")


def _only(comparison: Comparison, methods: Sequence[str]) -> Comparison:
    """Return the results of some methods, in their order."""
    return Comparison(
        comparison.data,
        tuple(
            part for name in methods if name in comparison.methods for part in comparison.of(name)
        ),
    )


def _template(name: str) -> str:
    """Return a file of the page as text."""
    return (files("lnml.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a content policy that allows this style and this script, and loads nothing.

    Attributes of style come with the pictures; they can run nothing.
    """

    def allowed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {allowed(script)}; style-src-elem {allowed(style)}; "
        f"style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _results_link(groups: Mapping[str, Sequence[Comparison]], provenance: Provenance) -> str | None:
    """Return the results as a link that saves them; None if they are too large for a page."""
    stored = {
        "provenance": asdict(provenance),
        "comparisons": [found.to_json() for part in groups.values() for found in part],
    }
    content = json.dumps(stored, separators=(",", ":")).encode()
    if len(content) > MOST_RESULT_BYTES:
        return None
    return f"data:application/json;base64,{base64.b64encode(content).decode()}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lnml.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = Names()
    environment.globals["names"] = names
    environment.filters.update(
        name=names.show,
        setting=_setting,
        short_pvalue=_short_pvalue,
        shortened=shortened,
        svg=_as_markup,
        unbroken=_unbroken,
    )
    return environment


def _short_pvalue(pvalue: float) -> str:
    """Return a p-value for a table, without a sign of equality."""
    return format_pvalue(pvalue).removeprefix("= ")


def _setting(value: object) -> object:
    """Say a setting in words."""
    names: dict[object, str] = {True: "yes", False: "no", None: "none"}
    return names[value] if value is None or isinstance(value, bool) else value


def _unbroken(sentence: str) -> str:
    """Keep numbers and what belongs to them on one line."""
    return re.sub(r" (%|[<=] [\d.]+)", lambda found: found[0].replace(" ", "\u00a0"), sentence)


def _as_markup(picture: Picture) -> Markup:
    """Return the picture's own markup: its texts were escaped when it was drawn."""
    return Markup(picture.svg)
