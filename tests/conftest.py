"""One fixture runs a test on every implementation of the kernels."""

import pytest

import lnml.kernels

try:
    import torch
except ModuleNotFoundError:
    # So in the environment of the oldest versions; tests/kernels/test_devices.py insists on torch.
    torch = None

DEVICES = ["cpu"]
if torch is not None:
    DEVICES += ["torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    """Data without a device of their own are worked on by this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lnml.kernels, "HOST_DEVICE", request.param)
        yield request.param


@pytest.fixture(scope="session", autouse=True)
def one_torch_thread():
    """Small tensors are fastest on one thread."""
    if torch is not None:
        torch.set_num_threads(1)
