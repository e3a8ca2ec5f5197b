"""The report as a file: what it says, that it is whole, that data cannot break it."""

import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from results import PROVENANCE, random_comparison, random_portrait

from lnml.errors import InputError
from lnml.evaluation.results import Portrait, Suspect
from lnml.evaluation.statistics import classifier_tests
from lnml.report.page import votes_used, write_report

pytest.importorskip("scikit_posthocs")

RATES = {"Euclidean": 0.6, "LMNN": 0.8, "LN-LMNN (CV)": 0.95}


def report(tmp_path, comparisons, portraits=None, **options):
    path = tmp_path / "report.html"
    write_report(path, comparisons, portraits=portraits or {}, provenance=PROVENANCE, **options)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Text, tags and attributes; fails on tags that close out of order."""

    EMPTY = ("meta", "link", "br")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids, self.text = [], [], [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_everything_asked_for_is_there_in_order(tmp_path):
    comparisons = [
        random_comparison(f"set {i}", RATES, seed=i, unfinished=["LMNN"]) for i in range(3)
    ]
    portraits = {f"set {i}": random_portrait(seed=i) for i in range(3)}
    html = report(tmp_path, comparisons, portraits, notes=["A note."])
    seen = Reader(html).text
    order = [
        "best total score over 3 data sets",
        "Total score",
        "Accuracy in %, with 95 % intervals",
        "Average ranks over 3 data sets",
        "Is the difference real?",
        "Time and memory",
        "k_min 1 (1×); k_min 2 (1×)",
        "2 of 2 fits of LMNN did not meet their stopping rule",
        "Convergence",
        "The data before and after",
        "Neighbours received, by class",
        "Suspicious rows",
        "How to repeat",
        PROVENANCE.command,
        "seed",
        "Python",
        "ab" * 32,
        "A note.",
    ]
    position = 0
    for words in order:
        assert words in seen[position:], f"{words!r} should come later"
        position = seen.index(words, position)
    assert "scaleno" in re.sub(r"\s", "", seen), "settings are said in words"


def test_one_data_set_says_why_there_are_no_ranks(tmp_path):
    seen = Reader(report(tmp_path, [random_comparison("toy", RATES)])).text
    assert "need at least 3 data sets; there is 1." in seen
    assert "No fit was drawn" in seen
    assert "Total score" not in seen


def test_classifiers_have_a_group_of_their_own(tmp_path):
    found = random_comparison("toy", {"SVM": 0.99, **RATES}, classifiers=["SVM"])
    html = report(tmp_path, [found], {"toy": random_portrait()})
    assert Reader(html).text.count("For reference: no distance") == 2
    tables = re.findall(r"<table.*?</table>", html, re.S)
    with_it = [re.search(r'class="(\w+)"', table)[1] for table in tables if "SVM" in table]
    assert with_it == ["pvalues", "costs"], "one of its own, and time and memory"
    assert not any("SVM" in picture for picture in re.findall(r"<svg.*?</svg>", html, re.S))
    p = classifier_tests(found).adjusted
    assert p.shape == (1, 3) and (p[0] < 0.05).tolist() == [True, True, False]
    own = next(table for table in tables if "Classifier</th>" in table)
    assert own.count('class="significant"') == 2
    assert "For reference: no distance" not in report(tmp_path, [random_comparison("toy", RATES)])


def test_the_page_says_which_k_voted(tmp_path):
    found = random_comparison("toy", {"SVM": 0.9, **RATES}, classifiers=["SVM"])
    html = report(tmp_path, [found])
    assert html.count('<td class="words">1 (1×), 3 (1×)</td>') == 3
    same = replace(found, results=tuple(replace(r, k=5) for r in found.results))
    assert votes_used(same, "LMNN") == "5"
    assert votes_used(found, "SVM") == "–"


def test_groups_have_tables_of_their_own(tmp_path):
    groups = {
        "Small": [random_comparison("a", RATES), random_comparison("b", RATES)],
        "Large": [random_comparison("c", {"NCA": 0.5, **RATES})],
    }
    html = report(
        tmp_path,
        groups,
        absent={"Large": {"far": "not obtainable"}},
        reference={"a": {"LMNN": 12.34}, "far": {"LMNN": 43.21}},
        reference_name="the paper",
    )
    reader = Reader(html)
    assert html.count('<table class="accuracies">') == 2
    for words in ("Small:", "Large:", "not obtainable", "12.34", "43.21", "the paper"):
        assert words in reader.text


def test_columns_choose_and_order_methods(tmp_path):
    found = random_comparison("toy", {"NCA": 0.99, **RATES})
    columns = {"": ["LN-LMNN (CV)", "Euclidean", "ITML"]}
    html = report(tmp_path, [found], columns=columns)
    assert "NCA" not in html
    assert Reader(html).text.count("ITML") == 1, "a column of its own, and no results"
    assert html.index("LN-LMNN (CV)</th>") < html.index("Euclidean</th>")


def test_no_data_can_become_markup(tmp_path):
    evil = "<script>alert('1')</script> & \"$x$\" <img src=x onerror=alert(1)>"
    rates = {f"{evil}{i}": rate for i, rate in enumerate((0.5, 0.9, 0.95))}
    portrait = random_portrait((evil, "_b", "#0072b2 1.23456"))
    portrait = replace(portrait, method=evil, histories={evil: portrait.histories["LMNN"]})
    provenance = replace(
        PROVENANCE, command=evil, settings={evil: evil}, versions={evil: evil}, created=evil
    )
    comparisons = [random_comparison(f"{evil}{i}", rates) for i in range(3)]
    path = tmp_path / "report.html"
    write_report(
        path,
        {evil: comparisons},
        portraits={f"{evil}1": portrait},
        provenance=provenance,
        reference={f"{evil}0": {f"{evil}0": 5.0}},
        reference_name=evil,
        absent={evil: {evil: evil}},
        notes=[evil],
    )
    html = path.read_text(encoding="utf-8")
    reader = Reader(html)
    assert "script" not in reader.tags and "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert "onerror=alert(1)>" in reader.text
    assert "#0072b2 1.23456" in reader.text, "text is not rewritten like colours and coordinates"


def test_nothing_is_loaded_from_outside(tmp_path):
    html = report(tmp_path, [random_comparison("toy", RATES)], {"toy": random_portrait()})
    assert not re.search(r"https?:", html)
    assert not re.search(r"@import|url\((?!#)", html)
    for name, value in Reader(html).attributes:
        if name in ("src", "href"):
            assert value.startswith("#") or value == "data:,"


def test_ids_are_unique_and_references_resolve(tmp_path):
    comparisons = [random_comparison(f"set {i}", RATES) for i in range(3)]
    portraits = {f"set {i}": random_portrait() for i in range(3)}
    html = report(tmp_path, comparisons, portraits)
    reader = Reader(html)
    assert len(set(reader.ids)) == len(reader.ids)
    used = {v[1:] for n, v in reader.attributes if n == "href" and v.startswith("#")}
    used |= set(re.findall(r"url\(#([^)]+)\)", html))
    assert used <= set(reader.ids)


def test_pictures_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    n = 2000
    edges = np.column_stack([np.repeat(np.arange(n), 3), rng.integers(0, n, 3 * n)])
    large = replace(
        random_portrait(tuple("abcdefghij"), n=n), edges_before=edges, edges_after=edges
    )
    html = report(tmp_path, [random_comparison("toy", RATES)], {"toy": large})
    assert len(html) < 800_000


def test_few_rows_and_empty_histories(tmp_path):
    bare = Portrait(
        method="LN-LMNN",
        n_rows=1,
        rows=np.array([5]),
        labels=np.array(["x"]),
        before=np.zeros((1, 2)),
        after=np.zeros((1, 2)),
        edges_before=np.empty((0, 2), dtype=int),
        edges_after=np.empty((0, 2), dtype=int),
        neighbor_counts={"x": [1]},
        suspects=(Suspect(99, "x", 0, 0.0, "x"),),
        histories={"LMNN": []},
    )
    seen = Reader(report(tmp_path, [random_comparison("toy", {"LMNN": 0.5})], {"toy": bare})).text
    assert "LMNN is right on" in seen
    assert "Convergence" not in seen


def test_a_failure_leaves_no_file_behind(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="cannot be written: disk full"):
        write_report(path, [random_comparison("toy", RATES)], portraits={}, provenance=PROVENANCE)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_nothing_to_report_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="at least one comparison"):
        report(tmp_path, [])
