"""Names of devices, what they cost, and errors that name cause and cure."""

import sys

import numpy as np
import pytest
import torch
from conftest import DEVICES, distributed
from toy_data import blobs

from lnml import LMNN, MMC, NCA, estimate_memory
from lnml.kernels import device_of, get_kernels
from lnml.kernels.cluster import ClusterKernels
from lnml.kernels.cpu import CPUKernels
from lnml.kernels.protocol import Kernels
from lnml.kernels.torch import device as torch_device
from lnml.kernels.torch.backend import TorchKernels


def test_all_implementations_are_tested():
    """Nothing is skipped silently where torch or distributed are missing."""
    assert {"cpu", "torch:cpu"} <= set(DEVICES)
    assert distributed is not None


def test_every_operation_of_the_protocol_is_there():
    """Implementations derive from the protocol, whose own methods do nothing.

    But ``trail`` and ``mixed_slopes``, like the attributes, have a default that any device may
    keep.
    """
    operations = {name for name in vars(Kernels) if not name.startswith("_")}
    operations -= {"remote", "most_slopes", "trail", "mixed_slopes"}
    assert 20 < len(operations) <= 25
    for implementation in (CPUKernels, TorchKernels, ClusterKernels):
        for name in operations:
            assert getattr(implementation, name) is not getattr(Kernels, name), name


def test_a_device_is_chosen_by_name_or_by_the_data():
    array, tensor = np.zeros(2), torch.zeros(2)
    assert device_of(None, array) == "cpu"
    assert device_of("cpu", tensor) == device_of(None, tensor) == "torch:cpu"
    assert device_of("cuda:1", array) == device_of("cuda:1", tensor) == "cuda:1"
    assert isinstance(get_kernels("cpu"), CPUKernels)
    assert get_kernels("torch:cpu").device == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    X, y = blobs(0, [5, 5], 2)
    with pytest.raises(RuntimeError, match="sees no GPU"):
        LMNN(device="cuda").fit(X, y)


@pytest.mark.parametrize("name", ["tpu please", "meta"])
def test_unknown_devices(name):
    with pytest.raises(ValueError, match="use 'cpu'"):
        get_kernels(name)


def test_torch_that_is_not_there(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lnml.kernels.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"lnml\[torch\]"):
        get_kernels("cuda")


def test_data_that_do_not_fit_are_refused_with_a_size_that_would(monkeypatch):
    monkeypatch.setattr(torch_device, "free_bytes", lambda device: 2**30)
    with pytest.raises(MemoryError, match=r"1\.0 GiB free: about 670,000 rows would fit"):
        torch_device.check_room(torch.device("cuda"), 10**6, 100, 4)
    torch_device.check_room(torch.device("cuda"), 6 * 10**5, 100, 4)


def test_products_are_exact_during_a_fit_and_settings_come_back():
    torch.set_float32_matmul_precision("medium")
    try:
        with get_kernels("torch:cpu").session():
            assert torch.get_float32_matmul_precision() == "highest"
            assert not torch.is_grad_enabled()
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.is_grad_enabled()
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("estimator", [LMNN(), NCA(), MMC()], ids=repr)
def test_memory_of_a_gpu_is_estimated_anywhere(estimator):
    small = estimate_memory(estimator, 10**4, 50, "float32", device="cuda")
    assert small < estimate_memory(estimator, 10**5, 50, "float32", device="cuda")
    assert small < estimate_memory(estimator, 10**4, 500, "float32", device="cuda")


def test_running_out_of_memory_is_told_with_a_size_that_would_fit():
    reason = "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of ..."
    text = torch_device.out_of_memory(torch.device("cuda"), 10**6, 2 * 2**30, 2 * 2**30, reason)
    assert "held 2.0 GiB and wanted 6.0 GiB more, of which 2.0 GiB were free" in text
    assert "About 500,000 rows would fit" in text
    assert "rows would fit" in torch_device.out_of_memory(torch.device("cuda"), 0, 0, 0, "?")


def test_little_memory_is_told_in_small_units(monkeypatch):
    reason = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of ..."
    text = torch_device.out_of_memory(torch.device("cuda"), 100, 5 * 2**20, 2**19, reason)
    assert "held 5.0 MiB and wanted 20 MiB more, of which 0.5 MiB were free" in text
    monkeypatch.setattr(torch_device, "free_bytes", lambda device: 2**20)
    with pytest.raises(MemoryError, match=r"about 1\.5 MiB in a fit, and cuda has 1\.0 MiB free"):
        torch_device.check_room(torch.device("cuda"), 1000, 100, 4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_that_others_fill_up_during_a_fit():
    X, y = blobs(0, [60_000, 60_000], 40, separation=1.0)
    X = torch.tensor(X, dtype=torch.float32, device="cuda")
    taken = []

    def fill_up(_):
        if not taken:
            torch.cuda.empty_cache()
            free, _ = torch.cuda.mem_get_info()
            taken.append(torch.empty(free - 2**28, dtype=torch.uint8, device="cuda"))

    model = LMNN(tol=1e-6, callback=fill_up)
    with pytest.raises(MemoryError, match=r"the fit of 120,000 rows held .* rows would fit"):
        model.fit(X, y)
    assert not hasattr(model, "components_")
    taken.clear()
    torch.cuda.empty_cache()
    assert model.set_params(callback=None, tol=1e-2).fit(X, y).converged_
