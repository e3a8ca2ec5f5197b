"""Fit LMNN to MNIST on one GPU: through a Dask worker, and directly.

    LNML_DATA=folder python benchmarks/cluster_gpu.py
    LNML_DATA=folder python benchmarks/cluster_gpu.py --rows 3000 --device torch:cpu

The folder holds mnist.npz (see README.md). The cluster is one worker process on this machine, with
one thread. Rows are on the worker, or on the GPU, before the clock starts, and a fit to few rows
has compiled everything. Needs numpy, scipy, scikit-learn, numba, torch, dask and distributed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import dask.array as da
import numpy as np
import torch
from distributed import Client, LocalCluster, wait
from suite.rows import mnist

from lnml import LMNN

CHUNK_ROWS = 10_000
WARM_UP_ROWS = 3000


def main() -> None:
    """Fit both ways and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--components", type=int, default=164, help="principal components")
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = mnist(options.rows, options.components)
    print(f"MNIST, {len(X):,} x {X.shape[1]}, {X.dtype}; {machine(options.device)}")
    print(f"{'':12} {'seconds':>8} {'objective':>14} {'gap':>9} {'iterations':>10}")
    tell("directly", directly(X, y, options.tol, options.device))
    tell("through Dask", through_dask(X, y, options.tol, options.device))


def machine(device: str) -> str:
    """Name of the GPU."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def directly(X: np.ndarray, y: np.ndarray, tol: float, device: str) -> tuple[LMNN, float]:
    """Fit in this process."""
    there = torch.as_tensor(X, device=device.removeprefix("torch:"))
    LMNN(tol=tol).fit(there[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    return timed(there, y, tol)


def through_dask(X: np.ndarray, y: np.ndarray, tol: float, device: str) -> tuple[LMNN, float]:
    """Fit on a cluster of one worker process."""
    started = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with started as cluster, Client(cluster) as client:
        found = client.run(use_device, device)
        print("tiles of the worker:", *found.values(), flush=True)
        few, rows = (
            da.from_array(part, chunks=(CHUNK_ROWS, X.shape[1])).persist()
            for part in (X[:WARM_UP_ROWS], X)
        )
        wait([few, rows])
        LMNN(tol=tol).fit(few, y[:WARM_UP_ROWS])
        return timed(rows, y, tol)


def use_device(device: str) -> str:
    """Name the device of this worker; a GPU it finds by itself."""
    from lnml.kernels.cluster import tiles

    tiles.WORKER_DEVICE = None if device == "cuda" else device
    return type(tiles.tiles_on(tiles.WORKER_DEVICE)).__name__


def timed(X: Any, y: np.ndarray, tol: float) -> tuple[LMNN, float]:
    """Return a fit and its seconds."""
    begin = time.perf_counter()
    model = LMNN(tol=tol).fit(X, y)
    return model, time.perf_counter() - begin


def tell(name: str, found: tuple[LMNN, float]) -> None:
    """Print one line of the table."""
    model, seconds = found
    print(
        f"{name:12} {seconds:8.2f} {model.objective_:14.6g} {model.duality_gap_:9.1e} "
        f"{model.n_iter_:10d}",
        flush=True,
    )


if __name__ == "__main__":
    main()
