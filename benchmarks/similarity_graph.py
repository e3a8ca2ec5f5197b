"""Compare neighbour graphs in the learned metric with Euclidean ones, in methods that use graphs.

``python benchmarks/similarity_graph.py`` prints a Markdown table for each method. Labels are used
where the method may use them and nowhere else:

- clustering: the metric is learned from one half of the rows; the *other* half is clustered, and
  the clusters are compared with its labels (adjusted Rand index);
- label spreading: a fifth of the rows is labelled; the metric is learned from these, the labels
  spread over the graph of all rows, and the other rows count (accuracy);
- layout, where ``pip install umap-learn`` was run: the metric is learned from one half of the rows;
  the *other* half is laid out in the plane, and each of its rows is given the label of its nearest
  neighbour there (accuracy).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import LeaveOneOut, cross_val_score, train_test_split
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
    """Return all rows in the coordinates of three metrics, learned from ``known`` rows only."""
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


def layout_of(graph: sparse.csr_array, Z: np.ndarray) -> np.ndarray:
    """UMAP's layout of a similarity graph, with the settings UMAP has by default."""
    from umap.umap_ import find_ab_params, simplicial_set_embedding

    a, b = find_ab_params(spread=1.0, min_dist=0.1)
    layout, _ = simplicial_set_embedding(
        Z,
        graph,
        n_components=2,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=500,
        init="spectral",
        random_state=np.random.RandomState(0),
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
    )
    return layout


def layout(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Accuracy of the nearest neighbour in the plane, on the half that shows no labels.

    It lays out the rows of each view with UMAP, then the learned similarity graph.
    """
    from umap import UMAP

    known, hidden = train_test_split(
        np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed
    )
    layouts = []
    for Z in views(X, y, known).values():
        layouts.append(UMAP(NEIGHBORS, random_state=0, n_jobs=1).fit_transform(Z[hidden]))
    layouts.append(layout_of(graph_of(Z[hidden]), Z[hidden]))
    nearest = KNeighborsClassifier(1)
    return [cross_val_score(nearest, E, y[hidden], cv=LeaveOneOut()).mean() for E in layouts]


def tasks() -> list[tuple[str, Any, list[str], tuple[int, int]]]:
    """Return for each task its title, function and columns, and factor and digits for printing."""
    columns = ["raw", "scaled", "learned"]
    found = [
        ("adjusted Rand index of spectral clusters", clustering, columns, (1, 2)),
        ("accuracy of label spreading, %", spreading, [*columns, "learned, 1-NN"], (100, 1)),
    ]
    if find_spec("umap"):
        last = [*columns, "learned graph"]
        found.append(("accuracy of the nearest neighbour in the layout, %", layout, last, (100, 1)))
    else:
        print("No layouts: they need umap-learn, pip install umap-learn\n", file=sys.stderr)
    return found


def main() -> None:
    """Measure all data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=5, help="random splits (default 5)")
    parser.add_argument("--task", nargs="+", choices=["clustering", "spreading", "layout"])
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="classes too small")
    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    for title, task, header, (factor, digits) in tasks():
        if options.task and task.__name__ not in options.task:
            continue
        lines = []
        for name in options.data:
            X, y = bundled(name, ROWS[name])
            values = np.array([task(X, y, seed) for seed in range(options.seeds)])
            lines.append([name, *(f"{factor * mean:.{digits}f}" for mean in values.mean(axis=0))])
        print(f"{title}, mean of {options.seeds} splits\n")
        print(text_table(["data", *header], lines), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
