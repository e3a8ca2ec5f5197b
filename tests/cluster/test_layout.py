"""Blocks, cells and their pairs."""

import numpy as np
import pytest

from lnml.core.pairs import Pattern
from lnml.kernels.cluster.layout import with_pairs


@pytest.mark.parametrize("sizes", [(7,), (7, 5)])
def test_pairs_are_the_same_among_the_rows_that_have_some(sizes):
    rng = np.random.default_rng(0)
    links = [
        rng.random((mine, other)) < 0.1 for mine, other in zip(sizes, sizes[::-1], strict=True)
    ]
    pairs = [
        Pattern(
            np.concatenate([[0], np.cumsum(each.sum(axis=1))]),
            np.nonzero(each)[1].astype(np.int32),
        )
        for each in links
    ]
    taken, found = with_pairs(pairs)
    for way, each in enumerate(links):
        mine, other = np.flatnonzero(taken[way]), np.flatnonzero(taken[len(sizes) - 1 - way])
        rows = np.repeat(mine, found[way].sizes)
        again = np.zeros_like(each)
        again[rows, other[found[way].indices]] = True
        np.testing.assert_array_equal(again, each)
    joined = [each.any(axis=1) for each in links]
    for way, each in enumerate(links):
        joined[len(sizes) - 1 - way] |= each.any(axis=0)
    for some, expected in zip(taken, joined, strict=True):
        np.testing.assert_array_equal(some, expected)
