"""The torch implementation of the kernel protocol, for CUDA and (in tests) for the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lnml.kernels.torch.device import parse_device
from lnml.kernels.torch.first_use import start_triton

if TYPE_CHECKING:
    from lnml.kernels.torch.backend import TorchKernels

__all__ = ["kernels_of"]


def kernels_of(name: str) -> TorchKernels:
    """Return the kernels of a device: "cuda", "cuda:1", ... or "torch:cpu"."""
    device = parse_device(name)
    if device.type == "cuda":
        start_triton(device)
    # Only now: the import takes a while, too.
    from lnml.kernels.torch.backend import TorchKernels

    return TorchKernels(name)
