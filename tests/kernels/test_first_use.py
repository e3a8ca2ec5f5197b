"""What is read when a GPU is used for the first time; the GPU itself is not needed here."""

import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from lnml.kernels.torch import first_use  # noqa: E402

DEVICE = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def forgotten():
    """Each test is a first use."""
    first_use._started.cache_clear()
    first_use.installed.cache_clear()
    yield
    first_use._started.cache_clear()
    first_use.installed.cache_clear()


@pytest.fixture
def reading(monkeypatch):
    """Stand-ins for what is read; they note that they were asked, and for which device."""
    asked = []

    def read_triton(device):
        asked.append(("triton", device))
        return True

    monkeypatch.setattr(first_use, "_read_triton", read_triton)
    monkeypatch.setattr(
        first_use, "_load_programs", lambda device: asked.append(("programs", device))
    )
    return asked


def test_once_for_each_device(reading):
    other = torch.device("cuda", 1)
    for device in (DEVICE, DEVICE, other):
        assert first_use.triton_ready(device)
        first_use.wait_for_programs(device)
    assert sorted(reading, key=str) == sorted(
        [(what, device) for what in ("triton", "programs") for device in (DEVICE, other)], key=str
    )


def test_once_for_many_threads(reading):
    threads = [threading.Thread(target=first_use.triton_ready, args=(DEVICE,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first_use.wait_for_programs(DEVICE)
    assert len(reading) == 2


def test_an_error_is_raised_each_time(monkeypatch, reading):
    def fails(device):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(first_use, "_read_triton", fails)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no compiler"):
            first_use.triton_ready(DEVICE)


def test_programs_that_cannot_be_loaded_are_missed_later(monkeypatch, reading):
    """By the operation that needs one: here nothing is said."""

    def fails(device):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(first_use, "_load_programs", fails)
    first_use.wait_for_programs(DEVICE)
    assert first_use.triton_ready(DEVICE)


def test_without_triton(monkeypatch):
    monkeypatch.setattr(first_use, "_load_programs", lambda device: None)
    monkeypatch.setattr(first_use, "find_spec", lambda name: None)
    assert not first_use.installed()
    assert not first_use.triton_ready(DEVICE)


@pytest.mark.parametrize("missing", ["triton", "triton.language"])
def test_a_package_of_another_kind_that_is_called_triton(monkeypatch, missing):
    monkeypatch.setattr(first_use, "_load_programs", lambda device: None)
    monkeypatch.setattr(first_use, "installed", lambda: True)
    without(monkeypatch, missing)
    assert not first_use.triton_ready(DEVICE)


def test_a_triton_that_lacks_something_else(monkeypatch):
    monkeypatch.setattr(first_use, "_load_programs", lambda device: None)
    monkeypatch.setattr(first_use, "installed", lambda: True)
    without(monkeypatch, "filelock")
    with pytest.raises(ModuleNotFoundError, match="filelock"):
        first_use.triton_ready(DEVICE)


def without(monkeypatch, name):
    """Let the import of the programs fail, since a module is missing."""

    class Finder:
        def find_spec(self, asked, path=None, target=None):
            if asked == "lnml.kernels.torch.programs":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, "lnml.kernels.torch.programs", raising=False)
    package = sys.modules["lnml.kernels.torch"]
    monkeypatch.delattr(package, "programs", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])


def test_all_operations_work():
    for operation in first_use._operations(torch.device("cpu")):
        operation()
