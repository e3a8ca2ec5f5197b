"""What an adversary found on a cluster, and must not find again."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
from adversary import problem

from lnml import LMNN, MCML, NCA
from lnml.kernels.cluster import cells
from lnml.kernels.cluster.cpu_tiles import CpuTiles
from lnml.kernels.cluster.exact import Grid, joined

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.sampled(3)


def scaled_columns(scale):
    """Three classes in three columns, one of them tiny and one huge."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3))
    X[:, 0] += y
    return X * [1.0 / scale, 1.0, scale], y


@pytest.mark.parametrize("model", [LMNN(tol=1e-2), NCA(max_iter=30)], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_of_very_different_scale(client, model):
    """The grid of one entry must not swallow that of another."""
    X, y = scaled_columns(1e8)
    wanted = type(model)(**model.get_params()).fit(X, y)
    found = model.fit(da.from_array(X, chunks=(20, 3)), y)
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_bound_of_mcml_is_not_above_what_a_metric_attains(client):
    data = problem(8, 12)
    wanted = MCML().fit(data.X, data.y).objective_
    found = MCML().fit(da.from_array(data.X, chunks=(7, data.X.shape[1])), data.y)
    assert found.objective_ * (1.0 - found.duality_gap_) <= wanted * (1.0 + 1e-9)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 2, 0, 3, 1]])
def test_sums_on_a_grid_have_the_same_bits_in_any_order(order):
    terms = np.random.default_rng(0).normal(size=(5, 3, 2)) * [1e12, 1e-12]
    bound = np.log2(np.abs(terms).sum(axis=0))
    grid = Grid.of(bound, 5)
    first = joined(sum(grid.split(term) for term in terms))
    again = joined(sum(grid.split(terms[number]) for number in order))
    assert np.array_equal(first, again)
    np.testing.assert_allclose(first, terms.sum(axis=0), rtol=1e-12)


def test_a_failed_fit_leaves_nothing_on_the_cluster(client, iris, monkeypatch):
    X, y = iris

    def fails(*_):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(CpuTiles, "hinge", fails)
        with pytest.raises(MemoryError, match="no room"):
            LMNN().fit(da.from_array(X, chunks=(50, 4)), y)
    deadline = time.monotonic() + 30.0
    while client.cluster.scheduler.tasks and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.1)
    assert not client.cluster.scheduler.tasks
    assert not cells._blocks


def test_a_fit_inside_a_task_ends(client, iris):
    X, y = iris

    def fit():
        return LMNN(tol=1e-2).fit(da.from_array(X, chunks=(50, 4)), y).objective_

    found = client.submit(fit, pure=False).result(timeout=120)
    np.testing.assert_allclose(found, LMNN(tol=1e-2).fit(X, y).objective_, rtol=1e-6)


def test_odd_chunks_are_refused(client, iris):
    X, y = iris
    masked = da.ma.masked_array(da.from_array(X, chunks=(50, 4)), mask=X > 7.0)
    with pytest.raises(TypeError, match="masked"):
        LMNN().fit(masked, y)
