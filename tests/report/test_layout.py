"""The paper's table: its rules checked one by one on results made up for them."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import binomtest

from lnml.evaluation import Comparison, DataSummary, FoldResult
from lnml.report.layout import Cell, accuracy_table, classifier_table

METHODS = ("MCML", "LN-MCML", "LMNN", "LN-LMNN", "LN-LMNN (CV)", "Euclidean", "NCA", "ITML")


def compare(name, right, n=100):
    """A comparison in which each method is right on the given rows."""
    rows = np.arange(n)
    results = []
    for method, rows_right in right.items():
        correct = np.isin(rows, rows_right)
        results += [FoldResult(method, fold, rows[fold::2], correct[fold::2]) for fold in range(2)]
    return Comparison(DataSummary(name, 3, {"x": n // 2, "y": n - n // 2}), tuple(results))


@pytest.fixture
def study():
    rng = np.random.default_rng(1)
    rates = (0.8, 0.8, 0.7, 0.85, 0.9, 0.5, 0.88, 0.75)
    return [
        compare(
            name,
            {
                method: np.flatnonzero(rng.uniform(size=200) < rate)
                for method, rate in zip(METHODS, rng.permutation(rates), strict=True)
            },
            n=200,
        )
        for name in ("one", "two", "three")
    ]


def differ(found, a, b):
    a, b = found.correct(a), found.correct(b)
    n_a, n_b = int((a & ~b).sum()), int((b & ~a).sum())
    return n_a + n_b > 0 and binomtest(n_a, n_a + n_b).pvalue < 0.05


def test_bold_is_what_does_not_differ_from_the_best(study):
    table = accuracy_table(study)
    for found, row in zip(study, table.rows, strict=True):
        best = max(METHODS, key=found.accuracy)
        for method in METHODS:
            assert row.ours[method].best == (not differ(found, best, method))
            assert row.ours[method].accuracy == pytest.approx(100 * found.correct(method).mean())


def test_signs_are_about_the_methods_named(study):
    pairs = {"LN-MCML": ["MCML"], "LN-LMNN": ["LMNN"], "LN-LMNN (CV)": ["LMNN", "LN-LMNN"]}
    for found, row in zip(study, accuracy_table(study).rows, strict=True):
        for method in METHODS:
            expected = ""
            for other in pairs.get(method, []):
                if not differ(found, method, other):
                    expected += "="
                else:
                    expected += "+" if found.accuracy(method) > found.accuracy(other) else "-"
            assert row.ours[method].marks == expected
    signs = {row.ours["LN-LMNN (CV)"].marks for row in accuracy_table(study).rows}
    assert len(signs) > 1, "the example should show more than one outcome"


def test_scores_of_a_row_sum_to_the_number_of_pairs(study):
    table = accuracy_table(study)
    for row in table.rows:
        assert sum(cell.score for cell in row.ours.values()) == 8 * 7 / 2
    totals = table.totals()
    assert sum(totals.values()) == 3 * 8 * 7 / 2
    assert totals["NCA"] == sum(row.ours["NCA"].score for row in table.rows)


def test_scores_count_only_the_columns_shown(study):
    table = accuracy_table(study, methods=["NCA", "LMNN", "Euclidean"])
    for row in table.rows:
        assert list(row.ours) == ["NCA", "LMNN", "Euclidean"]
        assert sum(cell.score for cell in row.ours.values()) == 3


def test_classifiers_stay_out_of_the_table(study):
    more = [
        replace(
            found,
            results=tuple(
                replace(r, classifier=r.method in ("NCA", "ITML")) for r in found.results
            ),
        )
        for found in study
    ]
    metrics = METHODS[:6]
    table = accuracy_table(more)
    assert table.methods == metrics
    assert table.to_text() == accuracy_table(study, methods=metrics).to_text()
    lines = classifier_table(more[0]).splitlines()
    assert len(lines) == 4
    for name, line in zip(("NCA", "ITML"), lines[2:], strict=True):
        assert name in line and f"{100 * more[0].accuracy(name):.2f}" in line


def test_methods_missing_on_a_data_set_are_blank():
    first = compare("first", {"LMNN": range(50), "LN-LMNN": range(90), "NCA": range(90)})
    second = compare("second", {"LN-LMNN": range(90), "LN-LMNN (CV)": range(95)})
    table = accuracy_table([first, second])
    assert table.methods == ("LMNN", "LN-LMNN", "NCA", "LN-LMNN (CV)")
    assert "LMNN" not in table.rows[1].ours
    assert sum(cell.score for cell in table.rows[1].ours.values()) == 1
    # LN-LMNN has nothing to be compared with there; (CV) only the second of two.
    assert table.rows[1].ours["LN-LMNN"].marks == ""
    assert table.rows[1].ours["LN-LMNN (CV)"].marks == "·="
    assert table.to_text().splitlines()[3].split("|")[2].strip() == ""


def test_plain_text_and_markdown():
    found = compare("toy", {"LMNN": range(80), "LN-LMNN": range(60)})
    table = accuracy_table(
        [found],
        reference={
            "toy": {"LMNN": 78.5, "LN-LMNN": Cell(89.1, 1.0, "+", True)},
            "far": {"LMNN": 1.0},
        },
        absent={"far": "not obtainable"},
    )
    assert table.to_text().splitlines() == [
        "| data set             |        LMNN |      LN-LMNN |",
        "|----------------------|------------:|-------------:|",
        "| toy                  | 80.00*(1.0) | 60.00 (0.0)- |",
        "| paper                |       78.50 | 89.10*(1.0)+ |",
        "| far (not obtainable) |             |              |",
        "| paper                |        1.00 |              |",
        "| total score          |         1.0 |          0.0 |",
        "| paper                |             |          1.0 |",
    ]
    lines = table.to_markdown().splitlines()
    assert "| **80.00** (1.0) |" in lines[2] and " 60.00 (0.0) <sup>−</sup> |" in lines[2]
    assert "**89.10** (1.0) <sup>+</sup>" in lines[3]
    for words in ("McNemar", "0.05", "LN-LMNN against LMNN", "Lines called paper"):
        assert words in table.caption


class Structure(HTMLParser):
    """Rows of cells as text, and whether all tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_html_has_the_same_cells_and_escapes_names():
    name = "<script>alert('x')</script>"
    found = compare(name, {"LMNN": range(80), "<b>&": range(60)})
    table = accuracy_table([found, found], reference={name: {"LMNN": 78.5}})
    html = table.to_html()
    parser = Structure()
    parser.feed(html)
    assert parser.open == []
    assert parser.rows == [
        ["Data set", "LMNN", "<b>&"],
        [name, "80.00 (1.0)", "60.00 (0.0)"],
        ["paper", "78.50 ", ""],
        [name, "80.00 (1.0)", "60.00 (0.0)"],
        ["paper", "78.50 ", ""],
        ["Total score", "2.0", "0.0"],
    ]
    assert "<script" not in html and "<b>" not in html
    assert html.count("<caption>") == 1
    assert "Total score" not in accuracy_table([found]).to_html()
