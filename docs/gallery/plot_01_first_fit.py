"""
First fit
=========

Learn a distance on some rows of a data set, and see what it does to others.
"""

# %%
# Letter has 16 measurements of printed capitals. Five letters that look alike, 800 rows of them:
from collections import Counter
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import AutoMetric
from lnml.datasets import load_dataset
from lnml.plotting import plot_embedding

letter = load_dataset("letter")
rows = np.flatnonzero(np.isin(letter.target, list("BDHKR")))
rows = np.random.default_rng(0).choice(rows, 800, replace=False)
X, y = letter.data[rows], letter.target[rows]
print(X.shape, *(f"{letter}: {count}" for letter, count in Counter(y).items()))

# %%
# Columns are standardised first: good advice for every metric learner. ``AutoMetric`` compares a
# few metrics on rows left out, and says what it took and why.
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
learned = make_pipeline(StandardScaler(), AutoMetric()).fit(X_train, y_train)
print(fill(learned[-1].reason_, 90))

# %%
# ``transform`` maps rows so that their Euclidean distance is the learned distance. So whatever
# works with Euclidean distances works with the learned one. Here are the test rows, which the fit
# has not seen, on two principal components:
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
views = {
    "standardised columns": learned[0].transform(X_test),
    "learned distance": learned.transform(X_test),
}
for ax, (title, Z) in zip(axes, views.items(), strict=True):
    plot_embedding(PCA(2).fit_transform(Z), y_test, [], ax=ax)
    ax.set_title(title)
plt.show()

# %%
# Is the nearest neighbour right more often? Five folds, in which the metric is learned anew from
# the training part each time:
folds = StratifiedKFold(5, shuffle=True, random_state=0)
nearest = KNeighborsClassifier(1)
for name, steps in (
    ("raw columns", nearest),
    ("standardised columns", make_pipeline(StandardScaler(), nearest)),
    ("learned distance", make_pipeline(StandardScaler(), AutoMetric(), nearest)),
):
    scores = 100 * cross_val_score(steps, X, y, cv=folds)
    print(f"{name:21} {scores.mean():.1f} % right, fold by fold {np.round(scores, 1)}")

# %%
# These are figures of one data set and one shuffle. The page on generalisation has 29 data sets,
# with tests of the differences; on some of them learning brings nothing
# (:ref:`sphx_glr_gallery_plot_04_does_not_pay.py`).
