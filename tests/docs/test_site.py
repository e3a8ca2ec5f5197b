"""The site: it builds without a warning, and a browser shows it without a network.

One test, since the tests of a file may run in two processes, and the build takes a while.
"""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import CHROMIUM, NO_CHROMIUM, browse

pytest.importorskip("sphinx_gallery", reason="Sphinx is no part of the oldest environment")

ROOT = Path(__file__).parents[2]
OPENED = ("index", "lmnn", "generated/lnml.LNML", "gallery/plot_02_rounds")
# Loads pages in frames, waits for their formulas, and writes what it finds into the document.
PROBE = """<!DOCTYPE html><title>probe</title><link rel="icon" href="data:,">
FRAMES
<iframe src="/search.html?q=penalty" width="390" height="800"></iframe>
<script>
const until = async condition => {
  for (let i = 0; i < 100 && !condition(); i++) await new Promise(done => setTimeout(done, 100));
};
window.onload = async () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, all = what => [...page.querySelectorAll(what)];
    await frame.contentWindow.MathJax?.startup?.promise;
    if (page.querySelector("#search-results"))
      await until(() => all("#search-results li").length > 3);
    found.push({
      title: page.title,
      heading: page.querySelector("h1")?.textContent ?? "",
      overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      cut: all("article :is(p, dt, dd, h1, h2, h3)").filter(each => !each.closest("table, pre") &&
        each.getBoundingClientRect().right > page.documentElement.clientWidth + 1)
        .map(each => each.textContent.slice(0, 60)),
      formulas: all(".math").length,
      drawn: all(".math").filter(span => span.querySelector("mjx-container svg")).length,
      wrong: all("mjx-merror, [data-mjx-error]").length,
      broken: all("img").filter(img => img.complete && !img.naturalWidth).map(img => img.src),
      code: all("div.highlight").length,
      results: all("#search-results li").length,
      menu: all(".bd-header .nav-link").map(link => link.textContent.trim()),
      requests: frame.contentWindow.performance.getEntriesByType("resource").map(r => r.name),
    });
  }
  document.body.append("FOUND" + JSON.stringify(found) + "END");
};
</script>"""


class Folder:
    """The files of a folder, by their paths on a server."""

    def __init__(self, folder, **pages):
        self.folder, self.pages = folder, pages

    def get(self, path):
        file = self.folder / path.lstrip("/")
        return self.pages.get(path) or (file.read_bytes() if file.is_file() else None)


def test_site_builds_and_a_browser_shows_it(tmp_path):
    command = [
        sys.executable,
        ROOT / "docs" / "build_site.py",
        "--no-gallery",
        "--output",
        tmp_path,
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    html = tmp_path / "html"
    names = [path.stem for path in (ROOT / "docs").glob("*.md")]
    assert all((html / f"{name}.html").is_file() for name in names)
    assert not links_to_nowhere(html)
    assert not loaded_from_elsewhere(html)
    if CHROMIUM is None:
        pytest.skip(f"built, but not opened: {NO_CHROMIUM}")
    check_in_browser(html, tmp_path)


def links_to_nowhere(html):
    """Relative links to files or anchors that are not there, of all pages but the search."""
    anchors = {}
    for path in html.rglob("*.html"):
        anchors[path] = set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))
    missing = []
    for path in anchors:
        for target in re.findall(r'<a [^>]*href="([^"]+)"', path.read_text(encoding="utf-8")):
            name, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:|//", target):
                continue
            file = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not file.exists() or (anchor and anchor not in anchors.get(file, {anchor})):
                missing.append((str(path.relative_to(html)), target))
    return missing


def loaded_from_elsewhere(html):
    """Scripts, style sheets and pictures that need a network, of all pages."""
    tag = re.compile(
        r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^>]*>"""
    )
    return [
        (str(path.relative_to(html)), found)
        for path in html.rglob("*.html")
        for found in tag.findall(path.read_text(encoding="utf-8"))
    ]


def check_in_browser(html, tmp_path):
    frames = [f'<iframe src="/{page}.html" width="390" height="800"></iframe>' for page in OPENED]
    probe = PROBE.replace("FRAMES", "\n".join(frames))
    views, console, requests = browse(Folder(html, **{"/probe.html": probe}), tmp_path)
    # The theme tells the console how it chose between light and dark.
    assert [line for line in console if not re.search(r"theme mode|\[PST\]", line)] == []
    folder = Folder(html, **{"/probe.html": probe})
    assert [path for path in requests if folder.get(path) is None] == [], "missing files"
    for view in views:
        assert all(name.startswith("http://127.0.0.1") for name in view["requests"]), view
        assert view["overflow"] <= 0 and view["cut"] == [], view
        assert view["broken"] == [] and view["wrong"] == 0, view
        assert view["drawn"] == view["formulas"], view["title"]
    start, method, reference, example, search = views
    assert start["heading"].startswith("lnml") and "Reference" in start["menu"]
    assert method["formulas"] > 40
    assert reference["heading"].startswith("LNML") and reference["code"] >= 1
    assert example["heading"].startswith("Neighbourhoods") and example["code"] >= 3
    assert search["results"] > 3


def test_the_probe_sees_what_is_missing(tmp_path):
    """Without this, the test above could pass because nothing is ever noticed."""
    (tmp_path / "bad.html").write_text(
        '<a href="gone.html"></a><a href="bad.html#gone"></a><a id="a" href="#a"></a>'
    )
    assert len(links_to_nowhere(tmp_path)) == 2
    (tmp_path / "worse.html").write_text(
        '<script src="https://a.org/b.js"></script><link href="//a.org/c.css"><img src="d.png">'
        '<a href="https://a.org">a link is no trouble</a>'
    )
    assert len(loaded_from_elsewhere(tmp_path)) == 2


def test_all_public_names_are_in_the_reference_with_an_example():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed, module = set(), None
    for line in text.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = importlib.import_module(found[1])
        elif found := re.match(r"   (\w+)$", line):
            listed.add(id(getattr(module, found[1])))
    modules = re.findall(r"currentmodule:: (\S+)", text)
    public = {f"lnml.{path.parent.name}" for path in (ROOT / "src" / "lnml").glob("*/__init__.py")}
    with_names = {name for name in public if getattr(importlib.import_module(name), "__all__", ())}
    # Kernels are for the library itself, and the command line has a page of its own.
    inside = {"lnml.kernels", "lnml.cli"}
    assert set(modules) == with_names - inside | {"lnml", "lnml.contract"}
    for name in modules:
        module = importlib.import_module(name)
        for each in module.__all__:
            found = getattr(module, each)
            assert id(found) in listed, f"docs/api.md lacks {name}.{each}"
            assert ">>> " in (found.__doc__ or ""), f"{name}.{each} has no example"
