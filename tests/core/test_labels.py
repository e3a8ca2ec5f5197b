"""Class labels as numbers: the same whatever their type."""

import numpy as np
import pytest

from lnml.core.labels import classes_by_appearance


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64", "uint64", ">i4"])
def test_integers_up_to_the_ends_of_their_type(kind):
    limits = np.iinfo(kind)
    few = [limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 2]
    for values in (few, few[:2], few[2:4], [limits.max]):
        y = np.random.default_rng(0).choice(np.array(values, dtype=kind), 50)
        found = classes_by_appearance(y)
        assert found.labels.dtype == y.dtype
        assert found.labels.tolist() == list(dict.fromkeys(y.tolist()))
        np.testing.assert_array_equal(found.labels[found.codes], y)


def test_other_types():
    for y in (np.array([True, False, True]), np.array(["b", "a", "b"]), np.array([0.5, -1.0, 0.5])):
        found = classes_by_appearance(y)
        assert found.labels.tolist() == y[:2].tolist()
        assert found.codes.tolist() == [0, 1, 0]
    assert classes_by_appearance(np.array([], dtype=int)).labels.size == 0
