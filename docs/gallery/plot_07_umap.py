"""
UMAP of the learned metric
==========================

UMAP lays out a graph of nearest neighbours in the plane. Learn the distance first, and it lays out
the neighbours that matter for the classes.
"""

# %%
# Ten letters of Letter, 1,200 rows, of which half have labels to learn from. This example needs
# ``pip install umap-learn``.
import matplotlib.pyplot as plt
import numpy as np
import umap
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import scale

from lnml import AveragedMetric
from lnml.datasets import load_dataset

letter = load_dataset("letter")
rows = np.flatnonzero(np.isin(letter.target, list("BDEFHKPRSX")))
rows = np.random.default_rng(0).choice(rows, 1200, replace=False)
X, y = scale(letter.data[rows]), letter.target[rows]
labelled, unseen = slice(0, 600), slice(600, None)
metric = AveragedMetric().fit(X[labelled], y[labelled])

# %%
# Both layouts show only the rows whose labels the metric has not seen. The same settings, the same
# seed; the left one sees standardised columns, the right one the learned space.
spaces = {"standardised columns": X[unseen], "learned metric": metric.transform(X[unseen])}
layouts = {
    name: umap.UMAP(n_neighbors=15, random_state=0, n_jobs=1).fit_transform(Z)
    for name, Z in spaces.items()
}

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (name, points) in zip(axes, layouts.items(), strict=True):
    for label in np.unique(y):
        ax.plot(*points[y[unseen] == label].T, ".", markersize=5, label=label)
    ax.set(title=name, xticks=[], yticks=[])
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()

# %%
# A layout is a picture, and easy to read too much into. One figure that can be checked: for how
# many points is the nearest other point *of the picture* the same letter?
for name, points in layouts.items():
    nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
    print(f"{name:21} {100 * np.mean(y[unseen][nearest] == y[unseen]):.1f} %")
