"""Rows stay on the workers, and none of them holds all: shown by limits that would stop it."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from cluster import start
from lnml import LMNN

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

ROWS, COLUMNS, CHUNK = 120_000, 64, 10_000
DATA_BYTES = ROWS * COLUMNS * 8


def rows_of(labels, block_info=None):
    """Rows of a chunk, made where the chunk is: the client never has them."""
    number = block_info[0]["chunk-location"][0]
    rows = np.random.default_rng(number).normal(size=(labels.size, COLUMNS))
    rows[:, :8] += 3.0 * np.random.default_rng(99).normal(size=(4, 8))[labels]
    return rows


def data_bytes():
    """Private memory of this process that can be written, by the kernel's count."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmData")) * 1024


def limit(extra):
    """Let this process have so many more bytes than now, and no more."""
    most = data_bytes() + extra
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return most


@pytest.mark.extras
def test_nine_workers_with_four_fifths_of_the_data_each():
    labels = np.random.default_rng(1).integers(4, size=ROWS)
    y = da.from_array(labels, chunks=CHUNK)
    X = y.map_blocks(
        rows_of, new_axis=1, chunks=((CHUNK,) * (ROWS // CHUNK), (COLUMNS,)), dtype=float
    )
    model = LMNN(n_components=8, tol=0.3, max_iter=5)
    with start(9, processes=True) as cluster, distributed.Client(cluster) as client:
        # Compiled code and thread pools are part of what a worker takes without data.
        LMNN(n_components=8, tol=0.5, max_iter=2).fit(X[:CHUNK], labels[:CHUNK])
        client.run(limit, int(0.8 * DATA_BYTES))
        before = data_bytes()
        resource.setrlimit(resource.RLIMIT_DATA, (before + DATA_BYTES, resource.RLIM_INFINITY))
        try:
            found = model.fit(X, labels)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 9
    assert found.components_.shape == (8, COLUMNS)
    assert found.objective_ > 0.0
