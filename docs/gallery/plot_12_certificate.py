"""
Verifying a certificate
=======================

A fit says how far it can be from the best metric. The proof is a file, and others can check it.
"""

# %%
import tempfile
from dataclasses import replace
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt

from lnml import LMNN
from lnml.certificates import Certificate, verify
from lnml.datasets import load_dataset
from lnml.plotting import plot_convergence

wine = load_dataset("wine")
model = LMNN().fit(wine.data, wine.target)
print(f"objective {model.objective_:.3f}, gap {model.duality_gap_:.1e}")
print(fill(model.certificate_.about, 90))

# %%
# The objective falls and the lower bound rises, until they are within ``tol`` (0.1 %) of each
# other. Whatever other metric somebody finds, its objective lies above the lower line.
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
plot_convergence(model, ax=ax)
ax.legend(frameon=False)
plt.show()

# %%
# Send the certificate to somebody who has the data. ``verify`` computes everything again, in
# extended precision, with code that shares nothing with the solver:
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "wine.npz"
    model.certificate_.save(path)
    received = Certificate.load(path)
for name, value in verify(received, wine.data, wine.target)._asdict().items():
    print(f"{name:16} {value}")

# %%
# It believes nothing. A better bound than the proof gives is refused:
too_good = replace(received, bound=received.objective * 0.9999, gap=1e-4)
print(verify(too_good, wine.data, wine.target).reason)

# %%
# So are other components with the same claim:
other = replace(received, components=1.01 * received.components)
print(verify(other, wine.data, wine.target).reason)

# %%
# And data in which one number was changed:
changed = wine.data.copy()
changed[0, 0] += 1.0
print(verify(received, changed, wine.target).reason)

# %%
# What is *not* proved: that the metric is good for new rows. A certificate is about the objective
# on the training rows; how well a metric generalises has to be measured.
