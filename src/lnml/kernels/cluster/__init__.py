"""Kernels on a Dask cluster (see :mod:`lnml.kernels.protocol` and docs/cluster.md)."""

from lnml.kernels.cluster.backend import ClusterKernels

__all__ = ["ClusterKernels"]
