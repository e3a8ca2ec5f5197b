"""
Embeddings: better retrieval with a learned linear layer
========================================================

An embedding model was trained for another task. Keep it as it is, and learn one linear layer on
top.
"""

# %%
# The "model" is a small network that was trained to tell the digits 0 to 4 apart. We use its last
# hidden layer to search among the digits 5 to 9, which it has never seen.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from lnml import LMNN

digits = load_digits()
old = digits.target < 5
network = MLPClassifier((64, 32), random_state=0, max_iter=300).fit(
    digits.data[old] / 16, digits.target[old]
)


def embed(rows):
    """Activations of the last hidden layer, shape (m, 32)."""
    for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        rows = np.maximum(rows @ weights + bias, 0)
    return rows


E_new, y_new = embed(digits.data[~old] / 16), digits.target[~old]


# %%
# Each row of the test half is a query among the other test rows. *Recall@1* is how often the first
# hit is right; *R-precision* is the share of right ones among the first R hits, where R is how many
# right ones there are.
def retrieval(Z, labels):
    """Recall@1 and R-precision of rows (m, r) among each other."""
    distances = pairwise_distances(Z)
    np.fill_diagonal(distances, np.inf)
    hits = labels[np.argsort(distances, axis=1)] == labels[:, None]
    n_right = np.array([(labels == label).sum() - 1 for label in labels])
    precision = [row[:r].mean() for row, r in zip(hits, n_right, strict=True)]
    return hits[:, 0].mean(), np.mean(precision)


# %%
# ``components_`` is the linear layer. Ten splits of the new digits into halves: the layer is
# learned from one, and judged by the other.
found = []
for seed in range(10):
    E, E_test, y, y_test = train_test_split(
        E_new, y_new, test_size=0.5, stratify=y_new, random_state=seed
    )
    layer = LMNN(trace_penalty=0.1).fit(E, y).components_
    found.append([retrieval(E_test, y_test), retrieval(E_test @ layer.T, y_test)])
found = np.array(found)  # splits, without and with the layer, two scores
print("               recall@1        R-precision")
for place, name in enumerate(("as it is", "with the layer")):
    mean, deviation = found[:, place].mean(axis=0), found[:, place].std(axis=0, ddof=1)
    print(f"{name:14} {mean[0]:.3f} ± {deviation[0]:.3f}   {mean[1]:.3f} ± {deviation[1]:.3f}")

# %%
# Each line is a split:
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, score, title in zip(axes, (0, 1), ("recall@1", "R-precision"), strict=True):
    ax.plot(["as it is", "with the layer"], found[:, :, score].T, "o-", color="C0", alpha=0.5)
    ax.set_title(title)
    ax.margins(x=0.25)
plt.show()

# %%
# The layer has 32 columns like the embedding, and no bias. Vectors of an index that exists can be
# mapped once, by ``E @ layer.T``; the model is not touched.
