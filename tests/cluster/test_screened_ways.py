"""Cells of a cluster: rows that are followed change no bit of any sum."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from lnml.kernels.cluster.cpu_tiles import CpuTiles
from lnml.kernels.cluster.layout import Layout, offsets
from lnml.kernels.cluster.mapped import MappedBlocks
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.tiles import CellTriplets
from lnml.kernels.cpu.screen import NO_BOUNDS, Trail

TILES = CpuTiles()
GAMMA = 0.2
SIZES = [40, 30, 50]
ROOM = 10**9


class Cell:
    """Rows of a cell in one block or two, and triplets among them."""

    def __init__(self, edges, kind):
        rng = np.random.default_rng(len(edges))
        codes = np.repeat(np.arange(3), SIZES)
        self.layout = Layout(np.array(edges), offsets(np.array(SIZES)))
        X = rng.normal(size=(codes.size, 4)) + codes[:, None]
        X[::7] = X[0]
        self.codes, self.blocks = map(self.layout.by_block, (codes, X.astype(kind)))
        self.starts = [offsets(rng.integers(0, 4, len(block))) for block in self.blocks]
        self.lengths = [rng.uniform(0.1, 3.0, starts[-1]) for starts in self.starts]
        reach = [np.full(len(block), 1e9) for block in self.blocks]
        self.everybody = TILES.search(self.blocks, self.codes, reach, None)

    def triplets(self, candidates, multipliers, trails):
        return CellTriplets(self.starts, self.lengths, candidates, multipliers, trails)

    def under(self, row_map, kept, room=ROOM):
        """Rows of each block under a map, and their trails."""
        found = [
            kept.under(row_map, str(number), block, TILES, room)
            for number, block in enumerate(self.blocks)
        ]
        return [each.rows for each in found], [each.trail for each in found]


def maps(kind):
    """Small steps, a leap, a map into fewer columns, and the first one again."""
    rng, here = np.random.default_rng(1), np.eye(4)
    for number in range(14):
        yield RowMap(f"map {number}", None, here.copy(), None, kind)
        here = here + 1e-3 * rng.normal(size=here.shape)
        if number == 5:
            here = 3.0 * here
        if number == 8:
            here = here[:, :2]
        if number == 11:
            here = np.eye(4)


def same_bits(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        for own, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("kind", ["<f4", "<f8"])
@pytest.mark.parametrize("edges", [[0, 120], [0, 55, 120]], ids=["one block", "two blocks"])
def test_any_walk(edges, kind):
    cell, kept, known = Cell(edges, kind), MappedBlocks(), None
    plain = list(cell.everybody)
    for number, row_map in enumerate(maps(kind)):
        z, trails = cell.under(row_map, kept)
        assert all(isinstance(trail, Trail) for trail in trails)
        mine = cell.triplets(cell.everybody, known, trails)
        theirs = cell.triplets(plain, known, [])
        for moment in ("coordinates", "data"):
            found, wanted = (
                TILES.hinge(z, cell.blocks, each, GAMMA, moment) for each in (mine, theirs)
            )
            same_bits([[found.totals], [found.push]], [[wanted.totals], [wanted.push]])
            same_bits([found.weights, found.hinges], [wanted.weights, wanted.hinges])
        slopes, wanted = (TILES.slopes(z, each, GAMMA) for each in (mine, theirs))
        for own, other in zip(slopes, wanted, strict=True):
            for name in ("indptr", "impostor", "slot", "value"):
                np.testing.assert_array_equal(getattr(own, name), getattr(other, name))
        if number % 3 == 2:
            known = slopes


def renewed(cell, kept, row_map, room=ROOM):
    """Share of the bounds that an evaluation renews; None if there are none."""
    z, trails = cell.under(row_map, kept, room)
    bounds = cell.everybody.bounds(0, trails[0], trails[-1])
    if bounds is NO_BOUNDS:
        return None
    before = bounds.roots.copy()
    TILES.hinge(z, cell.blocks, cell.triplets(cell.everybody, None, trails), GAMMA, "data")
    return float((bounds.roots != before).mean())


def test_small_steps_leave_most_candidates_out():
    cell, kept = Cell([0, 55, 120], "<f8"), MappedBlocks()
    shares = [renewed(cell, kept, row_map) for row_map in list(maps("<f8"))[:6]]
    assert shares[0] == 1.0
    assert max(shares[1:]) < 0.5


def test_rows_that_are_not_kept_are_not_followed():
    cell, kept = Cell([0, 55, 120], "<f8"), MappedBlocks()
    first, second, third, fourth = list(maps("<f8"))[:4]
    assert renewed(cell, kept, first) == 1.0
    assert renewed(cell, kept, second, room=0) is None
    # What was known of them does not hold any more.
    assert renewed(cell, kept, third) == 1.0
    kept.clear()
    assert renewed(cell, kept, fourth) == 1.0


def test_bounds_do_not_travel():
    cell, kept = Cell([0, 55, 120], "<f8"), MappedBlocks()
    first, second = list(maps("<f8"))[:2]
    renewed(cell, kept, first)
    moved = pickle.loads(pickle.dumps(cell.everybody))
    for mine, theirs in zip(moved, cell.everybody, strict=True):
        np.testing.assert_array_equal(mine.indices, theirs.indices)
    cell.everybody = moved
    assert renewed(cell, kept, second) == 1.0
