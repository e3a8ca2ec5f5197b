"""
A path of penalties
===================

With few rows for each column, a metric learner finds directions that tell the training rows apart
by chance. A trace penalty gives each direction a price. How high should it be?
"""

# %%
# Sonar has 208 rows and 60 columns. ``trace_path`` learns a metric for each of a falling list of
# penalties; each solve starts where the last one ended. Five folds, each with a path of its own:
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from lnml import LMNN, trace_path
from lnml.datasets import load_dataset
from lnml.evaluation import predict_nearest
from lnml.plotting import plot_trace_path

sonar = load_dataset("sonar")
penalties = np.geomspace(1e-3, 10.0, 13)
scores, plain, euclidean = [], [], []
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(sonar.data, sonar.target):
    scaler = StandardScaler().fit(sonar.data[train])
    inside, outside = scaler.transform(sonar.data[train]), scaler.transform(sonar.data[test])
    known, wanted = sonar.target[train], sonar.target[test]
    path = trace_path(LMNN(), inside, known, trace_penalties=penalties)
    scores.append(path.scores(inside, known, outside, wanted))
    free = LMNN().fit(inside, known)
    predicted = predict_nearest(free.transform(inside), known, free.transform(outside))
    plain.append(np.mean(predicted == wanted))
    euclidean.append(np.mean(predict_nearest(inside, known, outside) == wanted))

# %%
# Every metric of the path has its own proof. The gap says by how much its objective can be above
# the smallest possible one, penalty included:
print("penalty  gap      evaluations  rank")
for penalty, gap, count, model in zip(
    path.trace_penalties, path.gaps, path.n_evaluations, path.models, strict=True
):
    lengths = np.linalg.svd(model.components_, compute_uv=False) ** 2
    rank = int(np.sum(lengths > 1e-4 * lengths[0]))
    print(f"{penalty:7.3f}  {gap:.1e}  {count:11}  {rank:4}")

# %%
# The mean accuracy of the nearest neighbour over the five folds, along the path:
ax = plot_trace_path(path, np.mean(scores, axis=0))
ax.axhline(100 * np.mean(plain), color="0.4", linestyle="--", label="LMNN without a penalty")
ax.axhline(100 * np.mean(euclidean), color="0.4", linestyle=":", label="Euclidean")
ax.legend(frameon=False, loc="lower left")
ax.set_title("Sonar, mean of five folds")
plt.show()

# %%
# The penalty with the best mean is chosen on the same folds that judge it, so its accuracy is a
# little too good to be true. To choose a penalty for a fit, use inner folds
# (:ref:`sphx_glr_gallery_plot_11_grid_search.py`).
spread = np.std(scores, axis=0, ddof=1).mean() / np.sqrt(5)
print(f"standard error of a mean over five folds: {100 * spread:.1f} points, about")
