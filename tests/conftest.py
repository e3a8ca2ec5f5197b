"""What all tests share: the devices, and which repetitions are left to ``make test-extras``."""

import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster import start
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

try:
    import distributed
except ModuleNotFoundError:
    distributed = None

# The same examples every time, and no test measures time.
settings.register_profile("lnml", derandomize=True, deadline=None)
settings.load_profile("lnml")

DEVICES = ["cpu"]
if torch is not None:
    DEVICES += ["torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]

# What the tests of these folders build on is proved on torch:cpu by those of kernels and
# objectives, and test_every_device.py fits every estimator there: the repetitions are extras.
REPEATED = ("estimators", "learning", "solvers")


def _in(folder, path):
    return Path(__file__).parent / folder in path.parents


def _works_on_a_cluster(definition):
    """Whether a test of the device is also one of the cluster: not all operations are there."""
    if distributed is None or not _in("kernels", definition.path):
        return False
    return definition.get_closest_marker("one_machine") is None


def pytest_generate_tests(metafunc):
    """Run tests that use the device once for each."""
    if "device" in metafunc.fixturenames:
        more = ["cluster"] if _works_on_a_cluster(metafunc.definition) else []
        metafunc.parametrize("device", [*DEVICES, *more], indirect=True, scope="module")


@pytest.fixture(scope="session")
def cluster_client():
    """Two workers in this process. Others do not see them: they are no default."""
    with start(2) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def device(request):
    """Data without a device of their own are worked on by this one."""
    with ExitStack() as stack:
        if request.param == "cluster":
            stack.enter_context(request.getfixturevalue("cluster_client").as_current())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
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
    on_cluster = set()
    for item in items:
        values = item.callspec.params if hasattr(item, "callspec") else {}
        device = values.get("device")
        if device == "torch:cpu" and any(_in(folder, item.path) for folder in REPEATED):
            item.add_marker("extras")
        if device == "cluster":
            # Of each test there, the first case in each precision is no extra.
            case = (item.path, item.originalname, values.get("dtype"))
            if case in on_cluster:
                item.add_marker("extras")
            on_cluster.add(case)
    counts: Counter[Path] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and item.get_closest_marker("extras") is None:
            if counts[item.path] % sampled.args[0]:
                item.add_marker("extras")
            counts[item.path] += 1
