"""Means of metrics and of neighbourhoods."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lnml.learning.averages import balanced_subsamples, mean_components, target_shares


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    count=st.integers(1, 7),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 10),
)
@settings(max_examples=80, deadline=None)
def test_subsamples_are_stratified_and_use_all_rows_alike(sizes, count, share, seed):
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    parts = balanced_subsamples(codes, count, share, np.random.RandomState(seed))
    assert len(parts) == count
    uses = np.zeros((count, codes.size), dtype=int)
    for number, rows in enumerate(parts):
        assert np.array_equal(rows, np.unique(rows))
        uses[number, rows] = 1
        for c, size in enumerate(sizes):
            wanted = max(min(size, 2), round(share * size))
            assert (codes[rows] == c).sum() == wanted
    for c in range(len(sizes)):
        often = uses[:, codes == c].sum(axis=0)
        # Arcs of equal length that start at equal distances, rounded to whole rows.
        assert often.max() - often.min() <= 2


def test_the_default_share_leaves_each_row_out_once():
    codes = np.repeat([0, 1], [20, 13])
    parts = balanced_subsamples(codes, 4, 0.75, np.random.RandomState(1))
    out = [np.setdiff1d(np.arange(33), rows) for rows in parts]
    assert np.bincount(np.concatenate(out), minlength=33)[codes == 0].tolist() == [1] * 20
    assert np.bincount(np.concatenate(out), minlength=33).max() <= 2


def test_another_seed_gives_other_subsamples():
    codes = np.repeat([0, 1], 30)
    one, same, other = (
        balanced_subsamples(codes, 2, 0.5, np.random.RandomState(seed)) for seed in (0, 0, 1)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_mean_is_that_of_metrics_in_units_of_the_data():
    rng = np.random.default_rng(0)
    covariance = np.cov(rng.standard_normal((4, 30)))
    metrics = [rng.standard_normal((3, 4)), 100.0 * rng.standard_normal((2, 4))]
    wanted = sum(L.T @ L / np.trace(L.T @ L @ covariance) for L in metrics) / 2
    found = mean_components(metrics, covariance)
    assert found.T @ found == pytest.approx(wanted)
    lengths = np.linalg.norm(found, axis=1)
    assert (np.diff(lengths) <= 0).all()
    gram = found @ found.T
    assert gram == pytest.approx(np.diag(np.diag(gram)))


def test_the_mean_of_low_rank_has_the_rank_of_both():
    one, other = np.eye(5)[:1], np.eye(5)[2:3]
    assert mean_components([one, other], np.eye(5)).shape == (2, 5)
    assert mean_components([one, one], np.eye(5)).shape == (1, 5)


def test_a_metric_that_sees_nothing_is_a_mean_of_zeros():
    assert mean_components([np.zeros((2, 3))], np.eye(3)).tolist() == [[0.0, 0.0, 0.0]]


def test_shares_count_the_subsamples_that_hold_both_rows():
    subsamples = [np.array([0, 1, 2]), np.array([0, 1, 3]), np.array([1, 2, 3])]
    # Within each: row 0 of the subsample lists row 1 of it.
    graphs = [sparse.csr_array(([1], ([0], [1])), shape=(3, 3)) for _ in subsamples]
    shares = target_shares(graphs, subsamples, 4).toarray()
    wanted = np.zeros((4, 4))
    wanted[0, 1] = 1.0  # in both subsamples with rows 0 and 1
    wanted[1, 2] = 0.5  # in one of the two with rows 1 and 2
    assert shares == pytest.approx(wanted)
