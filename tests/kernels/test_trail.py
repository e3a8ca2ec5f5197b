"""A trail on a device: the pairs, the directions and the steps of the one on the host."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from toy_data import small_dataset  # noqa: E402

from lnml import LMNN, LNML  # noqa: E402
from lnml.core.trail import Trail  # noqa: E402
from lnml.kernels.tensors import like  # noqa: E402
from lnml.kernels.torch import backend  # noqa: E402
from lnml.kernels.torch import trail as torch_trail  # noqa: E402
from lnml.kernels.torch.backend import TorchKernels  # noqa: E402
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


def walk(trail, steps, as_given):
    """Start at a random gradient, and go on by steps with their changes, one after the other."""
    gradient = np.random.default_rng(7).standard_normal(SHAPE)
    trail.start(as_given(gradient))
    for number, (step, change) in enumerate(steps):
        gradient = gradient + change
        # It may look elsewhere first.
        trail.look(trail.at + 9.0, as_given(np.array(7.0)), as_given(gradient + 1.0))
        value = trail.look(
            trail.at + as_given(step), as_given(np.array(1.0 * number)), as_given(gradient)
        )
        assert value == number
        trail.advance()
        yield


def assert_same(host, device):
    assert device.n_pairs == host.n_pairs
    np.testing.assert_allclose(device.components, host.components, rtol=1e-10)
    if host.n_pairs:
        wanted, slope = host.downhill()
        found, found_slope = device.downhill()
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-7, atol=1e-8)
        assert found_slope == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("most_pairs", [1, 3, 20])
def test_directions_are_those_of_the_host(most_pairs):
    host, device = both(np.random.default_rng(1).standard_normal(SHAPE), most_pairs)
    for seed in (0, 1):
        walks = walk(host, pairs(seed, 9), np.asarray), walk(device, pairs(seed, 9), tensor)
        for _ in zip(*walks, strict=True):
            assert_same(host, device)
    device.forget()
    host.forget()
    assert device.n_pairs == 0
    for _ in zip(
        walk(host, pairs(3, 4), np.asarray), walk(device, pairs(3, 4), tensor), strict=True
    ):
        assert_same(host, device)


def test_coordinates_change_as_on_the_host():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((4, 4))
    coordinates = SimpleNamespace(matrix=matrix, inverse=np.linalg.inv(matrix), pull=np.ones(4))
    host, device = both(rng.standard_normal(SHAPE), 3)
    for _ in zip(
        walk(host, pairs(3, 6), np.asarray), walk(device, pairs(3, 6), tensor), strict=True
    ):
        pass
    for there in ("inside", "outside"):
        host, device = (getattr(each, there)(coordinates) for each in (host, device))
        # It goes on there.
        walks = walk(host, pairs(4, 5), np.asarray), walk(device, pairs(4, 5), tensor)
        for _ in zip(*walks, strict=True):
            assert_same(host, device)


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
        return tensor(value), tensor(gradient)

    host, device = both(rng.standard_normal(SHAPE))
    counts = [
        descend(function, trail, max_iter=15, value_tol=0.0)
        for function, trail in ((on_host, host), (on_device, device))
    ]
    assert counts[0] == counts[1]
    np.testing.assert_allclose(device.components, host.components, atol=1e-6)


def test_a_gradient_that_fades_keeps_its_digits():
    """Down to a minimum of zero, where sums from the start on would be rounding."""
    rng = np.random.default_rng(8)
    wanted = rng.standard_normal(SHAPE)
    wanted = wanted @ wanted.T

    def function(components):
        rest = components.T @ components - like(wanted, components)
        return (rest * rest).sum(), 4.0 * components @ rest

    host, device = both(rng.standard_normal(SHAPE), 5)
    counts = [descend(function, each, max_iter=150, value_tol=0.0) for each in (host, device)]
    assert function(device.components)[0] <= 1e-22
    assert counts[1] <= 2 * counts[0]


def test_small_metrics_stay_on_the_host():
    kernels = TorchKernels(f"{DEVICE}")
    assert type(kernels.trail(np.zeros(SHAPE))) is Trail
    large = np.zeros((1, torch_trail.SMALL))
    assert isinstance(kernels.trail(large, most_pairs=2), TorchTrail)


@pytest.mark.parametrize("learner", [LMNN(), LMNN(trace_penalty=0.01), LNML(LMNN())], ids=repr)
def test_fits_end_where_they_do_with_a_trail_on_the_host(learner, monkeypatch):
    X, y = small_dataset("wine")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    learner.set_params(device="cuda" if DEVICE.type == "cuda" else "torch:cpu")
    host = clone(learner).fit(X, y)
    monkeypatch.setattr(backend, "SMALL", 0)
    made, init = [], TorchTrail.__init__
    monkeypatch.setattr(
        TorchTrail, "__init__", lambda self, *a, **k: made.append(1) or init(self, *a, **k)
    )
    found = clone(learner).fit(X, y)
    assert made
    assert found.duality_gap_ <= 1e-3
    # Rounds of LNML may end in another optimum.
    rel = 2e-3 if isinstance(learner, LMNN) else 0.1
    assert found.objective_ == pytest.approx(host.objective_, rel=rel)


def test_steps_grow_where_the_function_falls_ever_faster():
    """Near the top of a hill, steps of a hundredth of the length would be too many."""

    def well(components):
        square = (components * components).sum()
        return (square - 1.0) ** 2, 4.0 * (square - 1.0) * components

    for trail in both(1e-5 * np.ones(SHAPE)):
        n_evaluations = descend(well, trail, max_iter=30, value_tol=1e-12)
        assert n_evaluations < 60
        assert np.linalg.norm(trail.components) == pytest.approx(1.0, rel=1e-4)
