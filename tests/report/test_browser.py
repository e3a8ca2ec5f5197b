"""The page in a real browser; skipped where there is no Chromium."""

import pytest
from browser import CHROMIUM, NO_CHROMIUM, browse
from results import PROVENANCE, random_comparison, random_portrait

from lnml.report.page import write_report

pytest.importorskip("scikit_posthocs")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

# Loads the page in frames of two widths and writes what it finds there into the document.
PROBE = """<!DOCTYPE html><title>probe</title><link rel="icon" href="data:,">
<iframe src="/report.html" width="360" height="800"></iframe>
<iframe src="/report.html" width="1200" height="800"></iframe>
<script>
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, all = what => [...page.querySelectorAll(what)];
    return {
      title: page.title,
      overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      background: getComputedStyle(page.body).backgroundColor,
      tables: all("table").map(table => table.rows.length),
      captions: all("table > caption").length,
      pictures: all("svg").map(svg => Math.round(svg.getBoundingClientRect().width)),
      unnamed: all("svg:not([aria-label])").length,
      drawn: all("svg use").map(use => use.getBoundingClientRect())
        .filter(box => box.width + box.height > 0).length,
      uses: all("svg use").length,
      ink: getComputedStyle(all("svg text")[0]).fill,
      headings: all("h1, h2, h3").map(heading => heading.textContent),
      links: all("nav a").map(a => page.querySelector(a.getAttribute("href")) !== null),
      labels: all("td").map(td => td.textContent),
      scripts: page.scripts.length,
      requests: frame.contentWindow.performance.getEntriesByType("resource").map(r => r.name),
    };
  });
  document.body.append("FOUND" + JSON.stringify(found) + "END");
};
</script>"""


def probe(tmp_path, comparisons, portraits, *options):
    path = tmp_path / "report.html"
    write_report(path, comparisons, portraits=portraits, provenance=PROVENANCE)
    pages = {"/probe.html": PROBE, "/report.html": path.read_text(encoding="utf-8")}
    views, console, requests = browse(pages, tmp_path, *options)
    assert console == []
    assert sorted(requests) == ["/probe.html", "/report.html", "/report.html"]
    assert [view["requests"] for view in views] == [[], []]
    return views


RATES = {"Euclidean": 0.6, "LMNN": 0.8, "LN-LMNN": 0.9, "LN-LMNN (CV)": 0.92}


def test_one_data_set(tmp_path):
    label = "<script>alert(1)</script>"
    found = random_comparison(label, RATES)
    narrow, wide = probe(tmp_path, [found], {label: random_portrait((label, "b&amp;c"))})
    for view in (narrow, wide):
        assert view["title"] == f"Which distance is best on {label}?"
        assert view["overflow"] <= 0
        # Accuracies, p-values, costs, suspects, fingerprints: header and rows each.
        assert view["tables"] == [2, 5, 5, 3, 2]
        assert view["captions"] == 5
        # Accuracy, two fits, before, after, counts.
        assert len(view["pictures"]) == 6 and min(view["pictures"]) > 200
        assert view["unnamed"] == 0 and view["scripts"] == 0
        assert view["drawn"] == view["uses"] > 120
        assert label in view["labels"] and "b&amp;c" in view["labels"]
    assert max(narrow["pictures"]) <= 360


def test_several_data_sets_in_the_dark(tmp_path):
    comparisons = [random_comparison(f"set {i}", RATES, seed=i) for i in range(3)]
    portraits = {"set 1": random_portrait()}
    dark, _ = probe(tmp_path, comparisons, portraits, "--blink-settings=preferredColorScheme=0")
    assert dark["overflow"] <= 0
    assert dark["background"] == "rgb(20, 23, 28)"
    assert dark["ink"] == "rgb(227, 231, 236)", "text of pictures has the page's colour"
    assert len(dark["links"]) == 5 and all(dark["links"])
    # Three accuracies, the ranks, and five of the only portrait.
    assert len(dark["pictures"]) == 9
    for heading in ("Overview", "set 0", "set 1", "set 2", "Average ranks", "How to repeat"):
        assert heading in dark["headings"]


def test_the_probe_sees_errors_and_outside_requests(tmp_path):
    """Without this, the tests above could pass because nothing is ever noticed."""
    bad = (
        '<img src="https://outside.test/a.png"><svg><text>a</text></svg>'
        '<link rel="stylesheet" href="/own.css"><script>nonsense()</script>'
    )
    views, console, requests = browse({"/probe.html": PROBE, "/report.html": bad}, tmp_path)
    assert any("nonsense is not defined" in line for line in console)
    assert "/own.css" in requests
    assert "https://outside.test/a.png" in views[0]["requests"]
