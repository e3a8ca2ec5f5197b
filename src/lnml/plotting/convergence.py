"""Pictures of how a fit went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lnml.plotting.style import COLORS, axes_or_new, open_frame

# Objectives that span more than this factor are shown on a logarithmic scale.
WIDE = 30.0


def plot_convergence(
    model_or_history: Any | Sequence[Mapping[str, Any]],
    *,
    label: str = "objective",
    color: str = COLORS[0],
    ax: Axes | None = None,
) -> Axes:
    """Draw the objective, and the lower bound where there is one, against time.

    Parameters
    ----------
    model_or_history : fitted estimator, or sequence of dict
        The model, or records with ``seconds``, ``objective`` and possibly ``bound``.
    label : str, default="objective"
        Name of the line.
    color : str, optional
        Its colour.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.plotting import plot_convergence
    >>> iris = load_dataset("iris")
    >>> ax = plot_convergence(LMNN().fit(iris.data, iris.target))
    >>> ax.get_legend_handles_labels()[1]
    ['objective', 'lower bound']
    """
    history = getattr(model_or_history, "history_", model_or_history)
    if not isinstance(history, Sequence) or not history:
        raise ValueError(
            "plot_convergence needs a fitted model with history_, or a list of at least one record"
        )
    ax = axes_or_new(ax)
    seconds = np.array([record["seconds"] for record in history], dtype=float)
    objective = np.array([record["objective"] for record in history], dtype=float)
    bound = np.array([_number(record.get("bound")) for record in history])
    style: Any = {"color": color, "markersize": 3.5}
    ax.plot(seconds, objective, "o-", linewidth=1.4, label=label, gid="objective", **style)
    known = np.isfinite(bound)
    if known.any():
        line: Any = {"linewidth": 1.2, "label": "lower bound", "gid": "bound"}
        ax.plot(seconds[known], bound[known], "v--", **style, **line)
        ax.fill_between(
            seconds[known], bound[known], objective[known], color=color, alpha=0.13, linewidth=0
        )
    _choose_scale(ax, objective, bound[known])
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective")
    open_frame(ax)
    return ax


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _choose_scale(ax: Axes, objective: np.ndarray, bound: np.ndarray) -> None:
    """Use a logarithmic scale for a wide range; cut off early bounds that are far below."""
    if objective.min() > 0 and objective.max() > WIDE * objective.min():
        ax.set_yscale("log")
        return
    low = min(objective.min(), bound.max(initial=objective.min()))
    spread = max(objective.max() - low, 1e-3 * abs(low), 1e-12)
    lowest = max(min(bound.min(initial=low), low), low - spread)
    ax.set_ylim(lowest - 0.06 * spread, objective.max() + 0.06 * spread)
