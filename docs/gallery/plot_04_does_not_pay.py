"""
When learning does not pay
==========================

A learned metric is not always better than Euclidean distance. ``compare`` says whether it is.
"""

# %%
# ``compare`` cross-validates methods on the same folds, here on standardised columns. Balance Scale
# is a data set where learning helps. Sonar has 60 columns for 208 rows, which is little to learn
# from.
import matplotlib.pyplot as plt

from lnml import LMNN, LNML, AutoMetric
from lnml.datasets import load_dataset
from lnml.evaluation import compare, mcnemar
from lnml.plotting import plot_accuracies

methods = {
    "Euclidean": None,
    "LMNN": LMNN(),
    "LN-LMNN": LNML(LMNN()),
    "AutoMetric": AutoMetric(),
}
found = {}
for name in ("balance_scale", "sonar"):
    data = load_dataset(name)
    found[name] = compare(
        data.data, data.target, methods, name=name, scaled=list(methods), n_folds=3, n_jobs=2
    )

# %%
# Wilson's intervals of the accuracy. A filled mark is not significantly worse than the best method:
fig, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for ax, (name, comparison) in zip(axes, found.items(), strict=True):
    plot_accuracies(comparison, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# McNemar's test looks at the rows on which two methods differ. Against Euclidean distance:
for name, comparison in found.items():
    print(name)
    for method in list(methods)[1:]:
        test = mcnemar(comparison.correct(method), comparison.correct("Euclidean"))
        print(
            f"  {method:10} right alone on {test.n_only_a:3} rows, Euclidean on "
            f"{test.n_only_b:3}: p = {test.pvalue:.2g}"
        )

# %%
# On Balance Scale learned neighbourhoods matter: LMNN with fixed ones gains a few rows, LN-LMNN
# more than a hundred. On Sonar no method is better than Euclidean distance, and LN-LMNN, which has
# the most freedom, is clearly worse. AutoMetric loses ten rows there, which may be chance. (These
# are three tests for each data set, without a correction; ``pairwise_mcnemar`` makes one.)
#
# What to do about it: compare before you use a metric (``lnml compare`` writes a report), take
# ``AutoMetric``, which has the Euclidean metric among its candidates, or set a trace penalty
# (:ref:`sphx_glr_gallery_plot_03_penalty_path.py`).
