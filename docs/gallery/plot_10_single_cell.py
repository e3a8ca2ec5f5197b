"""
Single-cell style data
======================

Cells in an ``AnnData``: the learned space goes to ``obsm``, where other tools find it.
"""

# %%
# Simulated counts of 900 cells and 300 genes; no real data. Three cell types, of which two differ
# in twenty genes only, and a process that has nothing to do with the types, such as the cell
# cycle, moves sixty genes. This example needs ``pip install anndata``.
import anndata as ad
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph

from lnml import LMNN

rng = np.random.default_rng(0)
n_cells, n_genes = 900, 300
kinds = rng.choice(["T cell", "NK cell", "B cell"], n_cells)
log_rate = np.tile(rng.normal(0.0, 1.0, n_genes), (n_cells, 1))
log_rate[kinds == "B cell", :40] += rng.normal(0.0, 1.0, 40)
log_rate[kinds == "NK cell", 40:60] += 0.8
log_rate[:, 100:160] += rng.normal(size=(n_cells, 1)) * rng.normal(0.0, 1.2, 60)
depth = rng.lognormal(0.0, 0.3, (n_cells, 1))
counts = rng.poisson(rng.gamma(2.0, depth * np.exp(log_rate) / 2.0))
adata = ad.AnnData(
    counts.astype(np.float32), obs=pd.DataFrame({"kind": pd.Categorical(kinds)}).rename(index=str)
)

# %%
# The usual steps: counts of each cell to the same sum, logarithms, principal components.
X = np.log1p(adata.X / adata.X.sum(axis=1, keepdims=True) * 1e3)
adata.obsm["X_pca"] = PCA(30, random_state=0).fit_transform(X)

# %%
# A third of the cells was annotated by hand. The metric is learned from these, for all.
adata.obs["annotated"] = rng.random(n_cells) < 1 / 3
known = adata[adata.obs["annotated"]]
metric = LMNN(trace_penalty=0.1).fit(known.obsm["X_pca"], known.obs["kind"].to_numpy())
adata.obsm["X_lnml"] = metric.transform(adata.obsm["X_pca"])
adata.obsp["lnml_distances"] = kneighbors_graph(adata.obsm["X_lnml"], 15, mode="distance")
print(adata)

# %%
# Labels of the other cells, from their five nearest annotated ones:
known, new = adata[adata.obs["annotated"]], adata[~adata.obs["annotated"]]
for space in ("X_pca", "X_lnml"):
    voters = KNeighborsClassifier(5).fit(known.obsm[space], known.obs["kind"])
    right = voters.predict(new.obsm[space]) == new.obs["kind"].to_numpy()
    print(f"{space:7} {100 * right.mean():.1f} % of {new.n_obs} cells are right")

# %%
# Cells without annotation on the two principal components of either space:
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, space in zip(axes, ("X_pca", "X_lnml"), strict=True):
    points = PCA(2).fit_transform(new.obsm[space])
    for kind in new.obs["kind"].cat.categories:
        ax.plot(*points[new.obs["kind"] == kind].T, ".", markersize=5, label=kind)
    ax.set(title=f'obsm["{space}"]', xticks=[], yticks=[])
axes[0].legend()
plt.show()
