"""Pictures of how accurate methods are."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison
from lnml.evaluation.statistics import accuracy_interval, best_methods
from lnml.plotting.style import COLORS, axes_or_new, plain, text_color


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
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel(f"accuracy in %, {100 * confidence:g} % interval")
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
