"""What is read when a GPU is used for the first time; the GPU itself is not needed here."""

import logging
import os
import sys
import threading
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from lnml.kernels.torch import first_use  # noqa: E402

DEVICE = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def forgotten():
    """Each test is a first use."""
    first_use._forget()
    first_use.installed.cache_clear()
    yield
    first_use._forget()
    first_use.installed.cache_clear()


@pytest.fixture
def asked(monkeypatch):
    """Stand-ins for what is read note that they were asked, and for which device."""
    asked = []

    def read_triton(device):
        asked.append(("triton", str(device)))
        return True

    def load_programs(device):
        asked.append(("programs", str(device)))

    monkeypatch.setattr(first_use, "_read_triton", read_triton)
    monkeypatch.setattr(first_use, "_load_programs", load_programs)
    return asked


def test_once_for_each_device(asked):
    for device in (DEVICE, DEVICE, torch.device("cuda", 1)):
        first_use.start_triton(device)
        first_use.start_programs(device)
        assert first_use.triton_ready(device)
        first_use.wait_for_programs(device)
    found = [(what, f"cuda:{number}") for what in ("programs", "triton") for number in (0, 1)]
    assert sorted(asked) == found


def test_who_waits_for_programs_does_not_load_them(asked):
    first_use.wait_for_programs(DEVICE)
    assert asked == []


def test_once_for_many_threads(asked):
    threads = [threading.Thread(target=first_use.triton_ready, args=(DEVICE,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == [("triton", "cuda:0")]


def test_an_error_is_raised_each_time_and_keeps_nothing(monkeypatch):
    def fails(device):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(first_use, "_read_triton", fails)
    depths = []
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no compiler") as raised:
            first_use.triton_ready(DEVICE)
        depths.append(len(raised.traceback))
    assert depths[0] == depths[-1]


def test_a_program_that_cannot_be_loaded_is_told_where_it_is_needed(monkeypatch, caplog):
    def operations(device):
        yield lambda: torch.ones(2) @ torch.ones(3)

    monkeypatch.setattr(first_use, "_operations", operations)
    with caplog.at_level(logging.DEBUG, logger=first_use.__name__):
        first_use.start_programs(DEVICE)
        first_use.wait_for_programs(DEVICE)
    assert "not loaded" in caplog.text


def test_all_operations_work():
    for operation in first_use._operations(torch.device("cpu")):
        operation()


def test_without_triton(monkeypatch):
    monkeypatch.setattr(first_use, "find_spec", lambda name: None)
    assert not first_use.installed()
    assert not first_use.triton_ready(DEVICE)


def test_a_module_that_somebody_put_in_its_place(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    assert not first_use.installed()


def test_a_folder_of_that_name(monkeypatch, tmp_path):
    (tmp_path / "triton").mkdir()
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert not first_use.installed()


@pytest.mark.parametrize("missing", ["triton", "triton.language"])
def test_a_package_of_another_kind_that_is_called_triton(monkeypatch, missing):
    monkeypatch.setattr(first_use, "installed", lambda: True)
    without(monkeypatch, missing)
    assert not first_use.triton_ready(DEVICE)


def test_a_triton_that_lacks_something_else(monkeypatch):
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
    monkeypatch.delattr(sys.modules["lnml.kernels.torch"], "programs", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_begins_anew(asked):
    assert first_use.triton_ready(DEVICE)
    with first_use._starting:
        child = os.fork()
        if child == 0:
            # The lock was held, and the thread is not there.
            first_use.start_triton(DEVICE)
            os._exit(0 if first_use.triton_ready(DEVICE) and len(asked) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
