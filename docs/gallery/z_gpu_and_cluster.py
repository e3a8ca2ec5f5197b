"""
On a GPU and on a cluster
=========================

Shown, not run: this page needs a GPU and a cluster. The pages on both have measured figures.
"""

# %%
# A GPU
# -----
# Name the device, or pass a tensor that is there. ``pip install "lnml[torch]"``.
import torch

from lnml import LMNN, LNML
from lnml.datasets import load_dataset

letter = load_dataset("letter")
model = LNML(LMNN(), k_min=1, k_av=3, k_max=5, device="cuda").fit(letter.data, letter.target)

X = torch.as_tensor(letter.data, device="cuda")
model = LMNN().fit(X, letter.target)
Z = model.transform(X)  # a tensor on the GPU

# %%
# A cluster
# ---------
# Rows of a Dask array stay on the workers; what is learned is here. ``pip install "lnml[dask]"``.
import dask.array as da
from distributed import Client

with Client("tcp://scheduler:8786"):
    rows = da.from_array(letter.data, chunks=(5_000, -1))
    model = LMNN().fit(rows, letter.target)
    print(model.duality_gap_)

# %%
# From the command line, Parquet files that all workers can read:
#
# .. code-block:: console
#
#    $ lnml fit rows/ --label kind --cluster tcp://scheduler:8786 -o kind.model
