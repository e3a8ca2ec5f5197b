"""A trail on a device: the pairs, the directions and the steps of the one on the host."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lnml.core.trail import Trail  # noqa: E402
from lnml.kernels.torch import TorchKernels  # noqa: E402
from lnml.kernels.torch import trail as torch_trail  # noqa: E402
from lnml.kernels.torch.trail import TorchTrail  # noqa: E402
from lnml.solvers.descent import descend  # noqa: E402

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHAPE = (4, 4)


def both(components, most_pairs=None):
    """Return the trail on the host and the one on the device."""
    host = Trail(components, most_pairs=most_pairs)
    return host, TorchTrail(components, most_pairs=most_pairs, device=DEVICE)


def tensor(values):
    return torch.as_tensor(values, device=DEVICE)


def pairs(seed, number):
    """Steps and changes of a quadratic, and now and then one without curvature."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((16, 16))
    hessian = root @ root.T + np.eye(16)
    for each in range(number):
        step = rng.standard_normal(SHAPE)
        change = (hessian @ step.ravel()).reshape(SHAPE)
        yield step, -change if each % 5 == 2 else change


@pytest.mark.parametrize("most_pairs", [1, 3, 20])
def test_directions_are_those_of_the_host(most_pairs):
    rng = np.random.default_rng(1)
    host, device = both(rng.standard_normal(SHAPE), most_pairs)
    for step, change in pairs(0, 9):
        host.add(step, change)
        device.add(tensor(step), tensor(change))
        assert device.n_pairs == host.n_pairs
        if not host.n_pairs:
            continue
        gradient = rng.standard_normal(SHAPE)
        wanted, slope = host.downhill(gradient)
        found, found_slope = device.downhill(tensor(gradient))
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-8, atol=1e-10)
        assert found_slope == pytest.approx(slope, rel=1e-8)
    device.forget()
    assert device.n_pairs == 0


def test_coordinates_change_as_on_the_host():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((4, 4))
    coordinates = SimpleNamespace(matrix=matrix, inverse=np.linalg.inv(matrix), pull=np.ones(4))
    host, device = both(rng.standard_normal(SHAPE), 3)
    for step, change in pairs(3, 6):
        host.add(step, change)
        device.add(tensor(step), tensor(change))
    gradient = rng.standard_normal(SHAPE)
    for there in ("inside", "outside"):
        host, device = (getattr(each, there)(coordinates) for each in (host, device))
        np.testing.assert_allclose(device.components, host.components, rtol=1e-10)
        wanted, slope = host.downhill(gradient)
        found, found_slope = device.downhill(tensor(gradient))
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-7, atol=1e-9)
        assert found_slope == pytest.approx(slope, rel=1e-7)
        # It goes on there: a place is free for the next pair.
        for each, as_given in ((host, np.asarray), (device, tensor)):
            each.add(*(as_given(part) for part in next(pairs(4, 1))))
        assert device.n_pairs == host.n_pairs == 3


def test_components_go_to_the_device_and_back():
    start = np.arange(16.0).reshape(SHAPE)
    trail = TorchTrail(start, device=DEVICE)
    assert trail.components is start
    np.testing.assert_array_equal(trail.at.cpu().numpy(), start)
    trail.move_to(trail.at + 1.0)
    np.testing.assert_array_equal(trail.components, start + 1.0)
    trail.move_to(start)
    assert trail.components is start
    np.testing.assert_array_equal(trail.at.cpu().numpy(), start)


def test_a_descent_takes_the_same_steps():
    rng = np.random.default_rng(5)
    root = rng.standard_normal((16, 16))
    hessian, target = root @ root.T + np.eye(16), rng.standard_normal(16)

    def on_host(components):
        moved = components.ravel() - target
        return 1.0 + 0.5 * float(moved @ hessian @ moved), (hessian @ moved).reshape(SHAPE)

    def on_device(components):
        value, gradient = on_host(components.cpu().numpy())
        return value, tensor(gradient)

    host, device = both(rng.standard_normal(SHAPE))
    counts = [
        descend(function, trail, max_iter=15, value_tol=0.0)
        for function, trail in ((on_host, host), (on_device, device))
    ]
    assert counts[0] == counts[1]
    np.testing.assert_allclose(device.components, host.components, atol=1e-6)


def test_small_metrics_stay_on_the_host():
    kernels = TorchKernels(f"{DEVICE}")
    assert type(kernels.trail(np.zeros(SHAPE))) is Trail
    large = np.zeros((1, torch_trail.SMALL))
    assert isinstance(kernels.trail(large, most_pairs=2), TorchTrail)
