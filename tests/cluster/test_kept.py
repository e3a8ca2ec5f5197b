"""What workers keep of the rows: mapped blocks within limits, placed blocks for good."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

from lnml import LMNN, MCML

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from lnml.kernels import get_kernels  # noqa: E402
from lnml.kernels.cluster import cells, crew  # noqa: E402
from lnml.kernels.cluster.cpu_tiles import CpuTiles  # noqa: E402
from lnml.kernels.cluster.mapped import MappedBlocks  # noqa: E402
from lnml.kernels.cluster.rows import RowMap  # noqa: E402
from lnml.kernels.cpu.threads import core_count, thread_count  # noqa: E402
from lnml.kernels.training import TrainingSet  # noqa: E402


class Counted(CpuTiles):
    """Counts how often rows are mapped."""

    def __init__(self):
        self.count = 0

    def mapped(self, rows, row_map):
        self.count += row_map.matrix is not None
        return super().mapped(rows, row_map)


def test_mapped_blocks_stay_within_their_room():
    rng = np.random.default_rng(0)
    blocks = {name: rng.normal(size=(10, 4)) for name in "abc"}
    row_map = RowMap("first", None, rng.normal(size=(4, 2)), None, "<f8")
    kept, tiles = MappedBlocks(), Counted()

    def look(names, most):
        for name in names:
            found = kept.under(row_map, name, blocks[name], tiles, most)
            np.testing.assert_allclose(found.rows, blocks[name] @ row_map.matrix)

    two_blocks = 2 * 10 * 2 * 8
    look("abab", two_blocks)
    assert tiles.count == 2 and len(kept) == 2
    # The block that was not used for longest goes.
    look("cb", two_blocks)
    assert tiles.count == 3 and len(kept) == 2
    look("a", two_blocks)
    assert tiles.count == 4
    look("c", 0)
    assert len(kept) == 0


def test_another_map_replaces_the_last_and_placed_rows_are_not_copied():
    block, kept, tiles = np.ones((3, 2)), MappedBlocks(), Counted()
    for token in ("first", "second"):
        row_map = RowMap(token, None, np.eye(2), None, "<f8")
        kept.under(row_map, "a", block, tiles, 10**6)
        assert len(kept) == 1
    assert kept.placed("a", block, tiles) is block
    kept.clear()
    assert not kept


def test_a_fit_without_room_for_mapped_rows_has_the_same_bits(client, iris, monkeypatch):
    X, y = iris
    rows = da.from_array(X, chunks=(40, 4))
    wanted = LMNN(tol=1e-2).fit(rows, y)
    monkeypatch.setattr(cells, "MAPPED_SHARE", 0.0)
    found = LMNN(tol=1e-2).fit(rows, y)
    np.testing.assert_array_equal(found.components_, wanted.components_)
    assert found.objective_ == wanted.objective_


@pytest.mark.parametrize(
    "model", [LMNN(tol=1e-2), pytest.param(MCML(tol=1e-2), marks=pytest.mark.extras)], ids=str
)
def test_matrices_added_up_among_the_workers_have_the_same_bits(client, iris, model, monkeypatch):
    X, y = iris
    rows = da.from_array(X, chunks=(40, 4))
    wanted = clone(model).fit(rows, y)
    monkeypatch.setattr(crew, "SMALL_BYTES", 0)
    found = clone(model).fit(rows, y)
    np.testing.assert_array_equal(found.components_, wanted.components_)
    assert found.objective_ == wanted.objective_
    assert found.duality_gap_ == wanted.duality_gap_


def test_each_worker_has_its_own_copy_of_a_block(client, iris):
    """Dask drops second copies of one result; these are results of their own."""
    X, y = iris
    kernels = get_kernels("cluster")
    with kernels.session():
        codes = np.unique(y, return_inverse=True)[1]
        training = TrainingSet.from_labels(da.from_array(X, chunks=(40, 4)), codes, kernels)
        block, workers = training.points.data.blocks[1], kernels.crew
        cells_of_block = [(0, 1), (1, 1), (1, 2)]
        near = {workers.of_cell[cell]: workers.near(block, cell) for cell in cells_of_block}
        assert len(near) == 2 and len({future.key for future in near.values()}) == 2
        for worker, future in near.items():
            np.testing.assert_array_equal(future.result(), block.result())
            assert set(client.who_has([future])[future.key]) == {worker}
            assert workers.near(block, (1, 1)) is workers.near(block, (1, 1))


def test_tiles_use_the_threads_of_their_worker(client, monkeypatch):
    """Dask sets OMP_NUM_THREADS to one for its workers, whatever threads they have."""
    from distributed import Client, LocalCluster

    def count():
        with cells.threads_of_a_worker():
            return thread_count()

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with (
        LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        assert other.submit(count, pure=False).result() == min(2, core_count())
    assert thread_count() == 1


def test_logs_of_messages_do_not_keep_what_was_sent(client, iris):
    """Dask keeps the last thousand messages of each connection, with the arguments of tasks."""
    X, y = iris
    maps = []

    def alive():
        gc.collect()
        return sum(type(each) is RowMap for each in gc.get_objects())

    def count(state):
        # On a busy machine, the scheduler may take a while to let go of tasks that are done.
        deadline = time.monotonic() + 20.0
        while (found := alive()) >= 100 and time.monotonic() < deadline:
            time.sleep(0.2)
        maps.append(found)

    LMNN(tol=1e-3, callback=count).fit(da.from_array(X, chunks=(40, 4)), y)
    # Each evaluation has one; there are some hundred.
    assert len(maps) > 1 and max(maps) < 100


def test_all_workers_are_seen_while_dask_asks_for_none(client):
    """Dask asks for the state of the scheduler without workers, every two seconds."""
    done = threading.Event()

    def ask():
        while not done.is_set():
            client.sync(client._update_scheduler_info)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        seen = [len(crew.Crew(client).workers()) for _ in range(300)]
    finally:
        done.set()
        asking.join()
    assert set(seen) == {2}
