"""The CPU implementation of the kernel protocol (numba and BLAS)."""

from lnml.kernels.cpu.backend import CPUKernels

__all__ = ["CPUKernels"]
