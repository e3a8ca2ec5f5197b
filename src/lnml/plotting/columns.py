"""Pictures of what a metric does to the columns of a table."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lnml.evaluation.weights import ColumnWeights
from lnml.plotting.style import COLORS, axes_or_new, plain

# Opacity of the faintest and of the strongest cell.
FAINTEST, STRONGEST = 0.04, 0.85


def plot_column_weights(weights: ColumnWeights, *, ax: Axes | None = None) -> Axes:
    """Draw the share of each column in the squared distance, before and after learning.

    Parameters
    ----------
    weights : ColumnWeights
        From :func:`lnml.evaluation.column_weights`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.evaluation import column_weights
    >>> from lnml.plotting import plot_column_weights
    >>> rows = np.array([[0.0, 0.0], [1.0, 100.0], [2.0, 0.0]])
    >>> weights = column_weights(np.diag([1.0, 0.001]), rows, ["size", "price"])
    >>> ax = plot_column_weights(weights)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['size', 'price']
    """
    ax = axes_or_new(ax)
    shares = 100 * np.stack([weights.before, weights.after])
    for height, (before, after) in enumerate(shares.T):
        ax.plot(
            [before, after],
            [height, height],
            color=COLORS[0],
            linewidth=2.2,
            alpha=0.35,
            solid_capstyle="round",
            gid=f"column-{height}",
        )
    heights = range(len(weights.names))
    ax.plot(
        shares[0],
        heights,
        "o",
        color=COLORS[0],
        markerfacecolor="white",
        markersize=6.5,
        label="before",
        gid="before",
    )
    ax.plot(shares[1], heights, "o", color=COLORS[0], markersize=6.5, label="after", gid="after")
    ax.set_yticks(heights, [plain(name) for name in weights.names])
    ax.set_ylim(len(weights.names) - 0.5, -0.5)
    # Room for marks at zero.
    ax.set_xlim(left=-0.02 * max(float(shares.max(initial=0.0)), 1e-3))
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel("share of the squared distance in %")
    # Above the axes, where it hides no mark.
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return ax


def plot_column_pairs(
    weights: ColumnWeights, *, most: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the metric as a table of columns by columns, in units of their spreads.

    The numbers are shares of the squared distance in %, ``100 * weights.pairs``. Blue is positive:
    differences in the same direction in both columns add to the distance. Orange is negative: they
    cancel each other. The colour grows with the root of a number, so that small ones show.

    Parameters
    ----------
    weights : ColumnWeights
        From :func:`lnml.evaluation.column_weights`.
    most : int, optional
        How many columns to draw, the most important first; by default all that are there.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.evaluation import column_weights
    >>> from lnml.plotting import plot_column_pairs
    >>> rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    >>> weights = column_weights(np.array([[1.0, -1.0]]), rows, ["left", "right"])
    >>> ax = plot_column_pairs(weights)
    >>> [text.get_text() for text in ax.texts]
    ['75', '−43', '−43', '25']
    """
    ax = axes_or_new(ax)
    names = weights.names[:most]
    percent = 100 * weights.pairs[: len(names), : len(names)]
    strongest = float(np.abs(percent).max(initial=0.0)) or 1.0
    for row, column in np.ndindex(percent.shape):
        value = percent[row, column]
        strength = np.sqrt(abs(value) / strongest)
        ax.add_patch(
            Rectangle(
                (column - 0.48, row - 0.48),
                0.96,
                0.96,
                facecolor=COLORS[0] if value >= 0 else COLORS[1],
                edgecolor="none",
                alpha=FAINTEST + (STRONGEST - FAINTEST) * 0.6 * strength,
                gid=f"pair-{row}-{column}",
            )
        )
        if abs(value) >= 0.5:
            text = f"{value:.0f}".replace("-", "−")
            weight = "bold" if row == column else "normal"
            ax.text(column, row, text, ha="center", va="center", fontweight=weight)
    labels = [plain(name, 18) for name in names]
    ax.set_xticks(range(len(names)), labels, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), labels)
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
