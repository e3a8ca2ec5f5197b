"""Colours, markers and text that all pictures share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from lnml.core.text import shortened, visible

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Seven markers and six colours: 42 classes look different.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def class_styles(labels: Iterable[Any]) -> dict[Any, tuple[str, str]]:
    """Colour and marker of every class, by label."""
    return {
        label: (COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)])
        for i, label in enumerate(labels)
    }


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # chooses a backend, so only on demand

    return pyplot.subplots(layout="constrained")[1]


def text_color() -> str:
    """Colour of text under the current style."""
    return str(mpl.rcParams["text.color"])


def plain(label: Any, width: int = 24) -> str:
    """Return a label as matplotlib should show it: one line, not too long, no formulas."""
    text = shortened(visible(" ".join(str(label).split())), width) or " "
    return text.replace("$", r"\$")


def open_frame(ax: Axes) -> None:
    """Leave out the upper and the right edge."""
    ax.spines[["top", "right"]].set_visible(False)
