"""Recordings of operations on a GPU."""

import numpy as np
import pytest
from oracles import nearest_targets, other_class, squared_distances
from toy_data import class_start, neighborhoods, sorted_blobs

torch = pytest.importorskip("torch")

from lnml.kernels.torch import hinge, screen  # noqa: E402
from lnml.kernels.torch.backend import TorchKernels  # noqa: E402
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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recordings need a GPU")
def test_repeats_renew_bounds(monkeypatch):
    monkeypatch.setattr(screen, "LEAST_PER_ROW", 0)
    rng = np.random.default_rng(0)
    Z, y = sorted_blobs(0, [60, 60, 60], 5, separation=3.0)
    kernels = TorchKernels("cuda")
    points = kernels.points(Z, class_start(y))
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 3))
    working = kernels.working_set(targets, neighborhoods(other_class(y)))
    components = np.eye(5)
    for _ in range(12):
        components = components + 0.02 * rng.standard_normal((5, 5))
        embedding = kernels.embed(points, components)
        found = kernels.hinge(embedding, working, 0.2, moment="coordinates")
        wanted = hinge.hinge(embedding, working, 0.2, "coordinates", 2**30)
        assert found.n_active == wanted.n_active
        assert found.smoothed == pytest.approx(wanted.smoothed, rel=1e-13)
        np.testing.assert_allclose(found.moment, wanted.moment, rtol=1e-10, atol=1e-10)
    assert working.replay.recorded
    forget_pool()
