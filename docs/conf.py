"""The settings of Sphinx. docs/build_site.py copies the pages together and runs it."""

import os
import re
from pathlib import Path

from lnml.version import __version__

DOCS = Path(__file__).parent
# Of the gallery, the sources are always shown; `make docs` also runs them.
RUN_GALLERY = os.environ.get("LNML_RUN_GALLERY") == "1"

project = "lnml"
author = "The lnml developers"
copyright = author
version = release = __version__
root_doc = "index"
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
# autosummary would look for its templates beside the copied pages.
templates_path = [str(DOCS / "_templates")]
# What the build writes beside the sources, and scripts that draw figures.
exclude_patterns = ["_static", "**/GALLERY_HEADER.rst", "gallery/*.ipynb", "gallery/*.py"]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
mathjax_path = "mathjax/tex-svg.js"

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": [str(DOCS / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "plot_gallery": RUN_GALLERY,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    # That page would load scripts from elsewhere.
    "write_computation_times": False,
    "min_reported_time": 1,
    "download_all_examples": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "lnml"
html_static_path = ["_static"]
html_css_files = ["lnml.css"]
html_copy_source = False
html_show_sourcelink = False
# Pages without others below them would show an empty list.
html_sidebars = {"start": [], "cli": []}
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_footer_items": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def link_pages(app, what, name, obj, options, lines):
    """Docstrings name pages as files, such as docs/lmnn.md: make links of them."""
    lines[:] = [re.sub(r"(?<!`)docs/(\w+)\.md(#[\w-]+)?", r":doc:`/\1`", line) for line in lines]


# What the library asks its own estimators.
INSIDE = {"kernels_for", "not_on_cluster_because"}


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what classes inherit from scikit-learn and Python: it is documented there."""
    if name in INSIDE:
        return True
    plain = obj.fget if isinstance(obj, property) else obj
    module = getattr(plain, "__module__", None)
    return True if module and not module.startswith("lnml") else None


def setup(app):
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-skip-member", skip_foreign)
