"""What the operations of a cluster raise, refuse, and keep on the workers."""

from __future__ import annotations

import numpy as np
import pytest
from toy_data import class_start, neighborhoods, sorted_blobs

from lnml import LMNN
from lnml.kernels import get_kernels

da = pytest.importorskip("dask.array")

from lnml.kernels.cluster.crew import Crew  # noqa: E402


@pytest.fixture
def embedded(client):
    """Kernels of the cluster, and rows under the identity."""
    X, y = sorted_blobs(0, [20, 15], 3)
    kernels = get_kernels("cluster")
    points = kernels.points(da.from_array(X, chunks=(10, 3)), class_start(y))
    return kernels, kernels.embed(points, np.eye(3)), y


@pytest.mark.parametrize("error", [FileNotFoundError, TimeoutError, ZeroDivisionError])
def test_errors_of_tasks_are_raised_as_they_are(client, error):
    """The first two are also what a lost connection raises."""

    def broken(chunk):
        raise error("a chunk cannot be read")

    X = da.zeros((20, 2), chunks=(5, 2)).map_blocks(broken, meta=np.zeros((0, 0)))
    with pytest.raises(error, match="a chunk cannot be read"):
        LMNN().fit(X, np.arange(20) % 2)


def test_operations_that_are_not_there(embedded):
    kernels, embedding, _ = embedded
    with pytest.raises(NotImplementedError):
        kernels.nearest(embedding, np.zeros((1, 3)), 1)
    with pytest.raises(NotImplementedError):
        kernels.root_sums(embedding)
    with pytest.raises(NotImplementedError):
        kernels.length_sums(embedding.points, np.eye(3))


def test_target_hinges_keep_no_candidates(embedded, monkeypatch):
    """They are asked for where there is no room for candidates."""
    kernels, embedding, y = embedded
    targets = neighborhoods(np.roll(np.eye(y.size), 1, axis=1))
    expected = kernels.hinge(
        embedding,
        kernels.working_set(targets, kernels.within(embedding, np.full(y.size, np.inf)).found),
        0.0,
    ).target_hinge
    monkeypatch.setattr(Crew, "keep", None)
    found = kernels.target_hinges(embedding, targets, np.full(y.size, np.inf))
    assert found.any()
    np.testing.assert_array_equal(found, expected)
