"""
A pipeline in GridSearchCV
==========================

Metric learners are transformers, so scikit-learn's tools choose their parameters.
"""

# %%
# Ionosphere has 351 rows and 34 columns. A quarter of the rows is put aside for the end.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.evaluation import accuracy_interval

data = load_dataset("ionosphere")
X, X_test, y, y_test = train_test_split(
    data.data, data.target, test_size=0.25, stratify=data.target, random_state=0
)
steps = Pipeline(
    [("scale", StandardScaler()), ("metric", LMNN()), ("vote", KNeighborsClassifier())]
)
penalties, votes = [0.0, 0.01, 0.1, 1.0, 10.0], [1, 3, 5]
search = GridSearchCV(
    steps,
    {"metric__trace_penalty": penalties, "vote__n_neighbors": votes},
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
    n_jobs=2,
).fit(X, y)
print(search.best_params_)

# %%
# All means over the five inner folds:
table = 100 * search.cv_results_["mean_test_score"].reshape(len(penalties), len(votes))
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.imshow(table, cmap="cividis")
for (row, column), value in np.ndenumerate(table):
    shade = "black" if value > np.median(table) else "white"
    ax.text(column, row, f"{value:.1f}", ha="center", va="center", color=shade)
ax.set_xticks(range(len(votes)), votes)
ax.set_yticks(range(len(penalties)), penalties)
ax.set(xlabel="neighbours that vote", ylabel="trace_penalty", title="accuracy in %, inner folds")
plt.show()

# %%
# The best of fifteen means is too good to be true. The rows that were put aside took no part in the
# choice:
right = search.predict(X_test) == y_test
low, high = accuracy_interval(right)
print(f"inner folds {100 * search.best_score_:.1f} %")
print(
    f"{right.size} rows put aside {100 * right.mean():.1f} % (95 % interval {100 * low:.0f} to "
    f"{100 * high:.0f} %)"
)

# %%
# A penalty of its own for every candidate means that all are fitted from nothing. ``trace_path``
# does the same with a third of the work (:ref:`sphx_glr_gallery_plot_03_penalty_path.py`).
