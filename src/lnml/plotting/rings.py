"""Rings around points, with texts beside them that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from lnml.plotting.style import plain, text_color

# Directions to try around a point, in degrees, the preferred ones first.
DIRECTIONS = (25, -25, 155, -155, 90, -90, 60, -60, 120, -120, 0, 180)
# Width of a character and height of a line, as shares of the font's size.
CHARACTER, LINE = 0.68, 1.25

Box = tuple[float, float, float, float]


def draw_rings(ax: Axes, points: np.ndarray, rings: Mapping[int, str], size: float) -> None:
    """Ring some points and write beside each; ``size`` is that of a point's mark."""
    if not rings:
        return
    color, font = text_color(), 0.8 * mpl.rcParams["font.size"]
    ringed = points[list(rings)]
    ax.plot(
        *ringed.T,
        linestyle="",
        marker="o",
        markersize=size + 5,
        markerfacecolor="none",
        markeredgecolor=color,
        markeredgewidth=1.1,
        gid="rings",
    )
    ax.autoscale_view()
    # In points, the unit of offsets.
    centers = ax.transData.transform(ringed) * 72.0 / ax.figure.dpi
    texts = [plain(text) for text in rings.values()]
    offsets = place_texts(centers, [len(text) for text in texts], font, (size + 5) / 2)
    for point, text, (dx, dy, far) in zip(ringed, texts, offsets, strict=True):
        ax.annotate(
            text,
            point,
            xytext=(dx, dy),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=font,
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5} if far else None,
        )


def place_texts(
    centers: np.ndarray, lengths: Sequence[int], font: float, radius: float
) -> list[tuple[float, float, bool]]:
    """Return where to write a text beside every ring so that no two of them overlap.

    Parameters
    ----------
    centers : ndarray of shape (m, 2)
        Centres of the rings, in points.
    lengths : sequence of int, length m
        Characters of the texts.
    font : float
        Size of the font in points.
    radius : float
        Radius of a ring in points.

    Returns
    -------
    offsets : list of (float, float, bool)
        From a ring to the centre of its text, and whether a line should join the two.
    """
    rings: list[Box] = [(x - radius, y - radius, x + radius, y + radius) for x, y in centers]
    taken: list[Box] = []
    placed = []
    for number, (center, length) in enumerate(zip(centers, lengths, strict=True)):
        half = CHARACTER * font * length / 2, LINE * font / 2
        others = [*taken, *rings[:number], *rings[number + 1 :]]
        for offset in _candidates(half, radius):
            x, y = center[0] + offset[0], center[1] + offset[1]
            box = (x - half[0], y - half[1], x + half[0], y + half[1])
            if not any(_overlap(box, other) for other in others):
                break
        taken.append(box)
        placed.append(offset)
    return placed


def _candidates(half: tuple[float, float], radius: float) -> Iterator[tuple[float, float, bool]]:
    """Return offsets from near to far, in all directions."""
    for ring in range(40):
        reach = radius + 1.0 + 4.0 * ring
        for degrees in DIRECTIONS:
            x, y = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
            yield float(x * (reach + half[0])), float(y * (reach + half[1])), ring > 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
