"""Draw docs/figures/neighborhoods.png: target neighbours before and after learning, on Wine.

Run with ``make figures``, or ``python docs/figures/make_neighborhoods.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from lnml import LMNN, LNML
from lnml.datasets import load_dataset
from lnml.plotting import plot_neighborhoods

OUTPUT = Path(__file__).with_name("neighborhoods.png")
FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)


def accuracy(model: object, X: np.ndarray, y: np.ndarray) -> float:
    """Percentage of rows that 10-fold cross-validation classifies correctly."""
    folds = list(FOLDS.split(X, y))
    scores = cross_val_score(model, X, y, cv=folds)
    return 100 * float(np.average(scores, weights=[len(test) for _, test in folds]))


def main() -> None:
    """Fit, cross-validate and save the figure."""
    wine = load_dataset("wine")
    X, y = wine.data, np.char.add("cultivar ", wine.target.astype(str))
    nearest = KNeighborsClassifier(1, algorithm="brute")
    model = LNML(LMNN(), k_min=1, k_av=3, k_max=5)
    before, after = accuracy(nearest, X, y), accuracy(make_pipeline(model, nearest), X, y)
    model.fit(X, y)

    plt.rcParams["font.size"] = 12
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
    plot_neighborhoods(None, X, y, n_neighbors=3, ax=left)
    plot_neighborhoods(model, X, y, ax=right)
    left.set_title(
        f"Raw features, 3 nearest of the same class\n10-fold 1-NN accuracy {before:.1f} %"
    )
    right.set_title(
        f"Learned metric, 1 to 5 learned neighbours\n10-fold 1-NN accuracy {after:.1f} %"
    )
    figure.savefig(OUTPUT, dpi=110, facecolor="white")
    print(f"{OUTPUT.name}: 1-NN accuracy, 10 folds: {before:.2f} % before, {after:.2f} % after")


if __name__ == "__main__":
    main()
