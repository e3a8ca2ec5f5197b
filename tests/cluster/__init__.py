"""Tests of fits on a Dask cluster."""

from __future__ import annotations

import numpy as np

from lnml import LMNN


def start(n_workers, processes=False):
    """Start a cluster of workers with one thread each."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None
    )


def fits_have_the_same_bits(X, y):
    """Fits on one, two and four workers are the same to the last bit."""
    import dask.array as da
    from distributed import Client

    found = []
    for n_workers in (1, 2, 4):
        with start(n_workers) as cluster, Client(cluster):
            found.append(LMNN(tol=1e-2).fit(da.from_array(X, chunks=(50, 4)), y))
    for other in found[1:]:
        assert np.array_equal(found[0].components_, other.components_)
        assert found[0].objective_ == other.objective_
        assert found[0].duality_gap_ == other.duality_gap_
