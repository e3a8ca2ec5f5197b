"""Folds of tables with small classes."""

import numpy as np
import pytest

from lnml.errors import InputError
from lnml.evaluation.problem import possible_folds, stratified_folds

LARGE = np.repeat(["a", "b"], [20, 15])


def test_large_classes_get_the_usual_folds():
    splits, notes = possible_folds(LARGE, 10, seed=4)
    assert notes == []
    for mine, usual in zip(splits, stratified_folds(LARGE, 10, 4), strict=True):
        for part, expected in zip(mine, usual, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_a_small_class_gets_fewer_folds():
    labels = np.array([*LARGE, "rare", "rare", "rare"])
    splits, (note,) = possible_folds(labels, 10, seed=0)
    assert len(splits) == 3
    assert all((labels[test] == "rare").sum() == 1 for _, test in splits)
    assert note.startswith("3 folds instead of 10, because the smallest class ('rare') has 3 rows")
    assert "--drop-class 'rare'" in note
    assert np.sort(np.concatenate([test for _, test in splits])).tolist() == list(range(38))


def test_classes_of_one_row_are_never_tested():
    labels = np.array(["x", *LARGE, "y"])
    splits, (note,) = possible_folds(labels, 5, seed=0)
    assert len(splits) == 5
    for train, test in splits:
        assert {0, 36} <= set(train) and not {0, 36} & set(test)
        assert (np.diff(train) > 0).all()
        assert np.sort(np.concatenate([train, test])).tolist() == list(range(37))
    assert note == "classes 'x', 'y' of one row each: used in training only, never tested"
    many = np.array([*map(str, range(7)), *LARGE])
    assert "'4', ... (7 in all)" in possible_folds(many, 5, seed=0)[1][0]


def test_one_class_cannot_be_compared():
    with pytest.raises(InputError, match="fewer than two classes have two rows"):
        possible_folds(np.array(["a", "a", "a", "b"]), 2, seed=0)
