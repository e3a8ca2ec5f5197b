"""Neighbour graphs in the learned metric beside Euclidean ones, in two methods that use graphs.

``python benchmarks/similarity_graph.py`` prints two Markdown tables. Labels are used where the
method may use them and nowhere else:

- clustering: the metric is learned from one half of the rows; the *other* half is clustered, and
  the clusters are compared with its labels (adjusted Rand index);
- label spreading: a fifth of the rows is labelled; the metric is learned from these, the labels
  spread over the graph of all rows, and the other rows count (accuracy).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from suite.rows import bundled

from lnml import LNML, similarity_graph
from lnml.report.tables import text_table

ROWS = {
    "iris": 150,
    "wine": 178,
    "sonar": 208,
    "ionosphere": 351,
    "balance_scale": 625,
    "letter": 2000,
}
NEIGHBORS = 10
LABELLED = 0.2


def views(X: np.ndarray, y: np.ndarray, known: np.ndarray) -> dict[str, np.ndarray]:
    """Return all rows as three metrics see them; only ``known`` rows show their labels."""
    model = LNML(k_min=1, k_av=3, k_max=5).fit(X[known], y[known])
    return {
        "raw": X,
        "scaled": StandardScaler().fit_transform(X),
        "learned": model.transform(X),
    }


def graph_of(Z: np.ndarray) -> sparse.csr_array:
    """Similarity graph of the nearest neighbours."""
    return similarity_graph(kneighbors_graph(Z, NEIGHBORS, mode="distance"))


def clustering(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Adjusted Rand index on the half that shows no labels: raw, scaled, learned."""
    known, hidden = train_test_split(
        np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed
    )
    n_classes = np.unique(y).size
    scores = []
    for Z in views(X, y, known).values():
        model = SpectralClustering(n_classes, affinity="precomputed", random_state=0)
        scores.append(adjusted_rand_score(y[hidden], model.fit_predict(graph_of(Z[hidden]))))
    return scores


def spreading(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Accuracy on rows without label: spreading in each view, then 1-NN in the learned one."""
    known, hidden = train_test_split(
        np.arange(len(y)), train_size=LABELLED, stratify=y, random_state=seed
    )
    labels = np.full(len(y), -1)
    labels[known] = y[known]
    scores = []
    for Z in views(X, y, known).values():
        graph = graph_of(Z)
        # LabelSpreading asks its kernel for the similarities of the rows of X with each other.
        model = LabelSpreading(kernel=lambda *_, graph=graph: graph).fit(Z, labels)
        scores.append(np.mean(model.transduction_[hidden] == y[hidden]))
    nearest = KNeighborsClassifier(1).fit(Z[known], y[known])
    return [*scores, nearest.score(Z[hidden], y[hidden])]


def main() -> None:
    """Measure all data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=5, help="random splits (default 5)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="classes too small")
    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    columns = ["raw", "scaled", "learned"]
    for title, task, header in (
        ("adjusted Rand index of spectral clusters", clustering, columns),
        ("accuracy of label spreading, %", spreading, [*columns, "learned, 1-NN"]),
    ):
        lines = []
        for name in options.data:
            X, y = bundled(name, ROWS[name])
            values = np.array([task(X, y, seed) for seed in range(options.seeds)])
            factor, digits = (1, 2) if task is clustering else (100, 1)
            lines.append([name, *(f"{factor * mean:.{digits}f}" for mean in values.mean(axis=0))])
        print(f"{title}, mean of {options.seeds} splits\n")
        print(text_table(["data", *header], lines), end="\n\n")


if __name__ == "__main__":
    main()
