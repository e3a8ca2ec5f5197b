"""Pictures of what a penalty does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lnml.plotting.style import COLORS, axes_or_new, open_frame


def plot_trace_path(path: Any, scores: Sequence[float], *, ax: Axes | None = None) -> Axes:
    """Draw the accuracy along a path of trace penalties.

    Parameters
    ----------
    path : TracePath
        What :func:`lnml.trace_path` returned.
    scores : sequence of float, length m
        Accuracy of each metric, from 0 to 1: ``path.scores(...)``, or a mean over folds.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml import LMNN, trace_path
    >>> from lnml.datasets import load_dataset
    >>> from lnml.plotting import plot_trace_path
    >>> iris = load_dataset("iris")
    >>> X, y = iris.data, iris.target
    >>> path = trace_path(LMNN(), X[::2], y[::2], trace_penalties=[0.01, 0.1, 1.0])
    >>> plot_trace_path(path, path.scores(X[::2], y[::2], X[1::2], y[1::2])).get_xlabel()
    'trace_penalty'
    """
    penalties, percent = np.asarray(path.trace_penalties), 100.0 * np.asarray(scores, dtype=float)
    if percent.shape != penalties.shape:
        raise ValueError(
            f"the path has {penalties.size} metrics, but scores has shape {percent.shape}: give "
            f"one accuracy for each"
        )
    ax = axes_or_new(ax)
    ax.plot(penalties, percent, "o-", color=COLORS[0], markersize=3.5, linewidth=1.4)
    best = int(percent.argmax())
    ax.plot(penalties[best], percent[best], "o", color=COLORS[1], markersize=7, zorder=3)
    ax.annotate(
        f"{percent[best]:.1f} % at {penalties[best]:.2g}",
        (penalties[best], percent[best]),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
    )
    # A penalty of zero has a place on the axis, too.
    ax.set_xscale("symlog", linthresh=float(penalties[penalties > 0].min(initial=1.0)))
    ax.set_xlabel("trace_penalty")
    ax.set_ylabel("accuracy in %")
    ax.margins(y=0.15)
    open_frame(ax)
    return ax
