"""All n x n work, behind one short protocol (see :mod:`lnml.kernels.protocol`)."""

from __future__ import annotations

from lnml.kernels.protocol import Kernels

__all__ = ["get_kernels"]


def get_kernels() -> Kernels:
    """Return the kernels of the CPU; compiled code is imported on first use."""
    from lnml.kernels.cpu import CPUKernels

    return CPUKernels()
