"""Build the site: copy all pages to one folder, and run Sphinx there.

    python docs/build_site.py                build/site, with the gallery (minutes)
    python docs/build_site.py --no-gallery   the same without running the examples

The pages stay plain Markdown, with links between files of the repository. In the copy, what is in
`docs` comes to the top, and links follow. Warnings are errors.
"""

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Sphinx-Gallery makes a page of each file here.
GALLERY = DOCS / "gallery"
PAGES = (
    "docs/*.md",
    "docs/figures/*.svg",
    "docs/figures/*.png",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "benchmarks/results/*.png",
    "src/lnml/datasets/data/README.md",
)
LINK = re.compile(r"\]\(([^()#:\s]+)(#[^()\s]*)?\)")
# Doctest needs an empty line after its output; a reader of the site does not.
END_OF_DOCTEST = re.compile(r"\n\n```(?=\n)")


def place(path: Path) -> Path:
    """Where a file of the repository comes to in the copy, relative to its top."""
    if path.parent == GALLERY:
        name = "index" if path.stem == "GALLERY_HEADER" else path.stem
        return Path("gallery", f"{name}.rst")
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)


def with_new_links(page: Path) -> tuple[str, list[Path]]:
    """Return the text of a page with links as in the copy, and the files that it links to."""
    linked = []

    def renew(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / match[1]))
        if not target.is_file():
            return match[0]
        linked.append(target)
        return f"]({os.path.relpath(place(target), place(page).parent)}{match[2] or ''})"

    text = END_OF_DOCTEST.sub("\n```", page.read_text(encoding="utf-8"))
    return LINK.sub(renew, text), linked


def write_if_new(path: Path, content: bytes) -> None:
    """Write a file, unless it is there: Sphinx reads again what is younger than its last build."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_pages(folder: Path) -> None:
    """Copy pages, and files that they link to; remove pages that are gone."""
    files = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    kept = {folder / place(path) for path in files}
    for path in sorted(files):
        content = path.read_bytes()
        if path.suffix == ".md":
            text, linked = with_new_links(path)
            content = text.encode()
            for other in {path for path in linked if path.parent != GALLERY} - files:
                write_if_new(folder / place(other), other.read_bytes())
        write_if_new(folder / place(path), content)
    for old in set(folder.rglob("*.md")) - kept:
        old.unlink()


def build(output: Path, *, gallery: bool) -> int:
    """Build into a folder: pages in `html`, the copy in `source`. Returns Sphinx's exit status."""
    from sphinx.cmd.build import build_main

    source = output / "source"
    # What is gone from the reference would stay. Examples stay: one that has not changed is not run
    # again.
    shutil.rmtree(source / "generated", ignore_errors=True)
    copy_pages(source)
    os.environ["LNML_RUN_GALLERY"] = str(int(gallery))
    options = ["-b", "html", "-c", str(DOCS), "-d", str(output / "doctrees"), "-W", "--keep-going"]
    return build_main([*options, "-q", str(source), str(output / "html")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--no-gallery", action="store_true", help="do not run the examples")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    given = parser.parse_args()
    sys.exit(build(given.output.resolve(), gallery=not given.no_gallery))
