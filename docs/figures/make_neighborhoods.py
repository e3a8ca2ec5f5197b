"""Draw docs/figures/neighborhoods.png: target neighbours before and after learning, on Wine.

Run with ``make figures``, or ``python docs/figures/make_neighborhoods.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from lnml import LMNN, LNML
from lnml.datasets import load_dataset

OUTPUT = Path(__file__).with_name("neighborhoods.png")
FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)
# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73")
MARKERS = ("o", "^", "s")


def euclidean_targets(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Pairs (i, j): j is one of the k nearest rows of i's class."""
    distances = np.square(X[:, None] - X[None]).sum(axis=2)
    distances[y[:, None] != y] = np.inf
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.column_stack([np.repeat(np.arange(len(X)), k), nearest.ravel()])


def accuracy(model: object, X: np.ndarray, y: np.ndarray) -> float:
    """Percentage of rows that 10-fold cross-validation classifies correctly."""
    folds = list(FOLDS.split(X, y))
    scores = cross_val_score(model, X, y, cv=folds)
    return 100 * float(np.average(scores, weights=[len(test) for _, test in folds]))


def draw(axes: Axes, Z: np.ndarray, y: np.ndarray, pairs: np.ndarray, title: str) -> None:
    """Rows and target edges on the two leading principal components of Z."""
    flat = PCA(2).fit_transform(Z)
    for colour, marker, label in zip(COLOURS, MARKERS, np.unique(y), strict=True):
        inside = y == label
        edges = pairs[inside[pairs[:, 0]]]
        axes.add_collection(LineCollection(flat[edges], colors=colour, linewidths=0.9, alpha=0.45))
        axes.scatter(
            *flat[inside].T,
            color=colour,
            marker=marker,
            s=26,
            edgecolor="white",
            linewidth=0.5,
            label=f"cultivar {label}",
            zorder=2,
        )
    axes.set_title(title, fontsize=14)
    axes.set_xlabel("first principal component", fontsize=12)
    axes.set_ylabel("second principal component", fontsize=12)
    axes.tick_params(labelsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Fit, cross-validate and save the figure."""
    wine = load_dataset("wine")
    X, y = wine.data, wine.target
    nearest = KNeighborsClassifier(1, algorithm="brute")
    model = LNML(LMNN(), k_min=1, k_av=3, k_max=5)
    before, after = accuracy(nearest, X, y), accuracy(make_pipeline(model, nearest), X, y)
    model.fit(X, y)
    learned = np.column_stack(model.target_neighbors_.nonzero())

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    draw(
        left,
        X,
        y,
        euclidean_targets(X, y, 3),
        f"Raw features, 3 nearest of the same class\n10-fold 1-NN accuracy {before:.1f} %",
    )
    draw(
        right,
        model.transform(X),
        y,
        learned,
        f"Learned metric, 1 to 5 learned neighbours\n10-fold 1-NN accuracy {after:.1f} %",
    )
    left.legend(fontsize=12, loc="upper right", frameon=False)
    figure.savefig(OUTPUT, dpi=110, facecolor="white")
    print(f"{OUTPUT.name}: 1-NN accuracy, 10 folds: {before:.2f} % before, {after:.2f} % after")


if __name__ == "__main__":
    main()
