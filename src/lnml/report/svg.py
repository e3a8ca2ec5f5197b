"""Matplotlib figures as SVG inside a page: small, and in the colours of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnml.plotting.style import COLORS

# Stands for the colour of the page's text while matplotlib draws.
TEXT = "#010203"
# What matplotlib draws with, and what the page has in its place (light and dark differ).
PAGE_COLORS = {
    TEXT: "currentColor",
    "#ffffff": "var(--page)",
    **{color: f"var(--class-{i})" for i, color in enumerate(COLORS)},
}
# Pixels of the page for a point of a picture, at most: letters of narrow pictures stay letters.
MOST_SCALE = 1.7
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.color": TEXT,
    "axes.edgecolor": TEXT,
    "axes.labelcolor": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "grid.color": TEXT,
    "font.size": 9.5,
    "axes.linewidth": 0.7,
    "axes.titlesize": 10,
    "legend.fontsize": 9,
    "legend.title_fontsize": 9,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}


@contextmanager
def page_style() -> Iterator[None]:
    """Set the style for figures that :func:`to_svg` will write."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure without a window; sizes are in inches."""
    figure = Figure(figsize=(width, height))
    return figure.add_subplot()


class Mark(NamedTuple):
    """What a part of a picture says when one points at it, and the row of the data it shows."""

    tip: str
    row: int | None = None


def to_svg(
    ax: Axes,
    name: str,
    description: str,
    marks: Mapping[str, Mark | Sequence[Mark]] | None = None,
) -> str:
    """Return the figure of some axes as an ``<svg>`` element.

    Parameters
    ----------
    ax : matplotlib axes
        Drawn within :func:`page_style`.
    name : str
        Unique in the page: elements that are drawn repeatedly are named after it.
    description : str
        What it shows, for readers who cannot see it.
    marks : dict of str to Mark or sequence of Mark, optional
        By the ``gid`` of an artist: what it says, or what each of its markers says.
    """
    figure = cast(Figure, ax.figure)
    target = io.StringIO()
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": name}):
        # The browser has fonts for the letters that matplotlib's own one lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, format="svg", bbox_inches="tight", pad_inches=0.04, transparent=True)
    return _for_page(target.getvalue(), description, marks or {})


def _for_page(svg: str, description: str, marks: Mapping[str, Mark | Sequence[Mark]]) -> str:
    """Drop what a page does not need and shorten the rest; text between tags stays as it is."""
    opening, inside = re.findall(r"<svg[^>]*>", svg)[0], svg.split("</metadata>", 1)[1]
    box = re.findall(r'viewBox="([^"]+)"', opening)[0]
    # This style would apply to the whole page, which has its own style.
    inside = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", inside)
    for gid in marks:
        inside = inside.replace(f'<g id="{gid}">', f'<g data-mark="{gid}">')
    inside = re.sub(r"<[^>]*>", lambda tag: _shorten(tag[0]), inside)
    inside = _hoist_styles(inside)
    for gid, said in marks.items():
        inside = _marked(inside, f'<g data-mark="{gid}">', said)
    widest = MOST_SCALE * float(box.split()[2])
    return (
        f'<svg viewBox="{box}" style="max-width:{widest:.0f}px" role="img" '
        f'aria-label="{escape(description)}">' + re.sub(r"\s*\n\s*", "\n", inside).strip()
    )


def _marked(svg: str, group: str, said: Mark | Sequence[Mark]) -> str:
    """Let a group, or each of its markers, say something; browsers show titles without a script."""
    before, found, after = svg.partition(group)
    if not found:
        return svg
    if isinstance(said, Mark):
        return f"{before}<g{_attributes(said)}><title>{escape(said.tip)}</title>{after}"
    markers = iter(said)

    def marked(use: re.Match[str]) -> str:
        mark = next(markers)
        return f"{use[1]}{_attributes(mark)}><title>{escape(mark.tip)}</title></use>"

    return before + "<g>" + re.sub(r"(<use [^>]*?)/>", marked, after, count=len(said))


def _attributes(mark: Mark) -> str:
    return "" if mark.row is None else f' data-row="{mark.row}"'


def _shorten(tag: str) -> str:
    """Rewrite one tag with the colours and fonts of the page, and only the digits that matter."""
    for drawn, on_page in PAGE_COLORS.items():
        tag = tag.replace(drawn, on_page)
    # Ids of groups repeat from figure to figure and nothing refers to them.
    tag = re.sub(r'<g id="[^"]*"', "<g", tag)
    tag = re.sub(r"font: (\d[\d.]*px)[^;\"]*", r"font-size: \1", tag)
    tag = re.sub(r"font: (bold|\d+) (\d[\d.]*px)[^;\"]*", r"font-weight: 600; font-size: \2", tag)
    tag = re.sub(r" ?font-family: [^;\"]*;?", "", tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag.replace("xlink:href", "href"))


def _hoist_styles(svg: str) -> str:
    """Move the style of a run of equal markers to the group around them."""
    mark = r"\s*<use [^>]*?"
    run = rf'<g( clip-path="[^"]*")>({mark}(style="[^"]*")/>(?:{mark}\3/>)+)\s*</g>'

    def merge(found: re.Match[str]) -> str:
        return f"<g{found[1]} {found[3]}>" + found[2].replace(" " + found[3], "") + "</g>"

    return re.sub(run, merge, svg)
