"""Bad arguments of the assignment, and its warning."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from lnml import assign_neighborhoods
from lnml.learning.assignment import check_sizes

COSTS = np.ones((4, 4))
LABELS = ["a", "a", "b", "b"]


def sizes(k_min=1, k_av=1, k_max=1):
    return {"k_min": k_min, "k_av": k_av, "k_max": k_max}


@pytest.mark.parametrize("name", ["k_min", "k_av", "k_max"])
@pytest.mark.parametrize("value", [1.0, 1.5, "1", None, True, np.float64(1), np.bool_(True), -1])
def test_sizes_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number >= 0, got"):
        assign_neighborhoods(COSTS, LABELS, **sizes() | {name: value})


@pytest.mark.parametrize("wrong", [(2, 1, 3), (0, 2, 1), (3, 2, 1), (0, 0, 0), (0, 0, 2)])
def test_sizes_are_in_order(wrong):
    with pytest.raises(ValueError, match="k_min <= k_av <= k_max"):
        assign_neighborhoods(COSTS, LABELS, **sizes(*wrong))


def test_integers_of_numpy_are_whole_numbers():
    assert check_sizes(np.int8(0), np.int64(2), np.uint16(3)) == (0, 2, 3)


@pytest.mark.parametrize("shape", [(4,), (4, 3), (3, 3), (5, 5), (4, 4, 1)])
def test_one_row_and_column_per_label(shape):
    with pytest.raises(ValueError, match="n x n matrix with one row per label"):
        assign_neighborhoods(np.ones(shape), LABELS, **sizes())


def test_no_rows():
    with pytest.raises(ValueError, match="n x n matrix with one row per label"):
        assign_neighborhoods(np.ones((0, 0)), [], **sizes())


def test_sparse_costs_of_the_wrong_shape():
    with pytest.raises(ValueError, match="n x n matrix with one row per label"):
        assign_neighborhoods(sparse.csr_array((3, 3)), LABELS, **sizes())


def test_distances_have_the_shape_of_the_costs():
    with pytest.raises(ValueError, match="distances must have the shape of costs"):
        assign_neighborhoods(COSTS, LABELS, **sizes(), distances=np.ones((3, 3)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_costs_are_finite(value, kind):
    costs = np.zeros((4, 4))
    costs[2, 3] = value
    with pytest.raises(ValueError, match="must be finite"):
        assign_neighborhoods(kind(costs), LABELS, **sizes())


def test_costs_that_are_never_read_may_be_anything():
    costs = COSTS.copy()
    np.fill_diagonal(costs, np.nan)
    costs[0, 2] = costs[3, 1] = np.nan
    assert assign_neighborhoods(costs, LABELS, **sizes()).size == 4


@pytest.mark.parametrize("place", [(0, 2), (1, 1)])
@pytest.mark.parametrize("value", [1.0, 0.0])
def test_sparse_costs_of_pairs_that_cannot_be(place, value):
    costs = sparse.csr_array(([value], ([place[0]], [place[1]])), shape=(4, 4))
    assert costs.nnz == 1
    with pytest.raises(ValueError, match="two different rows of the same class"):
        assign_neighborhoods(costs, LABELS, **sizes())


def test_small_classes_are_named():
    y = ["small"] * 2 + ["single"] + ["large"] * 4 + ["just enough"] * 3
    with pytest.warns(UserWarning, match="too small for 2 target neighbours") as caught:
        assign_neighborhoods(np.ones((10, 10)), y, **sizes(1, 2, 3))
    message = str(caught[0].message)
    assert len(caught) == 1
    assert "small (2 rows)" in message
    assert "single (1 row)" in message
    assert "large" not in message
    assert "enough" not in message


def test_many_small_classes_are_counted():
    with pytest.warns(UserWarning, match="and 5 more"):
        assign_neighborhoods(np.ones((30, 30)), np.repeat(np.arange(15), 2), **sizes(2, 2, 2))


def test_no_warning_without_small_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assign_neighborhoods(COSTS, LABELS, **sizes())
