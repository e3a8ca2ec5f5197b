"""Screened sums over candidates: the same bits as sums over all of them, on any walk."""

import numpy as np
import pytest
from oracles import nearest_targets, other_class, squared_distances
from toy_data import class_start, neighborhoods, sorted_blobs, walk

from lnml.core.pairs import WorkingSet
from lnml.core.points import Embedding
from lnml.kernels.cpu import CPUKernels, screen

GAMMA = 0.2


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Bounds for the smallest of working sets, too."""
    monkeypatch.setattr(screen, "LEAST_CANDIDATES", 0)
    monkeypatch.setattr(screen, "LEAST_PER_ROW", 0)


def working_sets(Z, y, dtype):
    """Kernels, points, and the triplets of a toy problem, with bounds and without."""
    kernels = CPUKernels()
    points = kernels.points(np.eye(y.size, dtype=dtype), class_start(y))
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 3))
    everybody = neighborhoods(other_class(y))
    made = kernels.working_set(targets, everybody)
    assert isinstance(made, screen.ScreenedSet)
    return kernels, points, made, WorkingSet(targets, everybody)


def embedding(points, Z):
    return Embedding(np.ascontiguousarray(Z, dtype=points.dtype), points, np.eye(1))


def assert_same(kernels, embedding, screened, plain):
    for moment in ("", "coordinates", "data"):
        found = kernels.hinge(embedding, screened, GAMMA, moment=moment)
        wanted = kernels.hinge(embedding, plain, GAMMA, moment=moment)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    found, wanted = (kernels.slopes(embedding, each, GAMMA) for each in (screened, plain))
    for name in ("indptr", "impostor", "slot", "value"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    return wanted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [0.0, 1e-9, 1e-3, 0.1])
def test_any_walk(step, dtype):
    rng = np.random.default_rng(5)
    Z, y = sorted_blobs(5, [30, 1, 45, 20], 3, separation=2.0)
    Z[3], Z[-4] = Z[0], Z[0]
    Z[7] = 300.0
    kernels, points, screened, plain = working_sets(Z, y, dtype)
    for number, here in enumerate(walk(Z, step, rng)):
        slopes = assert_same(kernels, embedding(points, here), screened, plain)
        if number % 5 == 4:
            screened, plain = (each.with_multipliers(slopes) for each in (screened, plain))


def test_exactly_at_the_limit():
    # Distances of exactly the margin, one step of rounding below it, and one above.
    for dtype in (np.float32, np.float64):
        one = dtype(1.0)
        others = [one, np.nextafter(one, dtype(0)), np.nextafter(one, dtype(2))]
        Z = np.array([0.0, 0.0, *others], dtype=dtype)[:, None]
        y = np.array([0, 0, 1, 1, 1])
        kernels, points, screened, plain = working_sets(Z.astype(float), y, dtype)
        for shift in (0.0, 1e-7, 0.25, 0.0):
            assert_same(kernels, embedding(points, Z + dtype(shift)), screened, plain)


def test_squares_that_overflow():
    Z = np.array([[0.0], [1.0], [3e19], [1.5e19]])
    y = np.array([0, 0, 1, 1])
    kernels, points, screened, plain = working_sets(np.array([[0.0], [1], [2], [3]]), y, np.float32)
    for scale in (1.0, 0.9, 1e-19, 2e-20, 1.0):
        with np.errstate(over="ignore"):
            found = [
                kernels.hinge(embedding(points, scale * Z), each, GAMMA, moment="data")
                for each in (screened, plain)
            ]
        assert found[0].n_active == found[1].n_active


@pytest.mark.parametrize("factors", [(1.0, 1e38, 1.001e38, 0.99e38), (1.0, 1e40, 1e40, 1.0)])
def test_moves_beyond_float32(factors):
    """Rows that have been far away, and are back."""
    Z = np.array([[0.0], [3.0], [1.0], [2.0]])
    kernels, points, screened, plain = working_sets(Z, np.array([0, 0, 1, 1]), np.float64)
    for factor in factors:
        with np.errstate(over="ignore", invalid="ignore"):
            assert_same(kernels, embedding(points, factor * Z), screened, plain)


def counted(kernels, points, working, walk):
    """How many distances of candidates each evaluation of a walk renews."""
    counts, before = [], None
    for here in walk:
        kernels.hinge(embedding(points, here), working, GAMMA, moment="coordinates")
        roots = screen.bounds_of(working, np.ascontiguousarray(here)).roots
        counts.append(roots.size if before is None else int((roots != before).sum()))
        before = roots.copy()
    return counts


def test_small_steps_leave_most_candidates_out():
    rng = np.random.default_rng(0)
    Z, y = sorted_blobs(0, [60, 60, 60], 5, separation=3.0)
    kernels, points, screened, _ = working_sets(Z, y, np.float64)
    steps = (Z + 1e-3 * k * rng.standard_normal(Z.shape) for k in range(6))
    first, *later = counted(kernels, points, screened, steps)
    assert first == screened.candidates.size
    assert max(later) < 0.2 * first


def test_a_working_set_that_rested_goes_on():
    rng = np.random.default_rng(3)
    Z, y = sorted_blobs(0, [30, 30], 3, separation=2.0)
    kernels, points, screened, plain = working_sets(Z, y, np.float64)
    for number, here in enumerate(walk(Z, 0.1, rng)):
        assert_same(kernels, embedding(points, here), screened, plain)
        if number % 3 == 2:
            screened.rest()
            # No coordinates, and no bounds.
            assert screened.followed._last is None and not screened.screen._roots.size


def test_small_working_sets_have_no_bounds(monkeypatch):
    monkeypatch.undo()
    Z, y = sorted_blobs(0, [20, 20], 3)
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 3))
    made = CPUKernels().working_set(targets, neighborhoods(other_class(y)))
    assert not isinstance(made, screen.ScreenedSet)
