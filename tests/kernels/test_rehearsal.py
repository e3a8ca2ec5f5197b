"""The rehearsal does what fits do; its errors are left to the fit, and would not be seen."""

import pytest

torch = pytest.importorskip("torch")

from lnml.kernels.torch import TorchKernels, rehearsal  # noqa: E402


def test_a_rehearsal_comes_to_its_end():
    rehearsal.rehearse(TorchKernels("torch:cpu"), torch.device("cpu"))


def test_errors_are_left_to_the_fit_and_a_device_has_one_rehearsal(monkeypatch):
    monkeypatch.setattr(rehearsal, "_started", set())
    asked, ended = [], []

    def broken(name):
        asked.append(name)
        raise MemoryError("no room")

    def run(*args, run=rehearsal._run):
        run(*args)
        ended.append(args)

    monkeypatch.setattr(rehearsal, "_run", run)
    # Without a GPU there is no stream, which is an error as well.
    device = torch.device("cuda", 0)
    threads = [rehearsal.start(broken, device) for _ in range(3)]
    threads[0].join()
    assert threads[1:] == [None, None]
    assert len(ended) == 1
    assert asked == (["cuda:0"] if torch.cuda.is_available() else [])
