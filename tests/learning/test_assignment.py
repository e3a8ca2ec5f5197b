"""The assignment against the linear programme, and its rule for ties."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import assignment_limits, least_assignment_cost, same_class
from scipy import sparse

from lnml import assign_neighborhoods

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "class_sizes": st.lists(st.integers(1, 6), min_size=1, max_size=4),
        "kind": st.sampled_from(["ties", "real", "negative", "equal"]),
        "steps": st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)),
    }
)


def make_problem(seed, class_sizes, kind, steps):
    """Costs, labels and sizes k_min <= k_av <= k_max with k_av >= 1."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(class_sizes)), class_sizes))
    shape = (y.size, y.size)
    costs = {
        "ties": lambda: rng.integers(0, 3, shape).astype(float),
        "real": lambda: rng.lognormal(size=shape),
        "negative": lambda: rng.standard_normal(shape),
        "equal": lambda: np.ones(shape),
    }[kind]()
    k_min = steps[0]
    k_av = max(k_min + steps[1], 1)
    return costs, y, {"k_min": k_min, "k_av": k_av, "k_max": k_av + steps[2]}


def assign(*arguments, **options):
    """Without the warning about small classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return assign_neighborhoods(*arguments, **options)


def as_sparse(costs, y):
    """CSR with an entry, possibly zero, for every pair of the same class."""
    rows, columns = np.nonzero(same_class(y))
    return sparse.csr_array((np.asarray(costs)[rows, columns], (rows, columns)), shape=costs.shape)


def matrix(neighborhoods):
    return neighborhoods.to_graph().toarray()


@settings(max_examples=600)
@given(problems)
def test_is_an_optimum_of_the_linear_programme(problem):
    costs, y, sizes = make_problem(**problem)
    P = matrix(assign(costs, y, **sizes))
    floor, cap, budget = assignment_limits(y, **sizes)
    assert np.isin(P, [0.0, 1.0]).all()
    assert not P[~same_class(y)].any()
    assert (P.sum(axis=1) >= floor).all()
    assert (P.sum(axis=1) <= cap).all()
    assert P.sum() == budget
    assert (P * costs).sum() == pytest.approx(
        least_assignment_cost(costs, y, **sizes), rel=1e-9, abs=1e-9
    )


@settings(max_examples=200)
@given(problems, st.booleans())
def test_sparse_costs_give_the_same(problem, with_distances):
    costs, y, sizes = make_problem(**problem)
    distances = np.random.default_rng(problem["seed"]).integers(0, 3, costs.shape).astype(float)
    dense = assign(costs, y, **sizes, distances=distances if with_distances else None)
    given_sparse = as_sparse(distances, y) if with_distances else None
    assert assign(as_sparse(costs, y), y, **sizes, distances=given_sparse) == dense
    assert assign(as_sparse(costs, y).tocoo(), y, **sizes, distances=given_sparse) == dense


@settings(max_examples=200)
@given(problems)
def test_is_the_first_optimum_by_cost_then_distance_then_index(problem):
    """Break ties by tiny changes of the costs in the order of the rule: the same choice."""
    costs, y, sizes = make_problem(**problem)
    costs = np.round(costs, 1)
    distances = np.random.default_rng(problem["seed"]).integers(0, 2, costs.shape).astype(float)
    index = np.arange(costs.size).reshape(costs.shape)
    ranked = np.unique(np.stack([costs, distances, index], axis=-1).reshape(-1, 3), axis=0)
    rank = {tuple(entry): r for r, entry in enumerate(ranked)}
    total_order = np.array(
        [rank[entry] for entry in zip(costs.flat, distances.flat, index.flat, strict=True)]
    ).reshape(costs.shape)
    expected = assign(total_order.astype(float), y, **sizes)
    assert assign(costs, y, **sizes, distances=distances) == expected


def test_sparse_entries_are_the_only_allowed_pairs():
    """Row 0 may choose row 2 only, row 1 nobody."""
    costs = sparse.csr_array(
        (np.array([9.0, 1.0, 2.0]), (np.array([0, 2, 2]), np.array([2, 0, 1]))), shape=(3, 3)
    )
    chosen = assign(costs, [0, 0, 0], k_min=1, k_av=1, k_max=2)
    np.testing.assert_array_equal(matrix(chosen), [[0, 0, 1], [0, 0, 0], [1, 0, 0]])


def test_stored_zeros_are_allowed_pairs():
    costs = sparse.csr_array((np.zeros(2), (np.array([0, 1]), np.array([1, 0]))), shape=(2, 2))
    assert assign(costs, [0, 0], k_min=1, k_av=1, k_max=1).size == 2


def test_repeated_sparse_entries_are_one_pair():
    """SciPy's convention: entries of one place add up."""
    costs = sparse.csr_array(
        (np.array([1.0, 1.0, 5.0, 1.0]), np.array([1, 1, 2, 0]), np.array([0, 3, 4, 4])),
        shape=(3, 3),
    )
    chosen = matrix(assign(costs, [0, 0, 0], k_min=2, k_av=2, k_max=2))
    np.testing.assert_array_equal(chosen, [[0, 1, 1], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("make", [lambda costs, y: costs, as_sparse], ids=["dense", "sparse"])
def test_arguments_stay_as_they_are(make):
    costs, y, sizes = make_problem(0, [4, 5], "ties", (1, 1, 1))
    given = make(costs, y)
    before = given.copy()
    assign(given, y, **sizes, distances=given)
    assert (given != before).sum() == 0
    if sparse.issparse(given):
        assert given.nnz == before.nnz


class TestTies:
    def test_within_a_row_the_lower_index(self):
        chosen = assign(np.ones((4, 4)), [0] * 4, k_min=1, k_av=1, k_max=1)
        np.testing.assert_array_equal(chosen.indices, [1, 0, 0, 0])

    def test_within_a_row_the_shorter_distance(self):
        distances = np.array([[0, 2, 1], [1, 0, 2], [2, 2, 0]])
        chosen = assign(np.ones((3, 3)), [0] * 3, k_min=1, k_av=1, k_max=1, distances=distances)
        np.testing.assert_array_equal(chosen.indices, [2, 0, 0])

    def test_between_rows_the_lower_row(self):
        chosen = assign(np.ones((3, 3)), [0] * 3, k_min=0, k_av=1, k_max=2)
        np.testing.assert_array_equal(matrix(chosen), [[0, 1, 1], [1, 0, 0], [0, 0, 0]])

    def test_between_rows_the_shorter_distance(self):
        distances = np.array([[0, 9, 9], [8, 0, 1], [1, 8, 0]])
        chosen = assign(np.ones((3, 3)), [0] * 3, k_min=0, k_av=1, k_max=2, distances=distances)
        np.testing.assert_array_equal(matrix(chosen), [[0, 0, 0], [1, 0, 1], [1, 0, 0]])

    def test_cost_comes_before_distance(self):
        costs = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
        distances = np.array([[0, 9, 1], [9, 0, 9], [1, 9, 0]])
        chosen = assign(costs, [0] * 3, k_min=1, k_av=1, k_max=1, distances=distances)
        np.testing.assert_array_equal(chosen.indices, [1, 0, 1])


def test_good_rows_receive_more_neighbors():
    """Rows 0 and 1 are cheap: they get the neighbours that row 3 can spare."""
    costs = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [4, 4, 0, 4], [9, 9, 8, 0]], dtype=float)
    chosen = assign(costs, ["a"] * 4, k_min=1, k_av=2, k_max=3)
    np.testing.assert_array_equal(chosen.sizes, [3, 3, 1, 1])
    assert matrix(chosen)[3, 2] == 1


def test_budget_of_a_small_class_does_not_flow_to_others():
    y = np.array([0, 1, 1, 1, 1, 2, 2])
    chosen = assign(np.ones((7, 7)), y, k_min=0, k_av=2, k_max=3)
    by_class = [chosen.sizes[y == c].sum() for c in range(3)]
    assert by_class[0] == 0
    assert sum(by_class) == 0 + 8 + 2
    assert by_class[2] <= 2


def test_sparse_costs_without_any_pair():
    nothing = sparse.csr_array((3, 3))
    assert assign(nothing, [0, 1, 2], k_min=1, k_av=1, k_max=1).size == 0
    assert assign(nothing, [0, 1, 2], k_min=1, k_av=1, k_max=1, distances=nothing).size == 0


@pytest.mark.parametrize("given", [{}, {"k_max": 5}, {"k_min": 1}], ids=str)
def test_every_row_has_three_by_default(given):
    """Any other default would let sizes vary, or not fit the one that is given."""
    costs = np.random.default_rng(0).lognormal(size=(16, 16))
    chosen = assign_neighborhoods(costs, np.repeat(["a", "b"], 8), **given)
    np.testing.assert_array_equal(chosen.sizes, 3)
