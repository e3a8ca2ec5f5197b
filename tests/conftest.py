"""One fixture runs a test on every implementation of the kernels."""

import os

import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER and hasattr(os, "sched_setaffinity"):
    # Threads of test processes that share their cores would wait for each other. Before NumPy is
    # imported: its BLAS counts the cores then.
    _cores = sorted(os.sched_getaffinity(0))
    _mine = _cores[int(WORKER.removeprefix("gw")) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]
    os.sched_setaffinity(0, _mine or _cores)

import lnml.kernels  # noqa: E402

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
