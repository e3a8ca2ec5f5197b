"""What all tests share: the devices, and which repetitions are left to ``make test-extras``."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

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

# The same examples every time, and no test measures time.
settings.register_profile("lnml", derandomize=True, deadline=None)
settings.load_profile("lnml")

DEVICES = ["cpu"]
if torch is not None:
    DEVICES += ["torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]

# What the tests of these folders build on is proved on torch:cpu by those of kernels and
# objectives, and test_every_device.py fits every estimator there: the repetitions are extras.
REPEATED = ("estimators", "learning", "solvers")


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the extras, before ``-m`` selects by marks."""
    folders = [Path(__file__).parent / name for name in REPEATED]
    for item in items:
        values = item.callspec.params if hasattr(item, "callspec") else {}
        if values.get("device") == "torch:cpu" and set(folders) & set(item.path.parents):
            item.add_marker("extras")
