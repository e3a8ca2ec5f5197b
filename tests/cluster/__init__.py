"""Tests of fits on a Dask cluster."""

from __future__ import annotations


def start(n_workers, processes=False):
    """Start a cluster of workers with one thread each."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None
    )
