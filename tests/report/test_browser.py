"""The page in a real browser; skipped where there is no Chromium."""

import json
import re
import shutil
import subprocess
import threading
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from results import PROVENANCE, random_comparison, random_portrait

from lnml.report.page import write_report

pytest.importorskip("scikit_posthocs")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
)

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


class Site(ThreadingHTTPServer):
    """Serves pages and remembers what was asked for."""

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.requests = pages, []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        body = self.server.pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *args):
        pass


def browse(pages, tmp_path, *options):
    """Open /probe.html; return what it found, the console's lines and the requests."""
    with Site(pages) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--virtual-time-budget=20000",
            *options,
            "--dump-dom",
            f"http://127.0.0.1:{site.server_port}/probe.html",
        ]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=180)
        site.shutdown()
    assert shown.returncode == 0, shown.stderr
    console = [line for line in shown.stderr.splitlines() if ":CONSOLE" in line]
    found = re.search(r"FOUND(\[.*\])END", unescape(shown.stdout), re.S)
    assert found, shown.stdout[-2000:]
    return json.loads(found[1]), console, site.requests


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
