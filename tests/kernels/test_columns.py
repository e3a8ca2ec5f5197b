"""Data as they come onto the device, shifted and mapped, against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from devices import examples, host_kernels
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("device")

START = np.array([0, 4, 10])


def rows_of(kind, rng):
    """Ten values of a column, of one of several kinds."""
    noise = rng.standard_normal(10)
    if kind == "offset":
        return 10.0 ** rng.uniform(1, 9) * rng.choice([-1, 1]) + noise
    if kind == "code":
        return np.where(rng.random(10) < 0.3, 99999999.0, noise)
    if kind == "positive":
        return rng.uniform(1.0, rng.uniform(1.5, 2.5), 10) * 10.0 ** rng.uniform(-9, 9)
    if kind == "sparse":
        return np.where(rng.random(10) < 0.5, 0.0, noise)
    return 10.0 ** rng.uniform(-9, 9) * noise


KINDS = st.sampled_from(["offset", "code", "positive", "sparse", "mixed"])


def test_differences_of_training_rows_are_those_of_the_data(device):
    @examples(device, 100)
    @given(st.lists(KINDS, min_size=1, max_size=5), st.integers(0, 10**6), st.booleans())
    def check(kinds, seed, narrow):
        rng = np.random.default_rng(seed)
        X = np.stack([rows_of(kind, rng) for kind in kinds], axis=1)
        X = X.astype(np.float32 if narrow else np.float64)
        order = rng.permutation(10)
        points = host_kernels().points(X, START, order)
        assert points.data.dtype == X.dtype
        assert not points.far
        X, found = X[order].astype(np.longdouble), points.data.astype(np.longdouble)
        np.testing.assert_array_equal(found[:, None] - found, X[:, None] - X)

    check()


def test_a_common_offset_is_taken_away():
    X = 1e6 + np.random.default_rng(0).standard_normal((10, 2))
    X[:, 1] *= -1.0
    points = host_kernels().points(X, START, np.arange(10))
    assert np.abs(points.data).max() < 10.0


def test_data_that_are_not_to_be_learned_from_stay_as_they_are():
    X = 1e6 + np.random.default_rng(0).standard_normal((10, 2))
    points = host_kernels().points(X, START)
    np.testing.assert_array_equal(points.data, X)
    assert points.rounding is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [10, 5000])
def test_mapped_with_a_shift(dtype, n_rows):
    rng = np.random.default_rng(1)
    X = (1e4 + rng.standard_normal((n_rows, 3))).astype(dtype)
    matrix, shift = rng.standard_normal((3, 2)), X.mean(axis=0, dtype=float)
    kernels = host_kernels()
    points = kernels.points(X, np.array([0, 4, n_rows]))
    found = kernels.mapped(points, matrix, shift=shift)
    assert found.data.dtype == dtype
    assert not found.far
    # Up to the order of three terms, before the result is rounded to its type.
    expected = (X.astype(float) - shift) @ matrix
    np.testing.assert_allclose(found.data, expected, rtol=np.finfo(dtype).eps, atol=1e-14)
    plain = kernels.mapped(points, matrix).data
    np.testing.assert_allclose(
        plain, X.astype(float) @ matrix, rtol=4 * np.finfo(dtype).eps, atol=1e-11
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("given", ["shift", "scale", "both"])
def test_columns_in_other_units(dtype, wide, given):
    rng = np.random.default_rng(2)
    X = (1e4 + rng.standard_normal((5000, 3))).astype(dtype)
    shift = None if given == "scale" else X.mean(axis=0, dtype=float)
    scale = None if given == "shift" else np.array([0.1, 30.0, np.inf])
    kernels = host_kernels()
    points = kernels.points(X, np.array([0, 4, 5000]))
    found = kernels.mapped(points, shift=shift, scale=scale, wide=wide)
    assert found.data.dtype == (np.float64 if wide else dtype)
    expected = X.astype(float) - (0.0 if shift is None else shift)
    expected /= 1.0 if scale is None else scale
    # To divide by a scale, or to multiply by its inverse, are both right.
    np.testing.assert_allclose(found.data, expected, rtol=2 * np.finfo(found.data.dtype).eps)


def test_a_wide_map_keeps_digits_that_the_data_have_no_room_for():
    X = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    kernels = host_kernels()
    points = kernels.points(X, np.array([0, 1, 3]))
    matrix = np.array([[1.0 + 2.0**-40]])
    found = kernels.mapped(points, matrix, shift=np.array([2.0**-45]), wide=True)
    np.testing.assert_array_equal(found.data, (X.astype(float) - 2.0**-45) @ matrix)


def test_without_a_map_the_points_are_the_same():
    X = np.random.default_rng(3).standard_normal((10, 2)).astype(np.float32)
    kernels = host_kernels()
    points = kernels.points(X, START, np.arange(10))
    for wide in (False, True):
        found = kernels.mapped(points, wide=wide)
        assert found.data.dtype == (np.float64 if wide else np.float32)
        np.testing.assert_array_equal(found.data, points.data)
        np.testing.assert_array_equal(found.rounding, points.rounding)
        np.testing.assert_array_equal(found.class_start, START)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [10, 5000])
def test_what_columns_look_like(dtype, n_rows):
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((n_rows, 3)) * [1.0, 1e-3, 1e3] + [0.0, 1.0, -1e4]).astype(dtype)
    kernels = host_kernels()
    found = kernels.columns(kernels.points(X, np.array([0, 4, n_rows])))
    wide = X.astype(np.longdouble)
    assert all(part.dtype == np.float64 for part in found)
    np.testing.assert_allclose(found.mean, wide.mean(axis=0).astype(float), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.spread, wide.std(axis=0).astype(float), rtol=1e-9)
    np.testing.assert_array_equal(found.lowest, X.min(axis=0))
    np.testing.assert_array_equal(found.highest, X.max(axis=0))


def test_who_keeps_the_mark_of_far_points():
    kernels = host_kernels()
    points = kernels.points(np.ones((10, 2), dtype=np.float32), START)
    assert not points.far
    marked = kernels.mapped(points, np.eye(2), far=True)
    assert marked.far
    assert kernels.mapped(marked, wide=True).far
    assert kernels.mapped(marked, wide=True).data.dtype == np.float64
    assert not kernels.mapped(points, wide=True).far
    assert not kernels.mapped(marked, np.eye(2)).far
    assert not kernels.mapped(marked, shift=np.zeros(2), scale=np.ones(2)).far
    assert kernels.embed(marked, np.eye(2)).points.far
    assert not replace(marked, far=False).far
