"""The page in a real browser; skipped where there is no Chromium."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, NO_CHROMIUM, browse
from results import PROVENANCE, made_up_explanation, random_comparison, random_portrait

from lnml.evaluation.results import Comparison, DataSummary, FoldResult
from lnml.evaluation.statistics import accuracy_interval
from lnml.report.page import write_report

pytest.importorskip("scikit_posthocs")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

# `make` installs it, where there is npm.
AXE = Path(__file__).parents[2] / ".venv" / "node_modules" / "axe-core" / "axe.min.js"

# Loads the page in frames of two widths and writes what it finds there into the document.
PROBE = """<!DOCTYPE html><title>probe</title><link rel="icon" href="data:,">
<iframe src="/report.html" width="390" height="800"></iframe>
<iframe src="/report.html" width="1300" height="800"></iframe>
<script>
const use = (frame, page, all) => ACTIONS;
window.onload = async () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, all = what => [...page.querySelectorAll(what)];
    found.push({
      title: page.title,
      overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      background: getComputedStyle(page.body).backgroundColor,
      tables: all("table").map(table => [table.dataset.file, table.rows.length]),
      captions: all("table > caption").length,
      pictures: all("figure svg").map(svg => Math.round(svg.getBoundingClientRect().width)),
      unnamed: all("svg:not([aria-label])").length,
      drawn: all("svg use").map(use => use.getBoundingClientRect())
        .filter(box => box.width + box.height > 0).length,
      uses: all("svg use").length,
      ink: getComputedStyle(all("figure svg text")[0] ?? page.body).fill,
      headings: all("h1, h2, h3").map(heading => heading.textContent),
      links: all("nav a, a.long").map(a => page.querySelector(a.getAttribute("href")) !== null),
      side: page.querySelector("main").getBoundingClientRect().left
        >= page.querySelector("nav").getBoundingClientRect().right,
      cut: all(".scroll").filter(box => box.scrollWidth > box.clientWidth + 1).length,
      hints: all(".hint").filter(hint => hint.getBoundingClientRect().height > 0).length,
      labels: all("td").map(td => td.textContent),
      requests: frame.contentWindow.performance.getEntriesByType("resource").map(r => r.name),
      used: await use(frame, page, all),
    });
  }
  document.body.append("FOUND" + JSON.stringify(found) + "END");
};
</script>"""

# What a reader does: sorts a table, points at a row, saves a table.
READ = """(async () => {
  const saved = [], view = frame.contentWindow;
  view.URL.createObjectURL = blob => { saved.push(blob); return "data:,"; };
  const board = page.querySelector(".board");
  const order = () => [...board.tBodies[0].rows].map(row => row.cells[0].textContent);
  const time = board.tHead.rows[0].cells[4], before = order();
  time.querySelector("button").click();
  const up = [time.getAttribute("aria-sort"), order()];
  time.querySelector("button").click();
  const down = [time.getAttribute("aria-sort"), order()];
  const over = mark => mark.dispatchEvent(
    new view.PointerEvent("pointerover", { bubbles: true }));
  over(page.querySelector('tr[data-row="4"]'));
  const lit = [all("use + .halo").length, all("tr.lit").length];
  const mark = page.querySelector('use[data-row="6"]');
  over(mark);
  const tip = page.querySelector(".tooltip");
  const said = [tip.hidden, tip.textContent, all(".halo").length, all("tr.lit").length];
  page.dispatchEvent(new view.KeyboardEvent("keydown", { key: "Escape" }));
  const gone = [tip.hidden, all(".halo").length];
  const long = page.querySelector("a.long");
  over(long);
  const whole = tip.textContent;
  page.querySelector('[aria-label="Save as CSV: p-values"]').click();
  page.querySelector('[aria-label="Save as CSV: hard-rows"]').click();
  page.querySelector('[aria-label="Save as CSV: leaderboard"]').click();
  const [csv, hard, leaders] = await Promise.all(saved.map(blob => blob.text()));
  return { before, hard, leaders, up, down, lit, said, gone, whole, csv,
    titles: all("svg title").length };
})()"""


def probe(tmp_path, comparisons, portraits, *options, actions="null"):
    path = tmp_path / "report.html"
    write_report(path, comparisons, portraits=portraits, provenance=PROVENANCE)
    html = path.read_text(encoding="utf-8")
    pages = {"/probe.html": PROBE.replace("ACTIONS", actions), "/report.html": html}
    views, console, requests = browse(pages, tmp_path, *options)
    assert console == []
    assert sorted(requests) == ["/probe.html", "/report.html", "/report.html"]
    assert [view["requests"] for view in views] == [[], []]
    return views


RATES = {"Euclidean": 0.6, "LMNN": 0.8, "LN-LMNN": 0.9, "LN-LMNN (CV)": 0.92}


def explained(labels=("x", "y")):
    return replace(random_portrait(labels), explanation=made_up_explanation("LMNN", labels))


def test_one_data_set(tmp_path):
    label = "<script>alert(1)</script>"
    found = random_comparison(label, RATES)
    narrow, wide = probe(tmp_path, [found], {label: explained((label, "b&amp;c"))})
    for view in (narrow, wide):
        assert view["title"] == f"Which distance is best on {label}?"
        assert view["overflow"] <= 0
        assert view["tables"] == [
            ["leaderboard", 5],
            ["p-values", 5],
            ["columns", 5],
            ["classes", 3],
            ["confusion", 3],
            ["hard-rows", 3],
            ["suspicious-rows", 3],
            ["certificates", 4],
            ["fingerprints", 2],
        ]
        assert view["captions"] == 9
        # Columns, pairs, before, after, counts, two fits.
        assert len(view["pictures"]) == 7 and min(view["pictures"]) > 200
        assert view["unnamed"] == 0
        assert view["drawn"] == view["uses"] > 120
        assert label in view["labels"] and "b&amp;c" in view["labels"]
        assert all(view["links"])
    assert max(narrow["pictures"]) <= 390
    assert max(wide["pictures"]) > 400
    assert not narrow["side"] and wide["side"], "contents are at the side where there is room"
    assert narrow["hints"] == narrow["cut"] > 2
    assert wide["hints"] == wide["cut"]


def test_several_data_sets_in_the_dark(tmp_path):
    comparisons = [random_comparison(f"set {i}", RATES, seed=i) for i in range(3)]
    portraits = {"set 1": random_portrait()}
    dark, _ = probe(tmp_path, comparisons, portraits, "--blink-settings=preferredColorScheme=0")
    assert dark["overflow"] <= 0
    assert dark["background"] == "rgb(20, 23, 28)"
    assert dark["ink"] == "rgb(227, 231, 236)", "text of pictures has the page's colour"
    assert len(dark["links"]) == 6 and all(dark["links"])
    # Three accuracies, the ranks, and five of the only portrait.
    assert len(dark["pictures"]) == 9
    for heading in ("Overview", "set 0", "set 1", "set 2", "Average ranks", "How to repeat"):
        assert heading in dark["headings"]


def test_what_the_script_adds(tmp_path):
    long = "a label that is, for sure, longer than a cell of a table"
    found = random_comparison("toy", RATES)
    slow = {"Euclidean": 4.0, "LMNN": 3.0, "LN-LMNN": 2.0, "LN-LMNN (CV)": 11.0}
    parts = tuple(replace(part, seconds=slow[part.method]) for part in found.results)
    sizes = {"=x": 60, long: 60}
    found = replace(found, results=parts, data=replace(found.data, class_sizes=sizes))
    _, wide = probe(tmp_path, [found], {"toy": explained(("=x", long))}, actions=READ)
    used = wide["used"]
    by_time = sorted(slow, key=slow.get)
    assert used["before"] == sorted(RATES, key=lambda m: -found.accuracy(m))
    assert used["up"] == ["ascending", by_time], "by numbers, not by their texts"
    assert used["down"] == ["descending", by_time[::-1]]
    # Row 4 is in both views, and among the hard and the suspicious rows.
    assert used["lit"] == [2, 2]
    assert used["said"] == [False, f"row 6, class {long}", 2, 0]
    assert used["gone"] == [True, 0]
    assert used["whole"] == long
    lines = used["csv"].split("\r\n")
    assert lines[0] == ",Euclidean,LMNN,LN-LMNN,LN-LMNN (CV)" and len(lines) == 6
    near = f"row 8, {long} (0.5); row 10, =x (0.75)"
    apart = "from row 10 (0.75): column 1 −1.2, 80 %; column 0 +0.5, 20 %"
    assert used["hard"].split("\r\n")[1] == f'2,\'=x,"{long}",2,"{near}","{apart}"'
    low, high = 100 * np.array(accuracy_interval(found.correct(used["before"][0])))
    assert f",{low:.6f} to {high:.6f}," in used["leaders"].split("\r\n")[1]
    assert used["titles"] == 0, "the browser shows no second tip"


def test_the_probe_sees_errors_and_outside_requests(tmp_path):
    """Without this, the tests above could pass because nothing is ever noticed."""
    bad = (
        '<img src="https://outside.test/a.png"><svg><text>a</text></svg><nav></nav><main></main>'
        '<link rel="stylesheet" href="/own.css"><script>nonsense()</script>'
    )
    pages = {"/probe.html": PROBE.replace("ACTIONS", "null"), "/report.html": bad}
    views, console, requests = browse(pages, tmp_path)
    assert any("nonsense is not defined" in line for line in console)
    assert "/own.css" in requests
    assert "https://outside.test/a.png" in views[0]["requests"]


def large_comparison():
    """Twelve methods, forty classes with labels of 3,000 characters, and their labels."""
    rng = np.random.default_rng(0)
    labels = [f"class {i} " + "of a long name " * 200 for i in range(40)]
    truth = np.arange(2000) % 40
    results = []
    for number in range(12):
        right = rng.uniform(size=2000) < 0.5 + 0.04 * number
        taken = np.where(right, truth, (truth + rng.integers(1, 40, 2000)) % 40)
        name = f"Method {number} of a package with long names"
        results.append(FoldResult(name, 0, np.arange(2000), right, predicted=taken))
    sizes = dict.fromkeys(labels, 50)
    return Comparison(
        DataSummary("large", 200, sizes, truth=truth.tolist()), tuple(results)
    ), labels


def test_a_large_report_stays_usable(tmp_path):
    found, labels = large_comparison()
    portrait = random_portrait(tuple(labels), n=1000)
    explanation = made_up_explanation("Method 11", tuple(labels), n_columns=200)
    narrow, wide = probe(tmp_path, [found], {"large": replace(portrait, explanation=explanation)})
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    for view in (narrow, wide):
        assert view["overflow"] <= 0 and view["unnamed"] == 0
        assert ["confusion", 41] in view["tables"] and ["columns", 13] in view["tables"]
        assert all(view["links"]) and len(view["links"]) > 100
        assert max(map(len, view["labels"])) < 300, "no cell holds a long label"


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core: npm install --prefix .venv axe-core")
def test_axe_finds_nothing(tmp_path):
    """Rules of WCAG and of good practice, on a narrow page in the dark and a wide one in light.

    The policy of the page forbids scripts of others, so it is taken out here.
    """
    path = tmp_path / "report.html"
    long = "a label that is, for sure, longer than a cell of a table"
    found = random_comparison("toy", RATES | {"SVM": 0.9}, classifiers=["SVM"])
    found = replace(found, data=replace(found.data, class_sizes={"x": 60, long: 60}))
    other = random_comparison("other", RATES, seed=1)
    portraits = {"toy": explained(("=x", long)), "other": explained()}
    write_report(path, [found, other], portraits=portraits, provenance=PROVENANCE, notes=["So."])
    html = path.read_text(encoding="utf-8").replace("Content-Security-Policy", "X-None")
    html = html.replace("</body>", '<script src="/axe.js"></script></body>')
    look = """frame.contentWindow.axe.run(page).then(found => found.violations.map(
      rule => [rule.id, rule.help, rule.nodes.slice(0, 3).map(node => node.html)]))"""
    pages = {
        "/probe.html": PROBE.replace("ACTIONS", look).replace(
            "<iframe", '<iframe style="color-scheme: dark"', 1
        ),
        "/report.html": html,
        "/axe.js": AXE.read_bytes(),
    }
    (narrow, wide), console, _ = browse(pages, tmp_path)
    assert console == []
    assert [narrow["background"], wide["background"]] == ["rgb(20, 23, 28)", "rgb(255, 255, 255)"]
    assert narrow["used"] == wide["used"] == []
    # It does find what is wrong.
    pages["/report.html"] = html.replace(' lang="en"', "").replace('aria-label="Contents"', "")
    (narrow, _), _, _ = browse(pages, tmp_path)
    assert [rule for rule, *_ in narrow["used"]] == ["html-has-lang"]
