"""The torch implementation of the kernel protocol, for CUDA and (in tests) for the CPU."""

from lnml.kernels.torch.backend import TorchKernels

__all__ = ["TorchKernels"]
