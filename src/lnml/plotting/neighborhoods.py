"""Pictures of target neighbours: where they are, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from lnml.learning.trust import least_trusted
from lnml.plotting.rings import draw_rings
from lnml.plotting.style import axes_or_new, class_styles, open_frame, plain

# More classes have shorter names, so that their legend stays small.
MANY_CLASSES = 12
# Characters that a line of the legend holds.
LEGEND_WIDTH = 52


def plot_neighborhoods(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_neighbors: int = 3,
    n_suspects: int = 0,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows on two principal components, with lines to their target neighbours.

    Parameters
    ----------
    model : fitted estimator or None
        A metric learner fitted to X and y; None is the Euclidean metric.
    X : array-like of shape (n, d)
        Rows it was fitted to.
    y : array-like of shape (n,)
        Class labels.
    n_neighbors : int, default=3
        If the model has no target neighbours, lines go to this many nearest
        rows of the same class under its metric.
    n_suspects : int, default=0
        Ring this many rows that the model trusts least (:func:`lnml.least_trusted`).
    legend : bool, default=True
        Name the classes.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml import LNML
    >>> from lnml.datasets import load_dataset
    >>> from lnml.plotting import plot_neighborhoods
    >>> iris = load_dataset("iris")
    >>> model = LNML(k_min=1, k_av=3, k_max=5).fit(iris.data, iris.target)
    >>> ax = plot_neighborhoods(model, iris.data, iris.target, n_suspects=2)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['setosa', 'versicolor', 'virginica']
    """
    X, labels = np.asarray(X, dtype=float), np.asarray(y)
    Z = X if model is None else model.transform(X)
    graph = getattr(model, "target_neighbors_", None)
    if graph is not None and graph.shape[0] != len(X):
        raise ValueError(
            f"X must be the rows the model was fitted to: it has {len(X)} rows, "
            f"the model's target neighbours {graph.shape[0]}"
        )
    edges = _nearest_of_class(Z, labels, n_neighbors) if graph is None else graph.nonzero()
    suspects = least_trusted(model, n_suspects) if n_suspects else ()
    points = PCA(min(2, *Z.shape)).fit_transform(Z)
    return plot_embedding(
        np.pad(points, ((0, 0), (0, 2 - points.shape[1]))),
        labels,
        np.column_stack(edges),
        rings={int(row): str(row) for row in suspects},
        legend=legend,
        ax=ax,
    )


def _nearest_of_class(Z: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = [], []
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        within = min(k, inside.size - 1)
        if within:
            nearest = NearestNeighbors(n_neighbors=within).fit(Z[inside]).kneighbors()[1]
            rows.append(np.repeat(inside, within))
            columns.append(inside[nearest].ravel())
    empty = np.empty(0, dtype=int)
    return np.concatenate([empty, *rows]), np.concatenate([empty, *columns])


def plot_embedding(
    points: np.ndarray,
    labels: np.ndarray,
    edges: np.ndarray,
    *,
    rings: Mapping[int, str] | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw points of several classes and directed pairs between them.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
        Coordinates of the points.
    labels : ndarray of shape (m,)
        Classes of the points.
    edges : ndarray of int, shape (e, 2)
        Pairs of positions in ``points``; a line has the colour of its first point.
    rings : dict of int to str, optional
        Positions to highlight, and the text beside each.
    legend : bool, default=True
        Name the classes below the axes.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.plotting import plot_embedding
    >>> points, labels = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array(["a", "a", "b"])
    >>> ax = plot_embedding(points, labels, np.array([[0, 1], [1, 0]]), rings={2: "alone"})
    >>> ax.get_xlabel()
    'first principal component'
    """
    ax = axes_or_new(ax)
    points, labels, edges = np.asarray(points), np.asarray(labels), np.asarray(edges)
    styles = class_styles(np.unique(labels))
    size = 5.0 if len(points) <= 300 else 3.8 if len(points) <= 800 else 3.0
    for number, (label, (color, marker)) in enumerate(styles.items()):
        inside = labels == label
        own = edges[inside[edges[:, 0]]] if edges.size else edges
        ax.add_patch(_lines(points, own, color))
        ax.plot(
            *points[inside].T,
            linestyle="",
            marker=marker,
            markersize=size,
            color=color,
            markeredgecolor="white",
            markeredgewidth=0.4,
            gid=f"class-{number}",
        )
    draw_rings(ax, points, rings or {}, size)
    ax.set_xlabel("first principal component")
    ax.set_ylabel("second principal component")
    open_frame(ax)
    if legend:
        _draw_legend(ax, styles)
    return ax


def _lines(points: np.ndarray, edges: np.ndarray, color: str) -> PathPatch:
    """Return all lines of a class as one path, which is small, and no darker at crossings."""
    codes = np.tile([Path.MOVETO, Path.LINETO], len(edges))
    path = Path(points[edges].reshape(-1, 2), codes) if len(edges) else Path(np.empty((0, 2)))
    return PathPatch(path, facecolor="none", edgecolor=color, linewidth=0.7, alpha=0.45)


def _draw_legend(ax: Axes, styles: Mapping[Any, tuple[str, str]]) -> None:
    names = [plain(label, 24 if len(styles) <= MANY_CLASSES else 12) for label in styles]
    handles = [
        Line2D([], [], linestyle="", marker=marker, color=color, markersize=5.5)
        for color, marker in styles.values()
    ]
    columns = min(len(names), max(1, LEGEND_WIDTH // (max(map(len, names)) + 5)))
    legend = ax.legend(
        handles,
        [" "] * len(names),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.19),
        ncols=columns,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.2,
        borderaxespad=0,
    )
    # Set afterwards: matplotlib would hide labels that begin with an underscore.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def plot_neighbor_counts(
    model_or_counts: Any | Mapping[Any, Sequence[int]],
    y: Any = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many target neighbours the rows of each class received.

    Parameters
    ----------
    model_or_counts : fitted LNML or LNMLCV, or dict of label to sequence of int
        The model, or for each class how many rows have 0, 1, 2, ... target neighbours.
    y : array-like of shape (n,), optional
        Class labels of the rows the model was fitted to.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from lnml.plotting import plot_neighbor_counts
    >>> ax = plot_neighbor_counts({"a": [0, 2, 8], "b": [0, 5, 5]})
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b']
    """
    counts = _counts(model_or_counts, y)
    ax = axes_or_new(ax)
    width = max(len(of_class) for of_class in counts.values())
    table = np.array([np.pad(c, (0, width - len(c))) for c in map(np.asarray, counts.values())])
    shares = 100 * table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    used = np.flatnonzero(table.sum(axis=0))
    shades = mpl.colormaps["cividis"](np.linspace(0.25, 0.95, used.size))
    left = np.zeros(len(table))
    for size, shade in zip(used, shades, strict=True):
        ax.barh(
            np.arange(len(table)),
            shares[:, size],
            left=left,
            height=0.72,
            color=shade,
            label=str(size),
        )
        left += shares[:, size]
    ax.set_yticks(np.arange(len(table)), [plain(label) for label in counts])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("rows of the class in %")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(
        title="target neighbours",
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=min(used.size, 8),
        frameon=False,
        handlelength=1,
        handletextpad=0.4,
        columnspacing=1.2,
    )
    return ax


def _counts(model_or_counts: Any, y: Any) -> Mapping[Any, Sequence[int]]:
    if isinstance(model_or_counts, Mapping):
        return model_or_counts
    if not hasattr(model_or_counts, "n_target_neighbors_") or y is None:
        raise TypeError(
            "plot_neighbor_counts needs a fitted LNML or LNMLCV and its labels y, "
            "or a dict of label to counts"
        )
    sizes, labels = model_or_counts.n_target_neighbors_, np.asarray(y)
    return {label: np.bincount(sizes[labels == label]).tolist() for label in np.unique(labels)}
