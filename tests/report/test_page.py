"""The report as a file: what it says, that it is whole, that data cannot break it."""

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from results import PROVENANCE, made_up_explanation, random_comparison, random_portrait

from lnml.errors import InputError
from lnml.evaluation.portraits import Portrait, Suspect
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import classifier_tests
from lnml.report.advice import Advice
from lnml.report.leaderboard import votes_used
from lnml.report.page import write_report

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
        if not {"style", "script"} & set(self.open):
            self.text += data


def explained(seed=0, **options):
    return replace(random_portrait(seed=seed, **options), explanation=made_up_explanation())


def test_everything_asked_for_is_there_in_order(tmp_path):
    comparisons = [
        random_comparison(f"set {i}", RATES, seed=i, unfinished=["LMNN"]) for i in range(3)
    ]
    portraits = {f"set {i}": explained(seed=i) for i in range(3)}
    advice = Advice("Run this:", "lnml study --all")
    html = report(tmp_path, comparisons, portraits, notes=["A note."], advice=advice)
    seen = Reader(html).text
    order = [
        "best total score over 3 data sets",
        "Run this:",
        "lnml study --all",
        "Rows of the data are numbered from 0",
        "Total score",
        "Accuracy in %, with 95 % intervals",
        "Average ranks over 3 data sets",
        "LN-LMNN (CV) is best on set 0",
        "Leaderboard",
        "beats LMNN",
        "2 of 2 fits of LMNN did not meet their stopping rule",
        "Is the difference real?",
        "What the metric learned",
        "Columns and pairs of columns",
        "The data before and after",
        "Neighbours received, by class",
        "Where it errs",
        "Which classes are mixed up",
        "Rows that at least half of the metrics get wrong",
        "column 1 −1.2, 80 %",
        "Suspicious rows",
        "How well it was solved",
        "No metric of this kind is better by more than 0.1 %",
        "k_min 1 (1×); k_min 2 (1×)",
        "Convergence",
        "How to repeat",
        PROVENANCE.command,
        "seed",
        "Python",
        "ab" * 32,
        "A note.",
        "What a certificate means",
    ]
    position = 0
    for words in order:
        assert words in seen[position:], f"{words!r} should come later"
        position = seen.index(words, position)
    assert "scaleno" in re.sub(r"\s", "", seen), "settings are said in words"


def test_empty_parts_are_left_out(tmp_path):
    """Results of older versions have no classes of rows; one data set has no ranks."""
    found = random_comparison("toy", {"Euclidean": 0.6})
    old = replace(
        found,
        data=replace(found.data, truth=()),
        results=tuple(replace(part, predicted=None) for part in found.results),
    )
    html = report(tmp_path, [old])
    headings = re.findall(r"<h[23]>(.*?)</h[23]>", html)
    assert headings == ["Leaderboard", "How to repeat", "Settings", "Versions"]
    links = re.findall(r'<li><a href="#([^"]+)', html)
    assert links == ["verdict", "data-0-0-board", "repeat"]


def test_the_leaderboard_is_sorted_and_says_who_ties(tmp_path):
    rates = {"Euclidean": 0.5, "LMNN": 0.93, "NCA": 0.95, "SVM": 0.99}
    html = report(tmp_path, [random_comparison("toy", rates, classifiers=["SVM"])])
    board = re.search(r'<table class="board.*?</table>', html, re.S)[0]
    methods = re.findall(r'<th scope="row">(.*?)</th>\n<td class="group">(.*?)</td>', board)
    assert methods == [("NCA", "1"), ("LMNN", "1"), ("Euclidean", "2"), ("SVM", "–")]
    assert board.index("For reference: no distance") < board.index("SVM")
    assert "The dashed line is the share of the largest class" in board
    assert board.count('class="base"') == 4


def test_classifiers_have_a_group_of_their_own(tmp_path):
    found = random_comparison("toy", {"SVM": 0.99, **RATES}, classifiers=["SVM"])
    html = report(tmp_path, [found], {"toy": random_portrait()})
    tables = re.findall(r"<table.*?</table>", html, re.S)
    with_it = [re.search(r'class="(\w+)', table)[1] for table in tables if "SVM" in table]
    assert with_it == ["board", "pvalues", "solved"]
    p = classifier_tests(found).adjusted
    assert p.shape == (1, 3) and (p[0] < 0.05).tolist() == [True, True, False]
    own = next(table for table in tables if "Classifier</th>" in table)
    assert own.count('class="significant"') == 2
    assert "For reference: no distance" not in report(tmp_path, [random_comparison("toy", RATES)])


def test_confusion_and_accuracy_by_class(tmp_path):
    found = random_comparison("toy", {"Euclidean": 0.5, "LMNN": 0.8})
    counts = found.confusion("LMNN")
    right = found.correct("LMNN")
    assert counts.diagonal().tolist() == [right[:60].sum(), right[60:].sum()]
    assert counts.sum(axis=1).tolist() == [60, 60]
    table = re.search(r'<table class="confusion.*?</table>', report(tmp_path, [found]), re.S)[0]
    assert re.findall(r">(\d+)</td>", table) == [str(count) for count in counts.ravel()]


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
    assert html.count('<table class="accuracies"') == 2
    for words in ("Small:", "Large:", "not obtainable", "12.34", "43.21", "the paper"):
        assert words in reader.text


def test_columns_choose_and_order_methods(tmp_path):
    found = random_comparison("toy", {"NCA": 0.99, **RATES})
    columns = {"": ["LN-LMNN (CV)", "Euclidean", "ITML"]}
    html = report(tmp_path, [found], columns=columns)
    assert "NCA" not in html
    pvalues = re.search(r'<table class="pvalues".*?</table>', html, re.S)[0]
    assert re.findall(r'<th scope="col">(.*?)</th>', pvalues) == ["LN-LMNN (CV)", "Euclidean"]


def test_no_data_can_become_markup(tmp_path):
    evil = "<script>alert('1')</script> & \"$x$\" <img src=x onerror=alert(1)>"
    rates = {f"{evil}{i}": rate for i, rate in enumerate((0.5, 0.9, 0.95))}
    portrait = random_portrait((evil, "_b", "#0072b2 1.23456"))
    portrait = replace(
        portrait,
        method=evil,
        histories={evil: portrait.histories["LMNN"]},
        explanation=made_up_explanation(evil, (evil, "_b")),
    )
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
        advice=Advice(evil, evil),
    )
    html = path.read_text(encoding="utf-8")
    reader = Reader(html)
    assert reader.tags.count("script") == 1 and "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert "onerror=alert(1)>" in reader.text
    assert "#0072b2 1.23456" in reader.text, "text is not rewritten like colours and coordinates"


def test_nothing_is_loaded_from_outside(tmp_path):
    html = report(tmp_path, [random_comparison("toy", RATES)], {"toy": random_portrait()})
    # The name of a kind of element is no address to load from.
    assert not re.search(r"https?:", html.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"@import|url\((?!#)", html)
    for name, value in Reader(html).attributes:
        if name in ("src", "href"):
            assert value.startswith(("#", "data:application/json;base64,")) or value == "data:,"


def test_the_policy_allows_this_script_and_no_other(tmp_path):
    html = report(tmp_path, [random_comparison("toy", RATES)])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)', html)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("unsafe") == 1 and "style-src-attr 'unsafe-inline'" in policy
    for tag, source in (("script", "script-src"), ("style", "style-src-elem")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy


def test_results_can_be_saved_from_the_page(tmp_path):
    found = random_comparison("toy", RATES)
    html = report(tmp_path, [found])
    link = re.search(r'href="data:application/json;base64,([^"]+)"', html)[1]
    stored = json.loads(base64.b64decode(link))
    again = Comparison.from_json(stored["comparisons"][0])
    assert again.to_json() == found.to_json()
    large = random_comparison("toy", {str(i): 0.5 for i in range(3)}, n=60_000)
    assert "application/json" not in report(tmp_path, [large]), "too large for a page"


def test_the_same_results_make_the_same_page(tmp_path):
    made = [report(tmp_path, [random_comparison("toy", RATES)], {"toy": explained()}) for _ in "ab"]
    assert made[0] == made[1]


def test_long_names_are_shortened_and_written_out_once(tmp_path):
    long = "a label of " + "3,000 characters " * 175
    found = random_comparison("toy", RATES)
    found = replace(found, data=replace(found.data, class_sizes={"x": 60, long: 60}))
    html = report(tmp_path, [found], {"toy": random_portrait(("x", long))})
    reader = Reader(html)
    assert reader.text.count(long) == 1
    assert html.count('href="#name-0"') > 3 and "name-0" in reader.ids


def test_ids_are_unique_and_references_resolve(tmp_path):
    comparisons = [random_comparison(f"set {i}", RATES) for i in range(3)]
    portraits = {f"set {i}": explained() for i in range(3)}
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
    assert len(html) < 900_000


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
