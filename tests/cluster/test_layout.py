"""Blocks, cells and their pairs."""

import numpy as np
import pytest

from lnml.core.pairs import Pattern
from lnml.kernels.cluster.dealing import EVEN, dealt_out
from lnml.kernels.cluster.layout import Layout, with_pairs


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


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 9, 16, 31])
@pytest.mark.parametrize("rows", [3, 120_000, 640_000])
def test_every_cell_is_dealt_out_and_work_is_even(count, rows):
    layout = Layout.of(np.array([0, rows]))
    deal = dealt_out(layout, {str(number): 2 for number in range(count)})
    assert set(deal) == set(layout.cells)
    work = dict.fromkeys(deal.values(), 0.0)
    for cell, name in deal.items():
        work[name] += layout.n_pairs(cell)
    mean = sum(work.values()) / count
    largest = max(map(layout.n_pairs, layout.cells))
    assert max(work.values()) <= max(EVEN * mean, mean + largest)


@pytest.mark.parametrize(
    ("count", "share"), [(3, 0.68), (4, 0.75), (7, 0.44), (9, 0.46), (13, 0.32), (32, 0.22)]
)
def test_workers_keep_few_rows(count, share):
    layout = Layout.of(np.array([0, 640_000]))
    deal = dealt_out(layout, {str(number): 1 for number in range(count)})
    blocks = {name: set() for name in deal.values()}
    for cell, name in deal.items():
        blocks[name].update(cell)
    assert len(blocks) == count
    assert max(map(len, blocks.values())) <= share * layout.n_blocks


def test_strong_workers_get_more():
    layout = Layout.of(np.array([0, 640_000]))
    deal = dealt_out(layout, {"weak": 1, "strong": 3})
    pairs = {name: 0.0 for name in ("weak", "strong")}
    for cell, name in deal.items():
        pairs[name] += layout.n_pairs(cell)
    assert pairs["strong"] == pytest.approx(3.0 * pairs["weak"], rel=0.1)
