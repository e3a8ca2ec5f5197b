"""Impostor search against brute force."""

import sys

import numpy as np
import pytest
from devices import device_kernels, host, room_for
from oracles import nearest_targets, other_class, squared_distances
from toy_data import class_start, embedded, lattice, neighborhoods, pattern_matrix, sorted_blobs

from lnml.core.pairs import TooManyPairs

pytestmark = pytest.mark.usefixtures("device")

# More rows than one tile is high or wide, with class boundaries inside tiles.
MANY = [300, 1, 450, 399, 60]


def dense(pattern, n_columns):
    return pattern_matrix(pattern, 1.0, n_columns) > 0


def assert_sorted_columns(pattern):
    for i in range(pattern.indptr.size - 1):
        row = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        assert (np.diff(row) > 0).all()


def random_radius(D, seed, share=0.15):
    """A different radius for every row, some -inf as of rows without targets."""
    rng = np.random.default_rng(seed)
    radius = np.quantile(D, share) * rng.uniform(0.2, 2.0, D.shape[0])
    radius[rng.random(D.shape[0]) < 0.1] = -np.inf
    return radius


def assert_found_exactly(pattern, D, y, radius, margin):
    """All pairs inside the radius, and none of those clearly outside it."""
    found = dense(pattern, y.size)
    assert_sorted_columns(pattern)
    assert found.sum() == pattern.size
    inside = (D < radius[:, None]) & other_class(y)
    assert inside.any()
    assert (found | ~inside).all()
    outside = (D > radius[:, None] * (1.0 + margin)) | ~other_class(y)
    assert not (found & outside).any()


@pytest.mark.parametrize("class_sizes", [[20, 15, 1], [3, 300, 40], [260, 256, 2], MANY])
@pytest.mark.parametrize("dtype, margin", [(np.float64, 1e-6), (np.float32, 1e-3)])
def test_pairs_inside_the_radius(class_sizes, dtype, margin):
    Z, y = sorted_blobs(0, class_sizes, 4)
    Z = Z.astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = random_radius(D, 1)
    assert_found_exactly(kernels.within(embedding, radius).found, D, y, radius, margin)


def test_almost_all_pairs():
    """Result buffers grow as often as they must."""
    Z, y = sorted_blobs(1, [700, 600], 2)
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    radius = np.full(y.size, np.quantile(D, 0.99))
    assert_found_exactly(kernels.within(embedding, radius).found, D, y, radius, 1e-6)


def test_no_pair():
    Z, y = sorted_blobs(1, [20, 20], 2)
    kernels, embedding = embedded(Z, y)
    pattern = kernels.within(embedding, np.full(y.size, -np.inf)).found
    assert pattern.size == 0
    np.testing.assert_array_equal(pattern.indptr, np.zeros(y.size + 1))


def one_target(D, y):
    """The nearest row of its class for every row, and how far the hinges of that pair reach."""
    targets = neighborhoods(nearest_targets(D, y, 1))
    rows, columns = targets.pairs()
    reach = np.full(y.size, -np.inf)
    reach[rows] = 1.0 + D[rows, columns]
    return targets, reach


def assert_same_hinges(kernels, embedding, D, y, radius, rtol=1e-10):
    """Sums over the impostors inside of the radius, for one target pair a row."""
    targets, reach = one_target(D, y)
    inside = other_class(y) & (D < np.minimum(radius, reach)[:, None])
    assert inside.any()
    hinges = np.where(inside, reach[:, None] - D, 0.0).sum(axis=1)
    rows, _ = targets.pairs()
    found = kernels.target_hinges(embedding, targets, radius)
    # Each hinge is a difference, as exact as its parts.
    atol = rtol * (reach * (1 + inside.sum(axis=1)))[rows]
    assert (np.abs(found - hinges[rows]) <= atol).all()


def clear_radius(D):
    """A radius for every row, in the widest gap between its 60th and 90th neighbour.

    Infinite for an outlier: to float32 all rows are equally far from it.
    """
    near = np.sort(D, axis=1)[:, 60:90]
    at = np.diff(near, axis=1).argmax(axis=1)
    below, above = (near[np.arange(len(D)), place] for place in (at, at + 1))
    return np.where(above > 1.001 * below, 0.5 * (below + above), np.inf)


@pytest.mark.parametrize("rows_at_a_time", [1, 7, 300, 1000, 1210])
def test_ranges_of_rows(rows_at_a_time):
    """Blocks that begin and end inside of classes and tiles find what the whole search does."""
    Z, y = sorted_blobs(2, MANY, 4)
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    with room_for(kernels, rows_at_a_time * y.size):
        assert_same_hinges(kernels, embedding, D, y, random_radius(D, 2, share=0.02))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_never_loses_a_pair(dtype):
    """Large norms, tiny differences: the matrix product alone is off by more than the distances."""
    Z, y = sorted_blobs(3, [200, 150, 30], 3)
    Z = np.vstack([Z[:-2], Z[-2:] + 1e4]).astype(dtype)
    Z[::2] += dtype(1e3)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = np.sort(D, axis=1)[:, 40]
    inside = (D < radius[:, None]) & other_class(y)
    found = dense(kernels.within(embedding, radius).found, y.size)
    assert (found | ~inside).all()


def test_extreme_scales():
    Z, y = sorted_blobs(4, [100, 100], 5)
    Z = Z * np.array([1e-8, 1e-4, 1.0, 1e4, 1e8]) + 1e6
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    radius = random_radius(D, 4)
    assert_found_exactly(kernels.within(embedding, radius).found, D, y, radius, 1e-6)


def test_lattice_pairs_within_a_radius_between_two_levels():
    y = np.repeat([0, 1, 2], [150, 100, 60])
    Z = lattice(5, y.size, 3)
    kernels, embedding = embedded(Z, y)
    D = squared_distances(Z)
    found = dense(kernels.within(embedding, np.full(y.size, 2.5)).found, y.size)
    np.testing.assert_array_equal(found, (D < 2.5) & other_class(y))


def test_too_many_pairs():
    Z, y = sorted_blobs(6, [300, 300], 2)
    kernels, embedding = embedded(Z, y)
    radius = np.full(y.size, 1.0)
    size = kernels.within(embedding, radius).found.size
    assert size > 1
    with room_for(kernels, size):
        assert kernels.within(embedding, radius).found.size == size
    with room_for(kernels, size - 1) as most:
        with pytest.raises(TooManyPairs, match=f"more than {most:,} pairs") as raised:
            kernels.within(embedding, radius)
        assert raised.value.most == most
        assert kernels.within(embedding, radius, limited=False).found.size == size


@pytest.fixture
def searched():
    """Kernels with what they hold on the device: an embedding, a radius, and a search."""
    Z, y = sorted_blobs(7, [40, 1, 50], 3)
    kernels = device_kernels()
    embedding = kernels.embed(kernels.points(Z, class_start(y)), np.eye(3))
    targets = kernels.pattern(neighborhoods(nearest_targets(squared_distances(Z), y, 2)))
    radius = kernels.distances(embedding, targets, longest=True) + 1.0
    return kernels, embedding, radius, kernels.within(embedding, radius)


def test_what_a_search_remembers(searched):
    _, embedding, radius, search = searched
    assert search.made_at(np.eye(3))
    assert not search.made_at(2.0 * np.eye(3))
    np.testing.assert_array_equal(host(search.radius), host(radius))
    # The one row of its class has no target.
    assert host(radius)[40] == -np.inf
    assert search.components is embedding.components


@pytest.mark.parametrize("share, serves", [(0.99, True), (0.9995, False), (1.0, False)])
def test_a_known_search_serves_a_smaller_radius(searched, share, serves):
    """It must reach a little further than is needed, whatever the rounding."""
    kernels, embedding, radius, search = searched
    found = kernels.within(embedding, share * radius, known=search)
    assert (found is search) == serves
    if not serves:
        np.testing.assert_array_equal(host(found.radius), host(share * radius))


@pytest.mark.parametrize("share, serves", [(0.99, True), (0.9995, False), (1.5, False)])
def test_a_known_search_serves_what_is_needed(searched, share, serves):
    """The radius may be larger: that is how far to look if it does not."""
    kernels, embedding, radius, search = searched
    wished = 1.4 * radius
    found = kernels.within(embedding, wished, known=search, needed=share * radius)
    assert (found is search) == serves
    expected = search if serves else kernels.within(embedding, wished)
    np.testing.assert_array_equal(host(found.radius), host(expected.radius))
    np.testing.assert_array_equal(host(found.found).indices, host(expected.found).indices)


def test_one_row_that_needs_more_is_enough_to_search_again(searched):
    kernels, embedding, radius, search = searched
    needed = host(0.9 * radius).copy()
    assert kernels.within(embedding, radius, known=search, needed=needed) is search
    needed[3] = 1.1 * host(radius)[3]
    found = kernels.within(embedding, np.maximum(host(radius), needed), known=search, needed=needed)
    assert found is not search
    needed[3] = -np.inf
    assert kernels.within(embedding, radius, known=search, needed=needed) is search


def test_a_known_search_takes_no_room(searched):
    kernels, embedding, radius, search = searched
    with room_for(kernels, 0):
        assert kernels.within(embedding, 0.9 * radius, known=search) is search
        with pytest.raises(TooManyPairs):
            kernels.within(embedding, radius, known=search)


@pytest.mark.parametrize("dtype, margin", [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("scale", [1.0, 1e25, 1e-25])
@pytest.mark.parametrize("outlier", [0.0, 1e6])
def test_leading_coordinates_lose_no_pair(monkeypatch, dtype, margin, scale, outlier):
    """The filter of large searches, on few rows: flat and steep spectra, any unit, an outlier."""
    if dtype is np.float32 and scale != 1.0:
        scale = scale ** (1 / 2)
    monkeypatch.setattr("lnml.kernels.cpu.search_filter.SMALL", 0)
    if "torch" in sys.modules:
        monkeypatch.setattr("lnml.kernels.torch.search_filter.SMALL", 0)
    Z, y = sorted_blobs(3, MANY[:3], 40)
    Z *= np.geomspace(1.0, 1e-3, 40)
    Z[0] += outlier
    Z = (Z * scale).astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    radius = random_radius(D, 3)
    assert_found_exactly(kernels.within(embedding, radius).found, D, y, radius, margin)
    with room_for(kernels, 60 * y.size):
        assert_same_hinges(kernels, embedding, D, y, clear_radius(D), rtol=margin)


@pytest.mark.parametrize("dtype, margin", [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("kept", [1, 8, 16, 23])
@pytest.mark.parametrize("steepness", [1.0, 1e-2])
def test_following_coordinates_lose_no_pair(monkeypatch, dtype, margin, kept, steepness):
    """Any split of the coordinates; with duplicates, an outlier and a constant column."""
    leading = "lnml.kernels.cpu.search_filter._leading_coordinates"
    monkeypatch.setattr("lnml.kernels.cpu.search_filter.SMALL", 0)
    monkeypatch.setattr(leading, lambda *_: kept)
    Z, y = sorted_blobs(4, MANY[:3], 24)
    Z *= np.geomspace(1.0, steepness, 24)
    Z[:, 5] = 7.0
    Z[-9:] = Z[:9]
    Z[11] += 1e3
    Z = Z.astype(dtype)
    kernels, embedding = embedded(Z, y, dtype)
    D = squared_distances(Z)
    for radius in (random_radius(D, 4), np.full(y.size, 1e-9), np.full(y.size, 2.0 * D.max())):
        assert_found_exactly(kernels.within(embedding, radius).found, D, y, radius, margin)
