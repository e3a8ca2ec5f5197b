"""The tiles of a torch device do what those of the CPU do, for cells of one block and of two."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import DEVICES

from lnml.core.pairs import Multipliers, Pattern, TooManyPairs
from lnml.kernels.cluster.cpu_tiles import CpuTiles
from lnml.kernels.cluster.layout import Layout, offsets
from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.tiles import CellTriplets, Tiles, block_ways
from lnml.kernels.cpu.exponential import LOWEST, SHIFT

pytest.importorskip("torch")
from lnml.kernels.cluster import torch_pairs, torch_softmax
from lnml.kernels.cluster.torch_tiles import TorchTiles

CPU = CpuTiles()
# Sizes of the classes, and where blocks begin and end.
CELLS = {
    "one block": ([20, 15, 25], [0, 60]),
    "one class": ([40], [0, 40]),
    "one class in both": ([40], [0, 25, 40]),
    "equal blocks": ([20, 15, 25], [0, 30, 60]),
    "a shared class": ([10, 30, 5], [0, 33, 45]),
    "no shared class": ([18, 11, 30], [0, 29, 59]),
    "one row": ([1, 30], [0, 1, 31]),
}


class Cell:
    """Rows of a cell with coordinates, classes, targets and all that tiles are given."""

    def __init__(self, sizes, edges, kind, duplicates=False):
        rng = np.random.default_rng(len(edges) + sizes[0])
        codes = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(codes.size, 5)) + 0.5 * codes[:, None]
        if duplicates:
            X[::3], X[1::4] = X[0], X[-1]
        self.kind, self.rng = kind, rng
        self.layout = Layout(np.array(edges), offsets(np.array(sizes)))
        self.codes = self.layout.by_block(codes)
        self.blocks = self.layout.by_block(X.astype(kind))
        map_ = RowMap("a", X.mean(axis=0), rng.normal(size=(5, 3)), rng.normal(size=3), kind)
        self.map = map_
        self.z = [CPU.mapped(block, map_) for block in self.blocks]
        self.radius = [rng.uniform(0.0, 8.0, len(block)) for block in self.blocks]
        # Some rows have no targets.
        self.radius[0][0] = -np.inf
        self.starts = [offsets(rng.integers(0, 4, len(block))) for block in self.blocks]
        self.lengths = [rng.uniform(0.1, 5.0, starts[-1]) for starts in self.starts]

    def pairs(self, most):
        """Random pairs by ways, up to so many a row."""
        found = []
        for a, b in block_ways(self.blocks):
            n, count = len(self.blocks[a]), min(most, len(self.blocks[b]))
            lists = [
                np.sort(
                    self.rng.choice(len(self.blocks[b]), self.rng.integers(0, count + 1), False)
                )
                for _ in range(n)
            ]
            indices = np.concatenate(lists).astype(np.int32)
            found.append(Pattern(offsets(np.array([each.size for each in lists])), indices))
        return found

    def weights(self, pairs):
        """Random weights of pairs, some of them zero."""
        return [np.maximum(self.rng.normal(size=way.size), 0.0) for way in pairs]

    def triplets(self, candidates, multipliers=None):
        return CellTriplets(self.starts, self.lengths, candidates, multipliers, [])


@pytest.fixture(scope="module", params=[name for name in DEVICES if name != "cpu"])
def tiles(request):
    """Tiles of a device, inside a task."""
    made = TorchTiles(request.param)
    with made.session():
        yield made


@pytest.fixture(params=["float64", "float32"])
def kind(request):
    return request.param


@pytest.fixture(params=[*CELLS, "duplicates"])
def cell(request, kind):
    if request.param == "duplicates":
        return Cell(*CELLS["a shared class"], kind, duplicates=True)
    return Cell(*CELLS[request.param], kind)


def on_device(tiles, cell):
    """Coordinates and data of a cell where they are worked on."""
    placed = [tiles.mapped(block, RowMap.identity(cell.kind)) for block in cell.blocks]
    # The same bits as the CPU, so that no pair is on the other side of its radius.
    return [tiles.mapped(z, RowMap.identity(cell.kind)) for z in cell.z], placed


def close(found, wanted, kind, scale=1.0):
    share = 1e-11 if kind == "float64" else 2e-4
    size = max(float(np.abs(wanted).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(found, wanted, rtol=share * scale, atol=share * scale * size)


def same_lists(found, wanted):
    """The same pairs, or multipliers, by ways."""
    for mine, theirs in zip(found, wanted, strict=True):
        names = ("indptr", "indices") if isinstance(theirs, Pattern) else ("indptr", "impostor")
        for name in names:
            assert np.array_equal(np.asarray(getattr(mine, name)), getattr(theirs, name))
        if isinstance(theirs, Multipliers):
            assert np.array_equal(mine.slot, theirs.slot)
            np.testing.assert_allclose(mine.value, theirs.value, rtol=1e-5, atol=1e-6)


def test_nothing_of_the_protocol_is_missing():
    operations = {name for name in vars(Tiles) if not name.startswith("_")}
    assert len(operations) > 12
    assert operations <= set(vars(TorchTiles)) and operations <= set(vars(CpuTiles))


@pytest.mark.parametrize("wide", [True, False])
def test_mapped(tiles, cell, wide):
    for row_map in (
        cell.map._replace(wide=wide),
        cell.map._replace(shift=None, offset=None, wide=wide),
        cell.map._replace(matrix=None, offset=None),
        RowMap.identity("float64"),
    ):
        placed = tiles.mapped(cell.blocks[0], RowMap.identity(cell.kind))
        found, wanted = tiles.mapped(placed, row_map), CPU.mapped(cell.blocks[0], row_map)
        close(found.cpu().numpy(), wanted, cell.kind)
        assert found.cpu().numpy().dtype == wanted.dtype


def test_search(tiles, cell):
    found = tiles.search(on_device(tiles, cell)[0], cell.codes, cell.radius, None)
    wanted = CPU.search(cell.z, cell.codes, cell.radius, None)
    same_lists([Pattern(each.indptr.cpu(), each.indices.cpu()) for each in found], wanted)
    same_lists(pickle.loads(pickle.dumps(found)), wanted)


def test_search_has_a_limit(tiles):
    cell = Cell(*CELLS["equal blocks"], "float64")
    z, _ = on_device(tiles, cell)
    size = sum(each.size for each in tiles.search(z, cell.codes, cell.radius, None))
    assert size > 10
    tiles.search(z, cell.codes, cell.radius, size)
    with pytest.raises(TooManyPairs):
        tiles.search(z, cell.codes, cell.radius, size - 1)


def test_nearest(tiles, cell):
    found = tiles.nearest(on_device(tiles, cell)[0], cell.codes, 3)
    wanted = CPU.nearest(cell.z, cell.codes, 3)
    for (near, numbers), (distances, columns) in zip(found, wanted, strict=True):
        assert np.array_equal(numbers, columns)
        close(np.nan_to_num(near, posinf=-1.0), np.nan_to_num(distances, posinf=-1.0), cell.kind)


def test_sums_over_pairs(tiles, cell):
    z, data = on_device(tiles, cell)
    pairs = cell.pairs(3)
    weights = cell.weights(pairs)
    close(tiles.lengths(z, pairs), CPU.lengths(cell.z, pairs), cell.kind)
    for values, own, exact in ((z, cell.z, False), (data, cell.blocks, True)):
        found = tiles.moment(values, data, pairs, weights, exact)
        close(found, CPU.moment(own, cell.blocks, pairs, weights, exact), cell.kind)
    found, wanted = tiles.scatter(z, pairs, weights), CPU.scatter(cell.z, pairs, weights)
    close(found.matrix, wanted.matrix, "float64")
    close(found.squares, wanted.squares, "float64")
    error = np.abs(found.matrix - wanted.matrix)
    allowed = sum(np.outer(each.left, each.right) for each in (found, wanted))
    assert (error <= allowed + allowed.T).all()


@pytest.mark.parametrize("gamma", [0.0, 0.3])
@pytest.mark.parametrize("smoothed", [False, True])
def test_hinges(tiles, cell, gamma, smoothed):
    """Candidates and multipliers come from a search here, or from a worker with a CPU."""
    z, data = on_device(tiles, cell)
    theirs = CPU.search(cell.z, cell.codes, cell.radius, None)
    mine = tiles.search(z, cell.codes, cell.radius, None)
    known = CPU.slopes(cell.z, cell.triplets(theirs), 0.7) if smoothed else None
    there = tiles.slopes(z, cell.triplets(mine), 0.7) if smoothed else None
    for candidates, multipliers in ((mine, there), (theirs, known), (mine, known)):
        for moment in ("", "coordinates", "data"):
            found = tiles.hinge(z, data, cell.triplets(candidates, multipliers), gamma, moment)
            given = cell.triplets(theirs, known)
            wanted = CPU.hinge(cell.z, cell.blocks, given, gamma, moment)
            close(found.totals, wanted.totals, cell.kind)
            for part in ("weights", "hinges"):
                for own, other in zip(getattr(found, part), getattr(wanted, part), strict=True):
                    close(own, other, cell.kind)
            assert (found.push is None) == (moment == "")
            if moment:
                close(found.push, wanted.push, cell.kind)


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_slopes_and_what_is_carried_over(tiles, cell, gamma):
    z, _ = on_device(tiles, cell)
    theirs = CPU.search(cell.z, cell.codes, cell.radius, None)
    mine = tiles.search(z, cell.codes, cell.radius, None)
    # A worker with a CPU goes on with what came from one with a GPU.
    moved = pickle.loads(pickle.dumps(mine))
    wanted = CPU.slopes(cell.z, cell.triplets(theirs), gamma)
    found = tiles.slopes(z, cell.triplets(mine), gamma)
    same_lists(CPU.slopes(cell.z, cell.triplets(moved), gamma), wanted)
    same_lists(tiles.to_host(found), wanted)
    assert max(each.largest for each in found) == pytest.approx(
        max(each.largest for each in wanted), abs=1e-6
    )
    old, new = (_targets(cell, seed) for seed in range(2))
    wanted = CPU.carry_over(wanted, old, new)
    same_lists(tiles.to_host(tiles.carry_over(found, old, new)), wanted)
    same_lists(CPU.carry_over(pickle.loads(pickle.dumps(found)), old, new), wanted)
    same_lists(tiles.to_host(wanted), wanted)


def _targets(cell, seed):
    """Targets of each block with the lists that the cell has, numbered in the data."""
    rng = np.random.default_rng(seed)
    found = []
    for starts in cell.starts:
        lists = [np.sort(rng.choice(6, size, replace=False)) for size in np.diff(starts)]
        found.append(Pattern(starts, np.concatenate(lists).astype(np.int32)))
    return found


def test_what_moves_has_no_caches(tiles):
    cell = Cell(*CELLS["equal blocks"], "float64")
    z, data = on_device(tiles, cell)
    candidates = tiles.search(z, cell.codes, cell.radius, None)
    before = len(pickle.dumps(candidates))
    multipliers = tiles.slopes(z, cell.triplets(candidates), 0.3)
    tiles.hinge(z, data, cell.triplets(candidates, multipliers), 0.3, "coordinates")
    assert len(pickle.dumps(candidates)) == before


def test_multipliers_are_aligned_once(tiles, monkeypatch):
    made, align = [], torch_pairs.align
    monkeypatch.setattr(torch_pairs, "align", lambda *given: made.append(1) or align(*given))
    cell = Cell(*CELLS["equal blocks"], "float64")
    z, data = on_device(tiles, cell)
    candidates = tiles.search(z, cell.codes, cell.radius, None)
    for count in (1, 2):
        multipliers = tiles.slopes(z, cell.triplets(candidates), 0.3)
        for _ in range(3):
            tiles.hinge(z, data, cell.triplets(candidates, multipliers), 0.3, "")
        assert len(made) == count


def test_softmax_sums(tiles, cell, monkeypatch):
    """Also in tiles of few rows."""
    z, data = on_device(tiles, cell)
    factors = [cell.rng.normal(size=(2, len(block))) * 2.0**-90 for block in cell.blocks]
    wanted = CPU.totals(cell.z, cell.codes)
    share = 1e-11 if cell.kind == "float64" else 1e-4
    for rows in (2048, 7):
        monkeypatch.setattr(torch_softmax, "TILE_ROWS", rows)
        for found, own in zip(tiles.totals(z, cell.codes), wanted, strict=True):
            for mine, theirs in zip(found, own, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=share)
        for full in (False, True):
            found = tiles.products(z, data, cell.codes, factors, full)
            close(found, CPU.products(cell.z, cell.blocks, cell.codes, factors, full), cell.kind)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_weights_that_underflow_leave_their_rows_below_the_limit(tiles, kind):
    """Sums have the unit and the range of those of the CPU."""
    near = 0.7 * np.sqrt(-LOWEST[kind] * np.log(2.0))
    z = np.array([0.0, 0.5, 1.0, near, near + 60.0], dtype=kind)[:, None]
    codes = [np.zeros(5, dtype=np.int64)]
    (found,) = tiles.totals([tiles.mapped(z, RowMap.identity(kind))], codes)
    (wanted,) = CPU.totals([z], codes)
    limit = 5 * 2.0 ** (SHIFT[kind] + LOWEST[kind]) / np.finfo(kind).eps
    assert np.array_equal(found[1] > limit, wanted[1] > limit)
    assert found[1][3] > limit > found[1][4]
    np.testing.assert_allclose(found[1][:4], wanted[1][:4], rtol=5e-3)
