"""k nearest rows against brute force."""

import numpy as np
import pytest
from devices import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles import brute_force_nearest, same_class, squared_distances
from scipy.stats import ortho_group
from sklearn import config_context
from toy_data import embedded, lattice, sorted_blobs

from lnml.kernels import get_kernels

pytestmark = pytest.mark.usefixtures("device")

DTYPES = [np.float64, np.float32]
QUERIES = pytest.mark.one_machine("queries are answered where they are, not on a cluster")


def partners(kernels, embedding, k):
    """Distances and row numbers of the nearest rows of the same class, as in ``nearest``."""
    found = kernels.partners(embedding, k)
    return found.distances, found.columns


def assert_same_neighbors(found, expected, rtol=1e-10):
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=rtol)


def labels_of(class_sizes):
    return np.repeat(np.arange(len(class_sizes)), class_sizes)


def check_lattices(device, nearest, allowed):
    """Ties go to the lowest index among the pairs that are allowed."""

    @examples(device, 150)
    @given(
        seed=st.integers(0, 2**32 - 1),
        class_sizes=st.lists(st.integers(1, 25), min_size=1, max_size=4),
        n_features=st.integers(1, 3),
        k=st.integers(1, 8),
        dtype=st.sampled_from(DTYPES),
    )
    def check(seed, class_sizes, n_features, k, dtype):
        y = labels_of(class_sizes)
        Z = lattice(seed, y.size, n_features, levels=3)
        kernels, embedding = embedded(Z, y, dtype)
        expected = brute_force_nearest(squared_distances(Z), allowed(y), k)
        assert_same_neighbors(nearest(kernels, embedding, k), expected, rtol=0)

    check()


def test_ties_of_partners_go_to_the_lowest_index(device):
    check_lattices(device, partners, same_class)


@QUERIES
def test_ties_of_queries_go_to_the_lowest_index(device):
    def own_rows(kernels, embedding, k):
        return kernels.nearest(embedding, embedding.coordinates, k)

    check_lattices(device, own_rows, lambda y: np.ones((y.size, y.size), dtype=bool))


@pytest.mark.parametrize("seed", range(5))
def test_extreme_scales_and_offsets(seed):
    Z, y = sorted_blobs(seed, [70, 5, 40], 5)
    Z = Z * np.array([1e-8, 1e-4, 1.0, 1e4, 1e8]) + np.array([0.0, 1e6, 1e6, -1e6, 1e6])
    kernels, embedding = embedded(Z, y)
    expected = brute_force_nearest(squared_distances(Z), same_class(y), 7)
    assert_same_neighbors(partners(kernels, embedding, 7), expected)


def test_small_differences_at_a_large_offset():
    Z, y = sorted_blobs(0, [60, 60], 3)
    Z = 1e6 + 1e-3 * Z
    kernels, embedding = embedded(Z, y)
    expected = brute_force_nearest(squared_distances(Z), same_class(y), 5)
    assert_same_neighbors(partners(kernels, embedding, 5), expected)


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 1.0], [1e-8, 1.0, 1e8]])
def test_float32_finds_the_nearest_up_to_its_precision(scales, offset):
    Z, y = sorted_blobs(3, [150, 90], 3)
    Z = (Z * np.array(scales) + offset).astype(np.float32)
    kernels, embedding = embedded(Z, y, np.float32)
    distances, indices = partners(kernels, embedding, 6)
    D = squared_distances(Z)
    expected, _ = brute_force_nearest(D, same_class(y), 6)
    np.testing.assert_allclose(distances, expected, rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(D, indices, axis=1), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicated_rows(dtype):
    y = labels_of([40, 40])
    Z = np.tile(lattice(1, 20, 2, levels=10), (4, 1))
    kernels, embedding = embedded(Z, y, dtype)
    expected = brute_force_nearest(squared_distances(Z), same_class(y), 5)
    found = partners(kernels, embedding, 5)
    assert_same_neighbors(found, expected, rtol=0)
    assert (found[0][:, 0] == 0).all()


def test_short_rows_are_filled():
    Z, y = sorted_blobs(0, [1, 3, 10], 2)
    kernels, embedding = embedded(Z, y)
    distances, indices = partners(kernels, embedding, 4)
    assert (indices[0] == -1).all()
    assert np.isinf(distances[0]).all()
    assert (indices[1:4, 2:] == -1).all()
    assert np.isinf(distances[1:4, 2:]).all()
    assert (indices[1:4, :2] >= 0).all()
    assert (indices[4:] >= 0).all()
    assert not (indices == np.arange(y.size)[:, None]).any()


@QUERIES
@pytest.mark.parametrize("dtype", DTYPES)
def test_queries_see_all_rows(dtype):
    y = labels_of([30, 1, 20])
    Z = lattice(2, y.size, 3)
    queries = np.vstack([lattice(3, 17, 3, levels=6), Z[:3]])
    kernels, embedding = embedded(Z, y, dtype)
    D = ((queries[:, None] - Z[None]) ** 2).sum(axis=-1)
    expected = brute_force_nearest(D, np.ones(D.shape, dtype=bool), 6)
    found = kernels.nearest(embedding, queries, 6)
    assert_same_neighbors(found, expected, rtol=0)


@QUERIES
def test_more_queries_neighbors_than_rows():
    Z, y = sorted_blobs(0, [2, 2], 2)
    kernels, embedding = embedded(Z, y)
    distances, indices = kernels.nearest(embedding, Z[:2], 6)
    assert (indices[:, 4:] == -1).all()
    assert np.isinf(distances[:, 4:]).all()
    assert (np.sort(indices[:, :4]) == np.arange(4)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_tiles(dtype):
    """More rows than a tile, and little working memory so that tiles are small."""
    y = labels_of([700, 450])
    Z = lattice(4, y.size, 2, levels=12)
    kernels, embedding = embedded(Z, y, dtype)
    expected = brute_force_nearest(squared_distances(Z), same_class(y), 4)
    assert_same_neighbors(partners(kernels, embedding, 4), expected, rtol=0)
    with config_context(working_memory=1):
        small_tiles = partners(kernels, embedding, 4)
    assert_same_neighbors(small_tiles, expected, rtol=0)


def test_fewer_neighbors_are_a_prefix_of_more():
    """Distances equal up to their rounding to 37 bits tie for every k alike."""
    Z = np.array([[0.0], [1.0 + 1e-12], [1.0], [-3.0]])
    kernels, embedding = embedded(Z, np.zeros(4, dtype=int))
    one = partners(kernels, embedding, 1)[1]
    two = partners(kernels, embedding, 2)[1]
    np.testing.assert_array_equal(one[:, 0], two[:, 0])


@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0])
def test_ties_survive_a_rotation(offset):
    """Rotated lattices have the ties of the lattice, up to rounding of the coordinates."""
    y = labels_of([40, 40])
    kernels = embedded(np.zeros((1, 1)), np.zeros(1, dtype=int))[0]
    for seed in range(5):
        Z = lattice(seed, y.size, 3)
        rotation = ortho_group.rvs(3, random_state=seed)
        points = kernels.points(Z + offset, np.array([0, 40, 80]))
        found = partners(kernels, kernels.embed(points, rotation), 3)
        expected = brute_force_nearest(squared_distances(Z), same_class(y), 3)
        assert_same_neighbors(found, expected)


@pytest.mark.parametrize("class_sizes", [[30, 1, 20], [3, 2], [1, 1]])
def test_the_same_partners_as_lists(class_sizes):
    """Lists rise within a row, and say where each pair stands in the table."""
    y = labels_of(class_sizes)
    kernels, embedding = embedded(lattice(6, y.size, 2, levels=9), y)
    found = kernels.partners(embedding, 4)
    assert found.columns.shape == found.distances.shape == (y.size, 4)
    assert found.distances.dtype == np.float64
    rows, columns = found.pairs.pairs()
    there = [(i, j) for i, row in enumerate(found.columns) for j in sorted(row[row >= 0])]
    assert list(zip(rows, columns, strict=True)) == there
    np.testing.assert_array_equal(found.position // 4, rows)
    np.testing.assert_array_equal(found.columns.ravel()[found.position], columns)


@pytest.mark.one_machine("a cluster looks for partners anew")
def test_partners_of_one_metric_help_with_those_of_the_next(device):
    rng = np.random.default_rng(5)
    sizes = np.array([40, 1, 3, 25])
    rows = np.round(2.0 * rng.standard_normal((sizes.sum(), 3)))
    kernels, near = get_kernels(device), None
    points = kernels.points(rows, np.concatenate([[0], np.cumsum(sizes)]))
    for _ in range(4):
        embedding = kernels.embed(points, rng.standard_normal((3, 3)))
        again, anew = kernels.partners(embedding, 5, near), kernels.partners(embedding, 5)
        for name in ("distances", "columns"):
            found, wanted = (kernels.to_host(getattr(each, name)) for each in (again, anew))
            np.testing.assert_array_equal(found, wanted)
        near = again.pairs


@pytest.mark.one_machine("a cluster looks for partners anew")
def test_a_row_at_the_mean_keeps_its_partners(device):
    # Its class has fewer rows than partners are asked for.
    rows = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.0], [3.0], [-3.0]])
    kernels = get_kernels(device)
    embedding = kernels.embed(kernels.points(rows, np.array([0, 4, 7])), np.eye(1))
    first = kernels.partners(embedding, 3)
    again = kernels.partners(embedding, 3, first.pairs)
    for found in (first, again):
        assert kernels.to_host(found.columns)[4].tolist() == [5, 6, -1]


@pytest.mark.one_machine("a cluster looks for partners anew")
@pytest.mark.parametrize("dtype", DTYPES)
def test_known_partners_of_no_use(device, dtype):
    rows = np.random.default_rng(3).standard_normal((12, 2)).astype(dtype)
    kernels = get_kernels(device)
    embedding = kernels.embed(kernels.points(rows, np.array([0, 7, 12])), np.eye(2))
    # One for each row, where three are asked for.
    few = kernels.partners(embedding, 1).pairs
    wanted, found = kernels.partners(embedding, 3), kernels.partners(embedding, 3, few)
    np.testing.assert_array_equal(*(kernels.to_host(each.columns) for each in (found, wanted)))
