"""
Suspicious labels, found and checked
====================================

Rows whose label is wrong find no good neighbours of their class. ``least_trusted`` ranks them.
"""

# %%
# We change 9 of the 178 labels of Wine, and try to find them again.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from lnml import LNML, least_trusted
from lnml.datasets import load_dataset
from lnml.plotting import plot_neighborhoods

wine = load_dataset("wine")
X, y = scale(wine.data), wine.target.copy()
rng = np.random.default_rng(0)
wrong = np.sort(rng.choice(len(y), 9, replace=False))
for row in wrong:
    y[row] = rng.choice(np.setdiff1d(np.unique(wine.target), wine.target[row]))
print("changed:", wrong)

# %%
# Two rounds find as many wrong labels as more rounds do, or more: later ones bend the metric around
# them (the page on trust has the figures). ``LNML`` warns that it was stopped before it converged;
# here that is meant.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    model = LNML(k_min=1, k_av=3, k_max=5, max_rounds=2).fit(X, y)
ranked = least_trusted(model, n=18)
for n in (9, 18):
    print(f"{np.isin(ranked[:n], wrong).sum()} of 9 are among the {n} rows that are trusted least")

# %%
# A ranking says which rows to look at, not that their labels are wrong. So check them: what do the
# nearest rows say, under the learned metric?
Z = model.transform(X)
print("row  label  neighbours' labels  truly")
for row in ranked[:12]:
    nearest = np.argsort(np.linalg.norm(Z - Z[row], axis=1))[1:6]
    mark = "changed" if row in wrong else ""
    print(f"{row:3}  {y[row]:5}  {y[nearest]!s:18}  {wine.target[row]} {mark}")

# %%
# All rows with their target neighbours on two principal components; the twelve are ringed.
fig, ax = plt.subplots(figsize=(7.5, 5.5), layout="constrained")
plot_neighborhoods(model, X, y, n_suspects=12, ax=ax)
plt.show()

# %%
# How often does that work? It depends on the data, and the simple rule "most neighbours disagree"
# is sometimes better: the page on trust has the figures of five data sets with ten repetitions.
