"""The neighbourhood object."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from lnml import Neighborhoods

graphs = st.integers(0, 7).flatmap(lambda n: arrays(np.bool_, (n, n)))


def pair_set(graph):
    return set(zip(*(axis.tolist() for axis in np.nonzero(graph)), strict=True))


@settings(max_examples=200)
@given(graphs)
def test_round_trip(graph):
    neighborhoods = Neighborhoods.from_graph(graph)
    back = neighborhoods.to_graph()
    assert sparse.issparse(back)
    assert back.format == "csr"
    np.testing.assert_array_equal(back.toarray(), graph)
    assert Neighborhoods.from_graph(back) == neighborhoods
    assert neighborhoods.n_rows == graph.shape[0]
    assert neighborhoods.size == graph.sum()
    np.testing.assert_array_equal(neighborhoods.sizes, graph.sum(axis=1))


@settings(max_examples=200)
@given(graphs, st.randoms(use_true_random=False))
def test_pairs_in_any_order_give_the_same(graph, random):
    rows, columns = np.nonzero(graph)
    order = np.array(random.sample(range(rows.size), rows.size), dtype=int)
    built = Neighborhoods.from_pairs(rows[order], columns[order], graph.shape[0])
    assert built == Neighborhoods.from_graph(graph)
    np.testing.assert_array_equal(np.stack(built.pairs()), np.stack([rows, columns]))


@settings(max_examples=200)
@given(st.integers(1, 7).flatmap(lambda n: st.tuples(*[arrays(np.bool_, (n, n))] * 2)))
def test_equality_and_number_of_changes(both):
    first, second = (Neighborhoods.from_graph(graph) for graph in both)
    assert first.n_changed(second) == len(pair_set(both[0]) - pair_set(both[1]))
    assert first.n_changed(first) == 0
    assert (first == second) == np.array_equal(*both)
    assert (first != second) == (not np.array_equal(*both))


@settings(max_examples=200)
@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(arrays(bool, (n, n)), st.permutations(range(n))))
)
def test_renumbered(graph_and_numbers):
    graph, numbers = graph_and_numbers[0], np.array(graph_and_numbers[1])
    renamed = Neighborhoods.from_graph(graph).renumbered(numbers)
    expected = {(int(numbers[i]), int(numbers[j])) for i, j in pair_set(graph)}
    assert pair_set(renamed.to_graph().toarray()) == expected
    assert renamed.renumbered(np.argsort(numbers)) == Neighborhoods.from_graph(graph)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("dtype", [float, int, bool])
def test_formats_and_types(kind, dtype):
    graph = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=dtype)
    neighborhoods = Neighborhoods.from_graph(kind(graph))
    assert neighborhoods == Neighborhoods.from_graph(graph.tolist())
    np.testing.assert_array_equal(neighborhoods.indices, [1, 2, 0])


def messy():
    """Columns out of order, a stored zero and a repeated entry."""
    data, columns = np.array([1.0, 0.0, 1.0, 1.0]), np.array([2, 1, 0, 0])
    return sparse.csr_array((data, columns, np.array([0, 2, 4, 4])), shape=(3, 3))


def test_zeros_and_repetitions_are_no_pairs():
    neighborhoods = Neighborhoods.from_graph(messy())
    np.testing.assert_array_equal(neighborhoods.indptr, [0, 1, 2, 2])
    np.testing.assert_array_equal(neighborhoods.indices, [2, 0])


def test_a_given_graph_stays_as_it_is():
    graph, untouched = messy(), messy()
    Neighborhoods.from_graph(graph)
    np.testing.assert_array_equal(graph.data, untouched.data)
    np.testing.assert_array_equal(graph.indices, untouched.indices)
    np.testing.assert_array_equal(graph.indptr, untouched.indptr)


def test_changing_the_graph_leaves_the_neighborhoods_alone():
    neighborhoods = Neighborhoods.from_graph(np.array([[0, 1], [1, 0]]))
    graph = neighborhoods.to_graph()
    graph.indices[:] = 0
    graph.indptr[:] = 0
    np.testing.assert_array_equal(neighborhoods.indices, [1, 0])
    np.testing.assert_array_equal(neighborhoods.indptr, [0, 1, 2])


def test_only_square_graphs():
    with pytest.raises(ValueError, match=r"square.*got shape \(2, 3\)"):
        Neighborhoods.from_graph(np.ones((2, 3)))


def test_unequal_to_anything_else_and_not_hashable():
    neighborhoods = Neighborhoods.from_graph(np.zeros((2, 2)))
    assert neighborhoods != "neighborhoods"
    assert neighborhoods != Neighborhoods.from_graph(np.zeros((3, 3)))
    with pytest.raises(TypeError):
        hash(neighborhoods)


def test_repr():
    graph = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    assert repr(Neighborhoods.from_graph(graph)) == "Neighborhoods(3 rows, 3 pairs, 0 to 2 a row)"
    assert (
        repr(Neighborhoods.from_graph(np.zeros((0, 0)))) == "Neighborhoods(0 rows, 0 pairs, empty)"
    )
