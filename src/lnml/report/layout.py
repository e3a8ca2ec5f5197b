"""The paper's table of accuracies, with scores, significance and the best of each data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import (
    PairwiseTests,
    best_methods,
    classifier_tests,
    pairwise_mcnemar,
    scores_of,
    total_scores,
)
from lnml.report.tables import text_table

# Which methods the superscripts of a method are about, in this order.
COMPARED: Mapping[str, tuple[str, ...]] = {
    "LN-MCML": ("MCML",),
    "LN-LMNN": ("LMNN",),
    "LN-LMNN (CV)": ("LMNN", "LN-LMNN"),
}


@dataclass(frozen=True)
class Cell:
    """One method on one data set.

    Attributes
    ----------
    accuracy : float
        In percent.
    score : float or None
        Points against the other methods; None if unknown.
    marks : str
        One of ``+ - =`` for each method it is compared with, for a significant win,
        a loss, or neither; ``·`` for a method that was not run.
    best : bool
        True if it does not differ significantly from the best accuracy.
    """

    accuracy: float
    score: float | None = None
    marks: str = ""
    best: bool = False


@dataclass(frozen=True)
class Row:
    """One data set.

    Attributes
    ----------
    name : str
        Its name.
    ours, reference : dict of str to Cell
        By method; methods that were not run are left out.
    absent : str
        Why there are no results of our own; empty if there are.
    """

    name: str
    ours: Mapping[str, Cell]
    reference: Mapping[str, Cell] = field(default_factory=dict)
    absent: str = ""


@dataclass(frozen=True)
class AccuracyTable:
    """Accuracies of several methods on several data sets, laid out as in the paper.

    Attributes
    ----------
    methods : tuple of str
        Columns.
    rows : tuple of Row
        Data sets.
    alpha : float
        Level of McNemar's test.
    reference_name : str
        What the second line of a data set is called.
    compared : dict of str to tuple of str
        Which methods the superscripts of a method are about.
    """

    methods: tuple[str, ...]
    rows: tuple[Row, ...]
    alpha: float = 0.05
    reference_name: str = "paper"
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: COMPARED)

    @property
    def has_reference(self) -> bool:
        """Whether any data set has a second line."""
        return any(row.reference for row in self.rows)

    def totals(self, *, reference: bool = False) -> dict[str, float]:
        """Sum of each method's scores over the data sets it was run on."""
        lines = [row.reference if reference else row.ours for row in self.rows]
        return total_scores(
            {method: cell.score for method, cell in line.items() if cell.score is not None}
            for line in lines
        )

    @property
    def caption(self) -> str:
        """What the numbers and signs mean, in plain words."""
        pairs = [
            f"{method} against {' and '.join(others)}"
            for method, others in self.compared.items()
            if method in self.methods and set(others) & set(self.methods)
        ]
        parts = [
            "Accuracy in %, with the score in parentheses: 1 point for each method that is "
            "significantly worse, 0.5 for each that does not differ "
            f"(exact McNemar test, level {self.alpha:g}).",
            "Bold or starred accuracies do not differ significantly from the best of the data set.",
        ]
        if pairs:
            parts.append(
                f"Signs: a significant win (+), loss (-) or neither (=) of {'; '.join(pairs)}."
            )
        if self.has_reference:
            parts.append(f"Lines called {self.reference_name} show results of others.")
        return " ".join(parts)

    def to_markdown(self) -> str:
        """Lay out as a Markdown table, with the best in bold and raised signs."""

        def cell(value: Cell) -> str:
            text = f"**{value.accuracy:.2f}**" if value.best else f"{value.accuracy:.2f}"
            marks = value.marks.replace("-", "−")
            return text + _score(value) + (f" <sup>{marks}</sup>" if marks else "")

        return text_table(*self._grid(cell))

    def to_text(self) -> str:
        """Lay out as plain text, with a star for the best."""

        def cell(value: Cell) -> str:
            # The star takes the place of a space, so that numbers stay below each other.
            text = f"{value.accuracy:.2f}{_score(value)}{value.marks}"
            return text.replace(" ", "*") if value.best else text

        return text_table(*self._grid(cell))

    def _grid(self, cell: Callable[[Cell], str]) -> tuple[list[str], list[list[str]]]:
        """Header and lines of a text table; ``cell`` writes one cell."""

        def line(name: str, cells: Mapping[str, Cell]) -> list[str]:
            return [name, *(cell(cells[m]) if m in cells else "" for m in self.methods)]

        lines = []
        for row in self.rows:
            lines.append(line(f"{row.name} ({row.absent})" if row.absent else row.name, row.ours))
            if row.reference:
                lines.append(line(self.reference_name, row.reference))
        if len(self.rows) > 1:
            lines.append(["total score", *_totals(self.methods, self.totals())])
        theirs = self.totals(reference=True)
        if theirs and len(self.rows) > 1:
            lines.append([self.reference_name, *_totals(self.methods, theirs)])
        return ["data set", *self.methods], lines

    def to_html(self) -> str:
        """Lay out as an HTML table; classes: ``best``, ``score``, ``reference``, ``total``.

        A single data set needs no row of totals.
        """
        head = "".join(f'<th scope="col">{escape(method)}</th>' for method in self.methods)
        body = "".join(self._html_rows(row) for row in self.rows)
        foot = f"<tfoot>{self._html_foot()}</tfoot>" if len(self.rows) > 1 else ""
        return (
            f'<table class="accuracies" style="--columns:{len(self.methods) + 1}" '
            f'data-file="accuracies"><caption>'
            f'<span class="about">{escape(self.caption)}</span></caption>'
            f'<thead><tr><th scope="col">Data set</th>{head}</tr></thead>'
            f"<tbody>{body}</tbody>{foot}</table>"
        )

    def _html_foot(self) -> str:
        ours = _html_totals("Total score", self.methods, self.totals(), "total")
        theirs = self.totals(reference=True)
        if not theirs:
            return ours
        return ours + _html_totals(self.reference_name, self.methods, theirs, "total reference")

    def _html_rows(self, row: Row) -> str:
        absent = f' <span class="absent">{escape(row.absent)}</span>' if row.absent else ""
        ours = "".join(_html_cell(row.ours.get(method)) for method in self.methods)
        lines = f'<tr><th scope="row">{escape(row.name)}{absent}</th>{ours}</tr>'
        if row.reference:
            theirs = "".join(_html_cell(row.reference.get(method)) for method in self.methods)
            name = escape(self.reference_name)
            lines += f'<tr class="reference"><th scope="row">{name}</th>{theirs}</tr>'
        return lines


def accuracy_table(
    comparisons: Sequence[Comparison],
    *,
    methods: Sequence[str] | None = None,
    compared: Mapping[str, tuple[str, ...]] = COMPARED,
    reference: Mapping[str, Mapping[str, float | Cell]] | None = None,
    reference_name: str = "paper",
    absent: Mapping[str, str] | None = None,
    alpha: float = 0.05,
) -> AccuracyTable:
    """Lay out comparisons as the paper's Table 2.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each data set.
    methods : sequence of str, optional
        Columns; by default all metrics in order of appearance. Scores count
        only the methods shown.
    compared : dict of str to tuple of str
        Which methods the superscripts of a method are about.
    reference : dict of str to dict of str to float or Cell, optional
        Results of others in percent, by data set and method, shown as second lines.
    reference_name : str, default="paper"
        What to call them.
    absent : dict of str to str, optional
        Data sets without results of our own, and why.
    alpha : float, default=0.05
        Level of McNemar's test.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.evaluation import DataSummary, FoldResult
    >>> right = np.arange(20)
    >>> toy = Comparison(
    ...     DataSummary("toy", 2, {"x": 10, "y": 10}),
    ...     (
    ...         FoldResult("LMNN", 0, right, right < 10),
    ...         FoldResult("LN-LMNN", 0, right, right < 19),
    ...     ),
    ... )
    >>> print(accuracy_table([toy], reference={"toy": {"LMNN": 51.0}}).to_text())
    | data set |        LMNN |      LN-LMNN |
    |----------|------------:|-------------:|
    | toy      | 50.00 (0.0) | 95.00*(1.0)+ |
    | paper    |       51.00 |              |
    """
    reference, absent = reference or {}, absent or {}
    seen = dict.fromkeys(method for found in comparisons for method in found.metrics)
    columns = tuple(seen) if methods is None else tuple(methods)
    rows = [
        Row(
            found.data.name,
            _cells(found, columns, compared, alpha),
            _reference_cells(reference.get(found.data.name, {})),
        )
        for found in comparisons
    ]
    for name, why in absent.items():
        rows.append(Row(name, {}, _reference_cells(reference.get(name, {})), why))
    return AccuracyTable(columns, tuple(rows), alpha, reference_name, compared)


def classifier_table(comparison: Comparison, alpha: float = 0.05) -> str:
    """Lay out as plain text how accurate the classifiers of a comparison are.

    They have a table of their own, because they give no distance.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.evaluation import DataSummary, FoldResult
    >>> right = np.arange(20)
    >>> toy = Comparison(
    ...     DataSummary("toy", 2, {"x": 10, "y": 10}),
    ...     (
    ...         FoldResult("LMNN", 0, right, right < 10),
    ...         FoldResult("SVM", 0, right, right < 19, classifier=True),
    ...     ),
    ... )
    >>> print(classifier_table(toy))
    | for reference: no distance | accuracy |   better than | worse than |
    |----------------------------|---------:|--------------:|-----------:|
    | SVM                        |    95.00 | 1 of 1 metric |       none |
    """
    tests = classifier_tests(comparison)
    n_metrics = len(tests.metrics)

    def count(number: int) -> str:
        return f"{number} of {n_metrics} metric{'s' * (n_metrics > 1)}" if number else "none"

    lines = [
        [
            name,
            f"{100 * comparison.accuracy(name):.2f}",
            count(int((verdicts > 0).sum())),
            count(int((verdicts < 0).sum())),
        ]
        for name, verdicts in zip(tests.classifiers, tests.verdicts(alpha), strict=True)
    ]
    return text_table(
        ["for reference: no distance", "accuracy", "better than", "worse than"], lines
    )


def _cells(
    comparison: Comparison,
    columns: Sequence[str],
    compared: Mapping[str, tuple[str, ...]],
    alpha: float,
) -> dict[str, Cell]:
    shown = [method for method in columns if method in comparison.metrics]
    if not shown:
        return {}
    results = tuple(result for result in comparison.results if result.method in shown)
    part = Comparison(comparison.data, results)
    tests = pairwise_mcnemar(part)
    scores, best = scores_of(tests, alpha), best_methods(part, alpha)
    return {
        method: Cell(
            100 * comparison.accuracy(method),
            scores[method],
            _marks(tests, method, compared.get(method, ()), alpha),
            method in best,
        )
        for method in shown
    }


def _marks(tests: PairwiseTests, method: str, others: Sequence[str], alpha: float) -> str:
    if not set(others) & set(tests.methods):
        return ""
    return "".join(
        "=+-"[tests.verdict(method, other, alpha)] if other in tests.methods else "·"
        for other in others
    )


def _reference_cells(values: Mapping[str, float | Cell]) -> dict[str, Cell]:
    return {
        method: value if isinstance(value, Cell) else Cell(float(value))
        for method, value in values.items()
    }


def _score(cell: Cell) -> str:
    return "" if cell.score is None else f" ({cell.score:.1f})"


def _totals(methods: Sequence[str], totals: Mapping[str, float]) -> list[str]:
    return [f"{totals[method]:.1f}" if method in totals else "" for method in methods]


def _html_totals(
    name: str, methods: Sequence[str], totals: Mapping[str, float], classes: str
) -> str:
    top = max(totals.values(), default=None)
    cells = []
    for method, text in zip(methods, _totals(methods, totals), strict=True):
        best = ' class="best"' if text and totals[method] == top else ""
        cells.append(f"<td{best}>{text}</td>")
    return f'<tr class="{classes}"><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def _html_cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    accuracy = f"{cell.accuracy:.2f}"
    accuracy = f'<strong class="best">{accuracy}</strong>' if cell.best else accuracy
    # An empty score keeps the place of one, so that accuracies stay below each other.
    score = "" if cell.score is None else f"({cell.score:.1f})"
    marks = _html_marks(cell.marks)
    return f'<td>{accuracy} <span class="score">{score}</span>{marks}</td>'


def _html_marks(marks: str) -> str:
    """Return signs that say what they mean when one points at them."""
    if not marks:
        return ""
    words = {"+": "significantly better", "-": "significantly worse", "=": "no difference"}
    meaning = ", ".join(words.get(mark, "not run") for mark in marks)
    return f'<abbr class="signs" title="{meaning}">{escape(marks.replace("-", "−"))}</abbr>'
