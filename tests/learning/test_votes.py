"""The number of voters: the rule against its words, the votes against one search for each k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lnml.learning.knn import predict_nearest
from lnml.learning.votes import CANDIDATES, choose_votes, cross_validated_votes, vote_correct


@given(st.integers(0, 1000), st.integers(2, 30), st.integers(1, 4))
def test_the_rule_is_one_standard_error(seed, n_rows, n_others):
    rng = np.random.default_rng(seed)
    correct = rng.random((n_others + 1, n_rows)) < rng.random((n_others + 1, 1))
    gains = correct[1:].astype(int) - correct[0]
    errors = gains.std(axis=1, ddof=1) / np.sqrt(n_rows)
    # Equality, as of a single row more, is no clear gain; it is not left to rounding here.
    clear = gains.mean(axis=1) > errors * (1 + 1e-9)
    rates = np.where(clear, correct[1:].mean(axis=1), -1.0)
    expected = 1 + int(rates.argmax()) if clear.any() else 0
    assert choose_votes(correct, range(1, n_others + 2)) == expected


def test_one_row_more_is_not_enough():
    correct = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=bool)
    assert choose_votes(correct[:2], (1, 3)) == 0
    assert choose_votes(correct, (1, 3, 5)) == 2


def test_order_of_candidates_does_not_matter():
    correct = np.array([[0, 0, 0, 1], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]], dtype=bool)
    ks = np.array([1, 9, 7, 5])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        # 5 and 7 are equally right, but not clearly: they lose the last row. So 1 stays.
        assert ks[order][choose_votes(correct[order], ks[order])] == 1
        without = correct[order] | (np.arange(4) == 3)
        assert ks[order][choose_votes(without, ks[order])] == 5


@given(st.integers(0, 200))
def test_votes_are_those_of_a_search_for_each_k(seed):
    """Also where rows are equally near and classes have equally many votes."""
    rng = np.random.default_rng(seed)
    inside, outside = rng.integers(0, 3, (30, 2)) * 1.0, rng.integers(0, 3, (8, 2)) * 1.0
    y, wanted = rng.choice(["a", "b", "c"], 30), rng.choice(["a", "b", "d"], 8)
    found = vote_correct(inside, y, outside, wanted, CANDIDATES)
    for k, correct in zip(CANDIDATES, found, strict=True):
        assert correct.tolist() == (predict_nearest(inside, y, outside, k) == wanted).tolist()


def test_noise_needs_more_voters_and_clean_classes_do_not():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 2)) + 6.0 * y[:, None]
    assert cross_validated_votes(lambda X, y: None, X, y) == 1
    noisy = np.where(rng.random(200) < 0.3, 1 - y, y)
    assert cross_validated_votes(lambda X, y: None, X, noisy) > 1


def test_every_inner_fold_has_a_fit_of_its_own():
    X, y = np.arange(24.0)[:, None], np.tile(["a", "b"], 12)
    seen = []

    class Mirror:
        def transform(self, rows):
            return -rows

    def fit(rows, labels):
        seen.append((rows.ravel().tolist(), labels.size))
        return Mirror()

    assert cross_validated_votes(fit, X, y) in CANDIDATES
    assert [size for _, size in seen] == [16, 16, 16]
    left_out = [set(range(24)) - set(rows) for rows, _ in seen]
    assert set.union(*left_out) == set(range(24))


@pytest.mark.parametrize("sizes", [(2, 2), (1, 5), (2, 9)])
def test_few_rows_limit_folds_and_candidates(sizes):
    y = np.repeat(["a", "b"], sizes)
    X = np.arange(y.size, dtype=float)[:, None]
    assert 1 <= cross_validated_votes(lambda X, y: None, X, y) < y.size


def test_rows_too_few_to_learn_from_leave_one_voter():
    def fit(X, y):
        raise ValueError("every class has one row only")

    assert cross_validated_votes(fit, np.arange(6.0)[:, None], np.repeat(["a", "b"], 3)) == 1
