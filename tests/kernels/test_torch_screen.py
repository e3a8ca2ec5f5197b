"""Screened sums on a GPU: those over all candidates, on any walk.

The programs need a GPU, or ``TRITON_INTERPRET=1`` and Triton.
"""

import numpy as np
import pytest
from oracles import nearest_targets, other_class, squared_distances
from toy_data import neighborhoods, sorted_blobs, walk

torch = pytest.importorskip("torch")

from lnml.kernels.torch import fused, hinge, screen  # noqa: E402
from lnml.kernels.torch.backend import TorchKernels  # noqa: E402
from lnml.kernels.torch.working_set import as_working_set  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    not fused.usable(torch.empty(0, device=DEVICE)),
    reason="the programs need a GPU, or TRITON_INTERPRET=1 and Triton",
)
GAMMA = 0.2
ROOM = 2**30


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Bounds for the smallest of working sets, too."""
    monkeypatch.setattr(screen, "LEAST_PER_ROW", 0)


def working_set(Z, y):
    """Kernels, and the triplets of a toy problem."""
    kernels = TorchKernels(DEVICE)
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 3))
    made = kernels.working_set(targets, neighborhoods(other_class(y)))
    return kernels, as_working_set(made, kernels.device)


def sums(z, working, *, again):
    triplets = hinge.Triplets.of(z, working, ROOM, again=again)
    return triplets.bounds, triplets.sums(GAMMA)


def assert_same(z, working):
    bounds, found = sums(z, working, again=True)
    _, wanted = sums(z, working, again=False)
    assert bounds is not None
    # What a candidate gets is the same; sums over them are added in another order.
    assert torch.equal(found.candidate_weights, wanted.candidate_weights)
    assert found.totals[3] == wanted.totals[3]
    for ours, theirs in zip(found, wanted, strict=True):
        scale = max(float(theirs.abs().max()), 1e-300)
        torch.testing.assert_close(ours / scale, theirs / scale, rtol=1e-14, atol=1e-15)
    return bounds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("step", [0.0, 1e-9, 1e-3, 0.1])
def test_any_walk(step, dtype):
    rng = np.random.default_rng(5)
    Z, y = sorted_blobs(5, [6, 1, 8, 5], 3, separation=2.0)
    Z[3], Z[-4] = Z[0], Z[0]
    Z[5] = 300.0
    kernels, working = working_set(Z, y)
    for number, here in enumerate(walk(Z, step, rng, length=12)):
        z = torch.as_tensor(here, dtype=dtype, device=kernels.device)
        assert_same(z, working)
        if number % 5 == 4:
            slopes = hinge.Triplets.of(z, working, ROOM).slopes(GAMMA)
            working = working.with_multipliers(slopes)


def test_moves_beyond_float32():
    """Rows that have been far away, and are back."""
    Z = np.array([[0.0], [3.0], [1.0], [2.0]])
    kernels, working = working_set(Z, np.array([0, 0, 1, 1]))
    for factor in (1.0, 1e40, 1e40, 1.0):
        z = torch.as_tensor(factor * Z, device=kernels.device)
        _, found = sums(z, working, again=True)
        _, wanted = sums(z, working, again=False)
        assert found.totals[3] == wanted.totals[3]
        assert torch.equal(found.candidate_weights, wanted.candidate_weights)


def test_small_steps_leave_most_candidates_out():
    rng = np.random.default_rng(0)
    Z, y = sorted_blobs(0, [8, 8, 8], 5, separation=2.0)
    kernels, working = working_set(Z, y)
    renewed, before = [], None
    for k in range(4):
        here = Z + 1e-3 * k * rng.standard_normal(Z.shape)
        bounds = assert_same(torch.as_tensor(here, device=kernels.device), working)
        if before is not None:
            renewed.append(int((bounds.roots != before).sum()))
        before = bounds.roots.clone()
    assert 0 < min(renewed) and max(renewed) < 0.5 * working.candidates.size


def test_other_coordinates_have_no_bounds():
    Z, y = sorted_blobs(1, [5, 6], 4, separation=2.0)
    kernels, working = working_set(Z, y)
    z = torch.as_tensor(Z, device=kernels.device)
    assert working.screen.at(z) is not None
    assert working.screen.at(z[:, :2].contiguous()) is None
    assert working.screen.at(z.float()) is None
    assert working.screen.at(z) is not None


@pytest.mark.parametrize("width", [32, 64, 96, 160, 192])
def test_entries_of_a_product_that_reach_a_limit(width):
    """All columns at once, parts of 32, and parts of 64."""
    rng = np.random.default_rng(width)
    left, right = (
        torch.as_tensor(rng.integers(-3, 4, (n, width)), dtype=torch.float16, device=DEVICE)
        for n in (70, 300)
    )
    # Products of small whole numbers are exact.
    scores = left.double() @ right.double().T
    limits = scores.quantile(0.9, dim=1).half()
    left_out = torch.stack([torch.arange(70), torch.arange(70) + 20], dim=1).to(DEVICE)
    columns = torch.arange(300, device=DEVICE)
    inside = (columns >= left_out[:, :1]) & (columns < left_out[:, 1:])
    wanted = (scores >= limits[:, None]) & ~inside
    found = fused.Lister.of_product(left, right, limits, left_out)
    assert torch.equal(found.counts, wanted.sum(dim=1))
    total = int(found.counts.sum())
    assert torch.equal(found.columns(0, 70, total).long(), torch.nonzero(wanted)[:, 1])
