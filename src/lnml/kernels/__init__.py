"""All n x n work, behind one short protocol (see :mod:`lnml.kernels.protocol`)."""

from __future__ import annotations

from typing import Any

from lnml.kernels.protocol import Kernels
from lnml.kernels.tensors import is_dask, is_tensor

__all__ = ["device_of", "get_kernels"]

# Where data that are no tensors are worked on unless a device is named.
HOST_DEVICE = "cpu"
# Where Dask arrays are worked on.
CLUSTER = "cluster"


def device_of(device: Any, X: Any) -> str:
    """Return the device for data X: the one named, else where the data are.

    Tensors on the CPU are worked on by torch ("torch:cpu"), other data there by
    the compiled kernels ("cpu").
    """
    if is_dask(X):
        if device not in (None, CLUSTER):
            raise ValueError(
                f"device={device!r} does not go with a Dask array, which its cluster works on: "
                f"leave device out"
            )
        return CLUSTER
    if device == CLUSTER:
        raise ValueError(
            "device='cluster' needs X as a Dask array, such as dask.array.from_array(X)"
        )
    if is_tensor(X):
        name = str(X.device if device is None else device)
        return "torch:cpu" if name == "cpu" else name
    return HOST_DEVICE if device is None else str(device)


def get_kernels(device: Any = None) -> Kernels:
    """Return the kernels of a device; compiled code and torch are imported on first use.

    Parameters
    ----------
    device : str, torch.device or None, default=None
        "cpu" (None): compiled kernels. "cuda", "cuda:1", ...: torch on that GPU.
        "torch:cpu": torch on the CPU.
    """
    name = HOST_DEVICE if device is None else str(device)
    if name == CLUSTER:
        from lnml.kernels.cluster import ClusterKernels

        return ClusterKernels()
    if name == "cpu":
        from lnml.kernels.cpu import CPUKernels

        return CPUKernels()
    try:
        from lnml.kernels.torch import kernels_of
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"device={name!r} needs torch: pip install 'lnml[torch]', or use device='cpu'",
            name="torch",
        ) from error
    return kernels_of(name)
