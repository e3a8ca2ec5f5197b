"""Nearest rows of the same class, where those at another metric are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import brute_force_nearest, same_class, squared_distances
from toy_data import embedded, lattice, sorted_blobs

from lnml.core.pairs import Pattern
from lnml.kernels.cpu import partners as module

SIZES = [40, 1, 25, 3]
LABELS = np.repeat(np.arange(len(SIZES)), SIZES)


@pytest.fixture(autouse=True)
def found(monkeypatch):
    """Small classes are searched in this way, too; a list of what was found within reach."""
    lists, search = [], module.same_class

    def listed(*args):
        lists.append(search(*args))
        return lists[-1]

    monkeypatch.setattr(module, "LEAST_ROWS", 0)
    monkeypatch.setattr(module, "same_class", listed)
    return lists


def chosen_pairs(choose, k, y=LABELS):
    """Up to k rows of its class for every row, by a rule that gets the others."""
    lists = [np.flatnonzero((y == y[i]) & (np.arange(y.size) != i)) for i in range(y.size)]
    lists = [np.sort(choose(i, each)[:k]).astype(np.int32) for i, each in enumerate(lists)]
    return Pattern(np.cumsum([0, *map(len, lists)]), np.concatenate(lists))


def farthest(Z):
    return lambda i, others: others[np.argsort(-((Z[others] - Z[i]) ** 2).sum(axis=1))]


def assert_nearest(kernels, embedding, D, k, near, rtol=0.0):
    partners = kernels.partners(embedding, k, near)
    distances, columns = brute_force_nearest(D, same_class(LABELS), k)
    np.testing.assert_array_equal(partners.columns, columns)
    np.testing.assert_allclose(partners.distances, distances, rtol=rtol)
    # The same bits as without.
    alone = kernels.partners(embedding, k)
    np.testing.assert_array_equal(alone.distances, partners.distances)
    np.testing.assert_array_equal(alone.pairs.indices, partners.pairs.indices)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(1, 3),
    k=st.integers(1, 6),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_ties_go_to_the_lowest_index(seed, n_features, k, dtype):
    Z = lattice(seed, LABELS.size, n_features, levels=3)
    kernels, embedding = embedded(Z, LABELS, dtype)
    rng = np.random.default_rng(seed)
    for choose in (lambda i, others: rng.permutation(others), farthest(Z)):
        near = kernels.pattern(chosen_pairs(choose, k))
        assert_nearest(kernels, embedding, squared_distances(Z), k, near)


@pytest.mark.parametrize("kept", [1, 4, 12])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_leading_coordinates_lose_no_row(monkeypatch, found, kept, offset):
    """With duplicates, an outlier, a constant column, and columns of all scales."""
    monkeypatch.setattr("lnml.kernels.cpu.search_filter.SMALL", 0)
    leading = "lnml.kernels.cpu.search_filter._leading_coordinates"
    monkeypatch.setattr(leading, lambda *_: kept)
    Z, _ = sorted_blobs(2, SIZES, 12)
    Z = Z * np.geomspace(1.0, 1e-3, 12) + offset
    Z[:, 5], Z[30:36], Z[7] = 7.0, Z[:6], Z[7] + 1e3
    kernels, embedding = embedded(Z, LABELS)
    near = kernels.partners(embedded(Z[:, ::-1] * np.arange(12), LABELS)[1], 3).pairs
    assert_nearest(kernels, embedding, squared_distances(Z), 3, near, rtol=1e-10)
    assert len(found) == 1


def test_coordinates_are_chosen_from_pairs_of_one_class(monkeypatch, found):
    monkeypatch.setattr("lnml.kernels.cpu.search_filter.SMALL", 0)
    Z, _ = sorted_blobs(3, SIZES, 12)
    kernels, embedding = embedded(Z * np.geomspace(1.0, 1e-3, 12), LABELS)
    near = kernels.partners(embedding, 2).pairs
    D = squared_distances(embedding.coordinates)
    assert_nearest(kernels, embedding, D, 2, near, rtol=1e-10)
    # Known at this very metric: nothing else is within reach.
    assert found[0].size == near.size


def test_more_known_rows_serve_and_fewer_do_not(found):
    Z, _ = sorted_blobs(4, SIZES, 3)
    kernels, embedding = embedded(Z, LABELS)
    D = squared_distances(Z)
    assert_nearest(kernels, embedding, D, 3, kernels.partners(embedding, 5).pairs, rtol=1e-10)
    assert len(found) == 1
    assert_nearest(kernels, embedding, D, 3, kernels.partners(embedding, 2).pairs, rtol=1e-10)
    assert len(found) == 1


def test_rows_that_are_of_no_use(monkeypatch, found):
    """Too many rows are within their distance: all pairs are looked at."""
    monkeypatch.setattr(module, "MOST_PER_PARTNER", 2)
    Z, _ = sorted_blobs(5, SIZES, 3)
    kernels, embedding = embedded(Z, LABELS)
    near = kernels.pattern(chosen_pairs(farthest(Z), 3))
    assert_nearest(kernels, embedding, squared_distances(Z), 3, near, rtol=1e-10)
    assert not found


def test_small_classes_need_no_filter(monkeypatch, found):
    monkeypatch.setattr(module, "LEAST_ROWS", 40)
    Z, _ = sorted_blobs(6, SIZES, 3)
    kernels, embedding = embedded(Z, LABELS)
    near = kernels.partners(embedding, 3).pairs
    assert_nearest(kernels, embedding, squared_distances(Z), 3, near, rtol=1e-10)
    assert not found
