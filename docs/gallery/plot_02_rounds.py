"""
Neighbourhoods, round by round
==============================

LNML learns metric and neighbourhoods in turn. A callback shows each round.
"""

# %%
# Balance Scale has 625 rows and four columns: weight and distance on the left and on the right
# side of a balance. The classes say whether it tips to the left (L), to the right (R), or stays
# level (B).
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from lnml import LMNN, LNML
from lnml.datasets import load_dataset
from lnml.plotting import plot_convergence, plot_neighbor_counts

balance = load_dataset("balance_scale")
X, y = balance.data, balance.target
metrics = []
model = LNML(
    LMNN(), k_min=1, k_av=3, k_max=5, callback=lambda state: metrics.append(state.components)
).fit(X, y)

# %%
# Each line of ``history_`` is one round: how many of the 1,875 target pairs are new, the objective
# after the neighbours were assigned, and after the metric was learned for them. Neither step ever
# raises it, and the last round changes next to nothing.
print("round  new pairs  assigned   learned")
for number, line in enumerate(model.history_, start=1):
    print(
        f"{number:5}  {line['n_changed']:9}  {line['objective_assigned']:8.1f}  "
        f"{line['objective']:8.1f}"
    )

# %%
# The callback kept the metric of each round. All rows, on two principal components of the learned
# space: after the first round the level ones are a line between the two other classes. At the end
# the metric counts one direction much more than the others, and rows lie on five narrow bands.
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, number in zip(axes, (0, 1, len(metrics) - 1), strict=True):
    Z = PCA(2).fit_transform(X @ metrics[number].T)
    for label in np.unique(y):
        ax.plot(*Z[y == label].T, ".", markersize=4, label=label)
    ax.set_title(f"after round {number + 1}")
    ax.set(xticks=[], yticks=[])
axes[0].legend(title="class", loc="upper left")
plt.show()

# %%
# Rows may have one to five target neighbours, three on average. Each row of the small class B is
# left with one: its rows are surrounded by others, and each further neighbour would cost more
# than it does elsewhere. On the right the objective and its proved lower bound: metrics of early
# rounds are solved loosely, and only the last one is proved to ``tol``.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
plot_neighbor_counts(model, y, ax=axes[0])
plot_convergence(model, ax=axes[1])
axes[1].legend(frameon=False)
plt.show()
print(f"gap of the last metric: {model.duality_gap_:.1e}, converged: {model.converged_}")
