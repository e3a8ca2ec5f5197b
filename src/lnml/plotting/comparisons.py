"""Pictures of how accurate methods are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lnml.core.text import format_megabytes, format_seconds
from lnml.evaluation.groups import by_accuracy, tied_groups
from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import accuracy_interval, best_methods
from lnml.plotting.style import COLORS, axes_or_new, plain, text_color

# Where the columns of a leaderboard end, in points right of its axes.
COLUMN_ENDS = (34, 82, 128)


def plot_accuracies(
    comparison: Comparison,
    *,
    alpha: float = 0.05,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy of every metric with Wilson's interval.

    A filled mark means that McNemar's test finds no significant difference from
    the best method. The test compares methods row by row, so it can find a
    difference even if intervals overlap.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    alpha : float, default=0.05
        Level of McNemar's test.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> from lnml.plotting import plot_accuracies
    >>> wine = load_dataset("wine")
    >>> found = compare(wine.data, wine.target, {"Euclidean": None, "LMNN": LMNN()}, n_folds=3)
    >>> ax = plot_accuracies(found)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['Euclidean', 'LMNN']
    """
    ax = axes_or_new(ax)
    methods = comparison.metrics
    best = best_methods(comparison, alpha)
    for height, method in enumerate(methods):
        correct = comparison.correct(method)
        interval = 100 * np.array(accuracy_interval(correct, confidence))
        accuracy = 100 * correct.mean()
        ax.plot(interval, [height, height], color=COLORS[0], linewidth=1.6, solid_capstyle="round")
        filled = COLORS[0] if method in best else "white"
        ax.plot(accuracy, height, "o", color=COLORS[0], markerfacecolor=filled, markersize=6)
        ax.annotate(
            f"{accuracy:.1f}",
            (1, height),
            xycoords=ax.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold" if method in best else "normal",
        )
    ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
    ax.set_ylim(len(methods) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    _open_scale(ax, confidence)
    return ax


def _open_scale(ax: Axes, confidence: float) -> None:
    """Leave the scale of accuracies alone, with a faint grid."""
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel(f"accuracy in %, {100 * confidence:g} % interval")


def plot_leaderboard(
    comparison: Comparison,
    *,
    alpha: float = 0.05,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw methods from the most accurate down, with intervals, ties, times and memory.

    A bracket on the left joins metrics that tie: McNemar's test with Holm's correction cannot tell
    them from the first of their group (:func:`lnml.evaluation.tied_groups`). Classifiers stand
    apart, below: they give no distance. Lines are Wilson's intervals of each accuracy alone.

    Parameters
    ----------
    comparison : Comparison
        Methods on one data set.
    alpha : float, default=0.05
        Level of the tests.
    confidence : float, default=0.95
        Confidence level of the intervals.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> from lnml.plotting import plot_leaderboard
    >>> wine = load_dataset("wine")
    >>> found = compare(wine.data, wine.target, {"Euclidean": None, "LMNN": LMNN()}, n_folds=3)
    >>> ax = plot_leaderboard(found)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['LMNN', 'Euclidean']
    """
    ax = axes_or_new(ax)
    groups = tied_groups(comparison, alpha)
    metrics = [method for group in groups for method in group]
    references = by_accuracy(comparison, comparison.classifiers)
    heights = {method: float(place) for place, method in enumerate(metrics)}
    heights |= {name: len(metrics) + 0.5 + place for place, name in enumerate(references)}
    for place, (method, height) in enumerate(heights.items()):
        color = COLORS[0] if method in metrics else text_color()
        filled = color if method in groups[0] else "white"
        _draw_standing(ax, comparison.correct(method), height, color, filled, confidence, place)
        seconds, memory = comparison.seconds(method), format_megabytes(comparison.peak_mb(method))
        texts = (f"{100 * comparison.accuracy(method):.1f}", format_seconds(seconds), memory)
        _beside(ax, height, texts)
    for group in groups:
        _draw_bracket(ax, heights[group[0]], heights[group[-1]])
    if references:
        ax.axhline(len(metrics) - 0.25, color=text_color(), linewidth=0.6, alpha=0.5)
    _beside(ax, -0.9, ("%", "time", "memory"))
    ax.set_yticks(list(heights.values()), [plain(method) for method in heights])
    ax.set_ylim(max(heights.values()) + 0.5, -0.5)
    ax.tick_params(axis="y", length=0, pad=12)
    _open_scale(ax, confidence)
    return ax


def _draw_standing(
    ax: Axes,
    correct: np.ndarray,
    height: float,
    color: str,
    filled: str,
    confidence: float,
    place: int,
) -> None:
    """Draw one accuracy and its interval."""
    interval = 100 * np.array(accuracy_interval(correct, confidence))
    line: Any = {"color": color, "linewidth": 1.6, "solid_capstyle": "round"}
    ax.plot(interval, [height, height], gid=f"method-{place}", **line)
    ax.plot(100 * correct.mean(), height, "o", color=color, markerfacecolor=filled, markersize=6)


def _beside(ax: Axes, height: float, texts: Sequence[str]) -> None:
    """Write texts right of the axes, each in a column of its own."""
    for end, text in zip(COLUMN_ENDS, texts, strict=True):
        where: Any = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        ax.annotate(text, (1, height), xytext=(end, 0), ha="right", va="center", **where)


def _draw_bracket(ax: Axes, first: float, last: float) -> None:
    where = ax.get_yaxis_transform()
    x, top, end = [-0.012, -0.022, -0.022, -0.012], first - 0.3, last + 0.3
    style: Any = {"color": text_color(), "linewidth": 1.2, "clip_on": False}
    ax.plot(x, [top, top, end, end], transform=where, **style)


def plot_confusion(confusion: np.ndarray, labels: Sequence[str], *, ax: Axes | None = None) -> Axes:
    """Draw how many rows of each class were taken for which class.

    Parameters
    ----------
    confusion : ndarray of int, shape (c, c)
        Rows of a class (rows of the table) by the class they were taken for (columns), as
        :meth:`lnml.evaluation.Comparison.confusion` returns it.
    labels : sequence of str, length c
        Names of the classes.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> from lnml.plotting import plot_confusion
    >>> iris = load_dataset("iris")
    >>> found = compare(iris.data, iris.target, {"Euclidean": None}, n_folds=3)
    >>> ax = plot_confusion(found.confusion("Euclidean"), list(found.data.class_sizes))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('taken for', 'class')
    """
    counts = np.asarray(confusion)
    if counts.shape != (len(labels), len(labels)):
        raise ValueError(f"{len(labels)} labels need as many rows and columns, not {counts.shape}")
    ax = axes_or_new(ax)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    for row, column in np.argwhere(counts):
        color = COLORS[0] if row == column else COLORS[1]
        strength = 0.08 + 0.42 * np.sqrt(shares[row, column])
        corner = (column - 0.48, row - 0.48)
        ax.add_patch(Rectangle(corner, 0.96, 0.96, color=color, alpha=strength, linewidth=0))
        ax.text(column, row, f"{counts[row, column]:,}", ha="center", va="center")
    names = [plain(label, 18) for label in labels]
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("taken for")
    ax.set_ylabel("class")
    return ax


def plot_critical_difference(found: CriticalDifference, *, ax: Axes | None = None) -> Axes:
    """Draw average ranks; a bar joins methods that do not differ by Nemenyi's test.

    Needs scikit-posthocs: ``pip install "lnml[cli]"``.

    Parameters
    ----------
    found : CriticalDifference
        From :func:`lnml.evaluation.critical_difference`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml.evaluation import critical_difference
    >>> from lnml.plotting import plot_critical_difference
    >>> found = critical_difference([[0.9, 0.8, 0.7]] * 8, ["a", "b", "c"])
    >>> plot_critical_difference(found).get_xlabel()
    'average rank (1 is best)'
    """
    from pandas import DataFrame
    from scikit_posthocs import critical_difference_diagram

    ax = axes_or_new(ax)
    color = text_color()
    # Methods go by number, since shortened names may be equal.
    drawn = critical_difference_diagram(
        dict(enumerate(found.ranks)),
        DataFrame(found.pvalues),
        alpha=found.alpha,
        ax=ax,
        label_fmt_left="{label}",
        label_fmt_right="{label}",
        elbow_props={"color": color, "linewidth": 0.9},
        marker_props={"color": color, "s": 22},
        crossbar_props={"color": COLORS[1], "linewidth": 3.5, "solid_capstyle": "round"},
        text_h_margin=0.15,
    )
    for text in drawn["labels"]:
        number = int(text.get_text())
        name, rank = plain(found.methods[number]), f"{found.ranks[number]:.2f}"
        left = text.get_horizontalalignment() == "right"
        text.set_text(f"{name}  {rank}\u2002" if left else f"\u2002{rank}  {name}")
    ax.set_xlim(min(1, *found.ranks) - 0.1, len(found.methods) + 0.1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("average rank (1 is best)")
    return ax
