"""Recordings of operations on a GPU."""

import pytest

torch = pytest.importorskip("torch")

from lnml.kernels.torch.replay import Replay, forget_pool  # noqa: E402


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recordings need a GPU")
def test_a_recording_is_made_after_others_are_gone():
    given = torch.arange(4.0, device="cuda")
    for factor in (2.0, 3.0):
        replay = Replay()
        for shift in range(4):
            found = replay(lambda values, f=factor: f * values, (given + shift,), factor)
            assert torch.equal(found, factor * (given + shift))
        assert replay.recorded
        del replay
    forget_pool()
