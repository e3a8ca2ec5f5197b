"""What an adversary found on a cluster, and must not find again."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
from adversary import problem

from lnml import LMNN, MCML, NCA
from lnml.kernels import get_kernels
from lnml.kernels.cluster import cells
from lnml.kernels.cluster.cpu_tiles import CpuTiles
from lnml.kernels.cluster.exact import Grid, joined
from lnml.kernels.cluster.placing import SAMPLE
from lnml.kernels.training import TrainingSet

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


def lying(X, says, holds):
    """Rows whose chunks are of another type than their Dask array says."""
    rows = da.from_array(X, chunks=(50, X.shape[1]))
    return rows.map_blocks(lambda chunk: chunk.astype(holds), meta=np.empty((0, 0), says))


@pytest.mark.parametrize(
    ("says", "holds"), [("f4", "f8"), ("f4", "i8"), ("f8", "O"), ("f8", "c16"), ("f8", "U8")]
)
def test_chunks_that_their_array_does_not_speak_of_are_refused(client, iris, says, holds):
    """Nothing is narrowed, and no imaginary part lost, in silence."""
    X, y = iris
    rows = lying(X, says, holds)
    with pytest.raises(TypeError, match="its Dask array says float"):
        LMNN().fit(rows, y)
    model = LMNN(tol=0.1).fit(X, y)
    with pytest.raises(TypeError, match="its Dask array says float"):
        model.transform(rows).compute(scheduler="sync")


def test_chunks_that_are_narrower_than_their_array_are_taken_as_they_are(client, iris):
    X, y = iris
    wanted = LMNN(tol=1e-2).fit(X.astype(np.float32).astype(np.float64), y)
    found = LMNN(tol=1e-2).fit(lying(X, "f8", "f4"), y)
    assert found.components_.dtype == np.float64
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-9)


def test_chunks_with_fewer_columns_than_their_array_are_refused(client, iris):
    X, y = iris
    rows = da.from_array(X, chunks=(50, 4)).map_blocks(lambda chunk: chunk[:, :3], dtype=X.dtype)
    with pytest.raises(ValueError, match=r"should have 4 columns, and its chunks have \[3\]"):
        LMNN().fit(rows, y)


def test_few_rows_come_to_the_client_whatever_the_chunks(client, iris):
    """A sample of each chunk would be all rows where chunks are small."""
    X, y = (np.concatenate([each] * 10) for each in iris)
    codes = np.unique(y, return_inverse=True)[1]
    samples = []
    for chunks in (10, 700):
        kernels = get_kernels("cluster")
        with kernels.session():
            TrainingSet.from_labels(da.from_array(X, chunks=(chunks, 4)), codes, kernels)
        samples.append(kernels.sample)
    assert len(samples[0]) < 2 * SAMPLE < len(X)
    np.testing.assert_array_equal(*samples)
