"""One fixture runs a test on every implementation of the kernels."""

import pytest
import torch

import lnml.kernels

DEVICES = ["cpu", "torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    """Data without a device of their own are worked on by this one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lnml.kernels, "HOST_DEVICE", request.param)
        yield request.param
    torch.set_num_threads(threads)
